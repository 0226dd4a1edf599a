// Reading fields of a description that a file brings: numbers of either width, text, each
// missing or of another kind an error that names the field.

import { ParseError, showValue } from '../../errors.ts';

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
