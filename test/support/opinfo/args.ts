// The arguments of a call by the names of PyTorch's signature, positional or by keyword: `signature('input, dim=None, keepdim=False')`.
// Typed reads of them; a row of the table is one or two lines of these.

import { isInexact, type DType } from '../../../src/ir/dtype.ts';
import { tensor } from '../../../src/tensor/ops/creation/creation.ts';
import { Tensor } from '../../../src/tensor/tensor.ts';
import type { Picks } from './picks.ts';
import { Real, type Value } from './value.ts';

interface Parameter {
  readonly name: string;
  readonly fallback: Value;
  /** Takes what is left of the positional arguments: `*size`. */
  readonly rest: boolean;
}

const constants: Readonly<Record<string, Value>> = { None: undefined, True: true, False: false };

function parameter(text: string): Parameter {
  const [name, fallback] = text.split('=').map((part) => part.trim()) as [string, string | undefined];
  if (name.startsWith('*')) return { name: name.slice(1), fallback: [], rest: true };
  if (fallback === undefined || Object.hasOwn(constants, fallback))
    return { name, fallback: fallback === undefined ? undefined : constants[fallback], rest: false };
  const number = Number(fallback);
  return {
    name,
    fallback: Number.isNaN(number) ? fallback.replaceAll(/^['"]|['"]$/g, '') : number,
    rest: false,
  };
}

/** A Python name in camelCase. */
function camelCase(name: string): string {
  return name.replaceAll(/_(\w)/g, (_, letter: string) => letter.toUpperCase());
}

/** A value with plain numbers in place of marked ones. */
function plain(value: Value): Value {
  if (value instanceof Real) return value.value;
  if (Array.isArray(value)) return value.map(plain);
  return value;
}

/** What elementwise operations take. */
export type Operand = Tensor | number | boolean;

/** The arguments of one call. */
export class Args {
  readonly #values: Readonly<Record<string, Value>>;
  readonly #given: ReadonlySet<string>;

  constructor(values: Readonly<Record<string, Value>>, given: ReadonlySet<string>) {
    this.#values = values;
    this.#given = given;
  }

  /** The value as it was read. */
  raw(name: string): Value {
    if (!Object.hasOwn(this.#values, name)) throw new Error(`the signature has no ${name}`);
    return this.#values[name];
  }

  /** Whether there is a value: given and not None, or a default. */
  has(name: string): boolean {
    return this.raw(name) !== undefined;
  }

  tensor(name: string): Tensor {
    const value = this.raw(name);
    if (!(value instanceof Tensor)) throw new Error(`${name} is no tensor: ${String(value)}`);
    return value;
  }

  maybeTensor(name: string): Tensor | undefined {
    return this.has(name) ? this.tensor(name) : undefined;
  }

  /** A list of tensors, or one tensor as a list. */
  tensors(name: string): Tensor[] {
    const value = this.raw(name);
    const list: readonly Value[] = Array.isArray(value) ? (value as readonly Value[]).flat() : [value];
    return list.map((item) => {
      if (!(item instanceof Tensor)) throw new Error(`${name} is no list of tensors`);
      return item;
    });
  }

  /**
   * A tensor or a number, for elementwise operations. A whole float is a rank-0 tensor where no other argument is a float, because
   * JavaScript's 2 is an integer there.
   */
  operand(name: string): Operand {
    const value = this.raw(name);
    if (value instanceof Tensor || typeof value === 'number' || typeof value === 'boolean') return value;
    if (typeof value === 'bigint') return Number(value);
    if (value instanceof Real) {
      const isMeant = !Number.isInteger(value.value) || this.#hasFloat();
      return isMeant ? value.value : tensor(value.value, { dtype: 'f32' });
    }
    throw new Error(`${name} is neither tensor nor number: ${String(value)}`);
  }

  maybeOperand(name: string): Operand | undefined {
    return this.has(name) ? this.operand(name) : undefined;
  }

  #hasFloat(): boolean {
    const isReal = (value: Value): boolean => value instanceof Tensor && isInexact(value.dtype);
    return Object.values(this.#values).some(isReal);
  }

  number(name: string): number {
    const value = plain(this.raw(name));
    if (typeof value === 'bigint' || typeof value === 'boolean') return Number(value);
    if (typeof value !== 'number') throw new Error(`${name} is no number: ${String(value)}`);
    return value;
  }

  maybeNumber(name: string): number | undefined {
    return this.has(name) ? this.number(name) : undefined;
  }

  /** A number or a list of numbers, such as axes; None is undefined. */
  numbers(name: string): number | number[] | undefined {
    const value = plain(this.raw(name));
    if (value === undefined || typeof value === 'number') return value;
    return this.list(name);
  }

  /** A list of numbers; one number is a list of it. */
  list(name: string): number[] {
    const value = plain(this.raw(name));
    const list: readonly Value[] = Array.isArray(value) ? (value as readonly Value[]).flat() : [value];
    return list.map((item) => {
      if (typeof item === 'bigint') return Number(item);
      if (typeof item !== 'number') throw new Error(`${name} is no list of numbers`);
      return item;
    });
  }

  flag(name: string): boolean {
    return Boolean(this.raw(name));
  }

  text<T extends string>(name: string): T {
    const value = this.raw(name);
    if (typeof value !== 'string') throw new Error(`${name} is no text: ${String(value)}`);
    return value as T;
  }

  maybeText<T extends string>(name: string): T | undefined {
    return this.has(name) ? this.text<T>(name) : undefined;
  }

  /** `{ dtype }` where the call has one. */
  dtype(name: string = 'dtype'): { dtype?: DType } {
    return this.has(name) ? { dtype: this.text<DType>(name) } : {};
  }

  /**
   * Options that the call gives (those that it leaves out keep our defaults): `ceil_mode` as `ceilMode`; `mode=reduce` renames.
   */
  options(...names: readonly string[]): Record<string, never> {
    const found = names.flatMap((entry) => {
      const [name, as] = entry.split('=') as [string, string | undefined];
      const isThere = this.#given.has(name) && this.has(name);
      return isThere ? [[as ?? camelCase(name), plain(this.raw(name))] as const] : [];
    });
    return Object.fromEntries(found) as Record<string, never>;
  }
}

/** What a row gives: tensors and numbers, nested as it likes; they are compared in their order. */
export type Result =
  | Tensor
  | number
  | bigint
  | boolean
  | readonly Result[]
  | { readonly [name: string]: Result };

/** A call of ours for PyTorch's. Results whose size depends on elements come late. */
export type Call = (
  positional: readonly Value[],
  keywords: Readonly<Record<string, Value>>,
) => Result | Promise<Result>;

/** An operator that is left out on purpose: the call must refuse with a typed error. */
export interface Left {
  readonly left: string;
  readonly call: Call;
}

export type Calls = Readonly<Record<string, Call | Left | Picks>>;

/** A call by PyTorch's signature: `signature('input, dim=None, keepdim=False')((a) => sn.sum(a.tensor('input'), a.numbers('dim')))`. */
export function signature(text: string): (row: (args: Args) => Result | Promise<Result>) => Call {
  const parameters = text
    .split(',')
    .map((part) => part.trim())
    .filter((part) => part !== '' && part !== '*')
    .map(parameter);
  return (row) => (positional, keywords) => {
    const values: Record<string, Value> = Object.fromEntries(
      parameters.map(({ name, fallback }) => [name, fallback]),
    );
    const given = new Set<string>();
    let next = 0;
    for (const { name, rest } of parameters) {
      if (next >= positional.length) break;
      values[name] = rest ? positional.slice(next) : positional[next];
      next = rest ? positional.length : next + 1;
      given.add(name);
    }
    if (next < positional.length)
      throw new Error(`${positional.length} arguments do not fit the signature (${text})`);
    for (const [name, value] of Object.entries(keywords)) {
      if (!Object.hasOwn(values, name)) throw new Error(`the signature (${text}) has no ${name}`);
      values[name] = value;
      given.add(name);
    }
    return row(new Args(values, given));
  };
}

/** A call of one tensor. */
export function unary(f: (x: Tensor) => Result): Call {
  return signature('input')((a) => f(a.tensor('input')));
}

/** A call of two tensors or numbers. */
export function binary(f: (x: Operand, y: Operand) => Result): Call {
  return signature('input, other')((a) => f(a.operand('input'), a.operand('other')));
}
