// The values of a sample's call: tensors are made, numbers and lists read, and what PyTorch tells apart but JavaScript does not
// (2 and 2.0) keeps a mark.

import { isDType } from '../../../src/ir/dtype.ts';
import { fromHostTensor } from '../../../src/io/tensors.ts';
import type { Tensor } from '../../../src/tensor/tensor.ts';
import { complexNumber, complexTensor, isComplexName } from './complex.ts';
import type { Operator, StoredTensor, StoredValue } from './read.ts';

/** A number that is a float in PyTorch's call, be it whole or not. */
export class Real {
  readonly value: number;
  constructor(value: number) {
    this.value = value;
  }
}

/** A range of an index: `start:stop:step`. */
export class Slice {
  readonly start: number | undefined;
  readonly stop: number | undefined;
  readonly step: number | undefined;
  constructor([start, stop, step]: readonly (number | null)[]) {
    this.start = start ?? undefined;
    this.stop = stop ?? undefined;
    this.step = step ?? undefined;
  }
}

/** An argument as the rows of the table get it. `None` is undefined; a dtype is its name here. */
export type Value =
  | Tensor
  | Real
  | Slice
  | number
  | bigint
  | string
  | boolean
  | undefined
  | readonly Value[]
  | { readonly [name: string]: Value };

function realOf(text: number | string): number {
  if (typeof text === 'number') return text;
  if (text === 'nan') return NaN;
  if (text === 'inf') return Infinity;
  if (text === '-inf') return -Infinity;
  throw new Error(`not a number: ${text}`);
}

function isList(value: object): value is readonly StoredValue[] {
  return Array.isArray(value);
}

/** The tensor that the file stores under a name. */
export function tensorOf(operator: Operator, { tensor, dtype, shape }: StoredTensor): Tensor {
  const stored = operator.tensors.get(tensor);
  if (stored === undefined) throw new Error(`${operator.name}: the file has no tensor ${tensor}`);
  if (isComplexName(dtype)) return complexTensor({ ...stored, shape }, dtype);
  return fromHostTensor({ ...stored, shape });
}

/** Reads values, and notes the tensors whose gradients the case has, at the places of their marks. */
export class ValueReader {
  readonly marked: Tensor[] = [];
  readonly #operator: Operator;

  constructor(operator: Operator) {
    this.#operator = operator;
  }

  read(value: StoredValue): Value {
    if (value === null) return undefined;
    if (typeof value !== 'object') return value;
    if (isList(value)) return value.map((item) => this.read(item));
    if ('tensor' in value) return this.#tensor(value);
    if ('tuple' in value) return value.tuple.map((item) => this.read(item));
    if ('dict' in value)
      return Object.fromEntries(Object.entries(value.dict).map(([name, item]) => [name, this.read(item)]));
    if ('slice' in value) return new Slice(value.slice);
    if ('ellipsis' in value) return '...';
    if ('float' in value) return new Real(realOf(value.float));
    if ('int' in value) return BigInt(value.int);
    if ('complex' in value) return complexNumber(realOf(value.complex[0]!), realOf(value.complex[1]!));
    if ('dtype' in value) return this.#dtype(value.dtype);
    throw new Error(`${this.#operator.name}: unknown value ${JSON.stringify(value)}`);
  }

  #dtype(name: string): string {
    if (!isDType(name) && isComplexName(name)) throw new Error(`no complex numbers: ${name}`);
    return name;
  }

  #tensor(stored: StoredTensor): Tensor {
    const tensor = tensorOf(this.#operator, stored);
    if (stored.grad !== undefined) this.marked[stored.grad] = tensor.requiresGrad_();
    return tensor;
  }
}
