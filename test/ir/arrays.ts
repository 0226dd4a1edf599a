// Helpers for tests on host arrays: small arrays and shapes at random, definitions of ops written out element by element, and
// one-node graphs to run them against.

import * as fc from 'fast-check';
import { expect } from 'vitest';
import type { DType } from '../../src/ir/dtype.ts';
import { GraphBuilder, type Graph, type Node } from '../../src/ir/graph.ts';
import { interpret } from '../../src/ir/interpret/interpret.ts';
import { sizeOf, stridesOf, type FixedShape } from '../../src/ir/shape.ts';
import { hostArray, type HostArray, type Scalar } from '../../src/ir/value.ts';

export type Build = (b: GraphBuilder, ...inputs: Node[]) => Node;

/** A graph whose parameters have the inputs' types. */
export function graphOf(
  inputs: readonly HostArray[],
  build: (b: GraphBuilder, ...inputs: Node[]) => Node[],
): Graph {
  const b = new GraphBuilder();
  const parameters = inputs.map(({ dtype, shape }, index) =>
    b.add('parameter', [], { index, name: `p${index}`, dtype, shape }),
  );
  return { parameters, outputs: build(b, ...(parameters as Node[])) };
}

/** Records one graph over the inputs and runs it. */
export function run(inputs: readonly HostArray[], build: Build): HostArray {
  return interpret(
    graphOf(inputs, (b, ...nodes) => [build(b, ...nodes)]),
    inputs,
  )[0]!;
}

/** The elements in C-order. */
export const list = (array: HostArray): Scalar[] => Array.from(array.data as Float64Array);
/** first, first + 1, … in C-order. */
export const counting = (dtype: DType, shape: FixedShape, first = 1): HostArray =>
  hostArray(
    dtype,
    shape,
    Array.from({ length: sizeOf(shape) }, (_, i) => i + first),
  );
export const flatten = (index: readonly number[], shape: FixedShape): number =>
  stridesOf(shape).reduce((sum, stride, axis) => sum + stride * index[axis]!, 0);
/** The element at an index. */
export const at = (array: HostArray, index: readonly number[]): Scalar =>
  array.data[flatten(index, array.shape)]!;
export const within = (index: readonly number[], shape: FixedShape): boolean =>
  index.every((i, axis) => Number.isInteger(i) && i >= 0 && i < shape[axis]!);

/** All indices of a shape in C-order. */
export function indices(shape: FixedShape): number[][] {
  return shape.reduce<number[][]>(
    (done, dim) => done.flatMap((index) => Array.from({ length: dim }, (_, i) => [...index, i])),
    [[]],
  );
}

/** The array whose element at each index is what `element` says: definitions of ops, written out. */
export function tabulate(dtype: DType, shape: FixedShape, element: (index: number[]) => Scalar): HostArray {
  return hostArray(dtype, shape, indices(shape).map(element));
}

/** Shapes of small rank and sizes; 0 is among them unless `min` says otherwise. */
export const shapeOf = (
  options: { minRank?: number; maxRank?: number; min?: number; max?: number } = {},
): fc.Arbitrary<number[]> =>
  fc.array(fc.integer({ min: options.min ?? 0, max: options.max ?? 4 }), {
    minLength: options.minRank ?? 0,
    maxLength: options.maxRank ?? 4,
  });
/** Arrays of small integers, which every dtype holds exactly. */
export const filled = (dtype: DType, shape: FixedShape): fc.Arbitrary<HostArray> => {
  const size = sizeOf(shape);
  return fc
    .array(fc.integer({ min: dtype.startsWith('u') ? 0 : -9, max: 9 }), { minLength: size, maxLength: size })
    .map((values) => hostArray(dtype, shape, dtype === 'bool' ? values.map((x) => x & 1) : values));
};
export const arrayOf = (dtype: DType, options?: Parameters<typeof shapeOf>[0]): fc.Arbitrary<HostArray> =>
  shapeOf(options).chain((shape) => filled(dtype, shape));
/** One value per axis. */
export const perAxis = <T>(
  shape: FixedShape,
  value: (dim: number, axis: number) => fc.Arbitrary<T>,
): fc.Arbitrary<T[]> => fc.tuple(...shape.map(value));

/** Equality of dtype, shape and elements that shows all of them when it fails. */
export function expectSame(actual: HostArray, expected: HostArray): void {
  expect({ ...actual, data: list(actual) }).toEqual({ ...expected, data: list(expected) });
}
