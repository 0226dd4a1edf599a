// Reading fields of a description that a file brings: numbers of either width, text, each missing or of
// another kind an error that names the field. And what a configuration has to be for a decoder to be built of it.

import { ParseError, showValue } from '../../errors.ts';
import type { ModelConfig } from './config.ts';

/** Layers that a model may have, so that a malformed file is no list without end. */
const mostLayers = 4096;

/** A number as a field of a file has it. */
function numberOf(value: unknown): number | undefined {
  if (typeof value === 'bigint') return Number(value);
  return typeof value === 'number' ? value : undefined;
}

/** Typed access to the fields of a description. `what` names the file in errors. */
export class ConfigFields {
  readonly #what: string;
  readonly #get: (key: string) => unknown;

  constructor(what: string, get: (key: string) => unknown) {
    this.#what = what;
    this.#get = get;
  }

  /** The error of a description that cannot be used. */
  fail(problem: string): ParseError {
    return new ParseError('E_FORMAT', this.#what, problem);
  }

  /** Whatever is there; undefined and null where nothing is. */
  raw(key: string): unknown {
    return this.#get(key) ?? undefined;
  }

  /** A finite number, or undefined where there is none. */
  maybe(key: string): number | undefined {
    const value = this.raw(key);
    if (value === undefined) return undefined;
    const number = numberOf(value);
    if (number !== undefined && Number.isFinite(number)) return number;
    throw this.fail(`${key} must be a number, got ${showValue(value)}`);
  }

  number(key: string, fallback?: number): number {
    const value = this.maybe(key) ?? fallback;
    if (value === undefined) throw this.fail(`${key} is missing`);
    return value;
  }

  /** A whole number of at least 1. */
  count(key: string, fallback?: number): number {
    const value = this.number(key, fallback);
    if (Number.isSafeInteger(value) && value >= 1) return value;
    throw this.fail(`${key} must be a whole number of at least 1, got ${value}`);
  }

  /** The number of layers, which lists are made of before any of them is looked for. */
  layers(key: string): number {
    const value = this.count(key);
    if (value <= mostLayers) return value;
    throw this.fail(`${key} is ${value}: expected at most ${mostLayers}`);
  }

  text(key: string): string | undefined {
    const value = this.raw(key);
    if (value === undefined || typeof value === 'string') return value;
    throw this.fail(`${key} must be text, got ${showValue(value)}`);
  }

  numbers(key: string): readonly number[] | undefined {
    const value = this.raw(key);
    if (value === undefined) return undefined;
    const isList = Array.isArray(value) || (ArrayBuffer.isView(value) && !(value instanceof DataView));
    const list = isList ? Array.from(value as ArrayLike<unknown>, numberOf) : [undefined];
    if (list.every((item): item is number => item !== undefined)) return list;
    throw this.fail(`${key} must be a list of numbers, got ${showValue(value)}`);
  }
}

/** The window of each layer: `size` where `has` says so; none of any where there is no size. */
export function windowsOf(
  layers: number,
  size: number | undefined,
  has: (layer: number) => boolean,
): readonly (number | undefined)[] {
  return Array.from({ length: layers }, (_, i) =>
    size !== undefined && size > 0 && has(i) ? size : undefined,
  );
}

/** The configuration, if its sizes go together. Throws ParseError where they do not. */
export function checkedConfig(fields: ConfigFields, config: ModelConfig): ModelConfig {
  const { heads, keyHeads, headSize, rope, experts, width, hidden, windows } = config;
  const whole = Object.entries({ width, hidden, heads, keyHeads, headSize });
  for (const [name, value] of whole) {
    if (!Number.isSafeInteger(value) || value < 1)
      throw fields.fail(`${name} must be a whole number, got ${value}`);
  }
  if (heads % keyHeads !== 0) {
    throw fields.fail(`${heads} heads of queries are no multiple of ${keyHeads} heads of keys`);
  }
  if (rope.dims % 2 !== 0 || rope.dims > headSize) {
    throw fields.fail(
      `rope turns ${rope.dims} elements of heads of ${headSize}: expected an even number, at most that`,
    );
  }
  if (experts !== undefined && experts.used > experts.count) {
    throw fields.fail(`tokens are given to ${experts.used} of ${experts.count} experts`);
  }
  for (const { base, dims } of [rope, config.windowRope]) {
    if (dims < 2 || !(base > 0)) throw fields.fail(`rope turns ${dims} elements with the base ${base}`);
  }
  const odd = windows.find((size) => size !== undefined && !Number.isSafeInteger(size));
  if (odd !== undefined) throw fields.fail(`a window must be a whole number, got ${odd}`);
  return config;
}
