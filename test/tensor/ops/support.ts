// What tests of operations share: reading tensors as plain numbers, arrays with shapes for naive models, random laws over
// asynchronous reads.

import * as fc from 'fast-check';
import { isFloat, type DType } from '../../../src/ir/dtype.ts';
import { tensor } from '../../../src/operations/index.ts';
import type { Tensor } from '../../../src/tensor/tensor.ts';
import { seed } from '../../support/property.ts';

/** A plain array with a shape, for models written out in loops. */
export interface Plain {
  readonly shape: readonly number[];
  readonly data: readonly number[];
}

/** The elements as numbers, in C-order. */
export async function read(x: Tensor): Promise<number[]> {
  return Array.from(await x.data(), Number);
}

export async function plain(x: Tensor): Promise<Plain> {
  return { shape: x.shape, data: await read(x) };
}

/** 0, 1, 2… in this shape. */
export function ramp(shape: readonly number[]): Plain {
  const size = shape.reduce((product, dim) => product * dim, 1);
  return { shape, data: Array.from({ length: size }, (_, i) => i) };
}

export function toTensor({ shape, data }: Plain, dtype: DType = 'f32'): Tensor {
  return tensor(isFloat(dtype) ? [...data] : data.map(Math.trunc), { shape, dtype });
}

/** All positions of a shape, in C-order. */
export function positions(shape: readonly number[]): number[][] {
  return shape.reduce<number[][]>(
    (lists, dim) => lists.flatMap((list) => Array.from({ length: dim }, (_, i) => [...list, i])),
    [[]],
  );
}

/** The element at a position. */
export function element({ shape, data }: Plain, position: readonly number[]): number {
  return data[position.reduce((flat, i, axis) => flat * shape[axis]! + i, 0)]!;
}

/** The array whose element at each position `f` gives. */
export function build(shape: readonly number[], f: (position: readonly number[]) => number): Plain {
  return { shape, data: positions(shape).map(f) };
}

/** Checks a law on random values; a failure shows the smallest counterexample found. */
export async function holds<T>(
  runs: number,
  values: fc.Arbitrary<T>,
  law: (value: T) => Promise<void>,
): Promise<void> {
  await fc.assert(fc.asyncProperty(values, law), { numRuns: runs, seed });
}
