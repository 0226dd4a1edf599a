// Adaptive pools: the result's size is given, and the windows follow from it. Window i of `count`
// over `size` elements reaches from ⌊i·size/count⌋ to ⌈(i+1)·size/count⌉; they overlap where sizes
// do not divide.

import * as arg from '../../../ir/arguments.ts';
import * as formula from '../../formula/elementwise.ts';
import { type DType, integerRange, isFloat } from '../../../ir/dtype.ts';
import { showValue, TensorError } from '../../../errors.ts';
import {
  add,
  binary,
  broadcast,
  cast,
  div,
  fullLike,
  mul,
  permute,
  reduce,
  reshape,
  where,
  reduceKeep,
} from '../../../ir/build.ts';
import { dims, type GraphBuilder, type Node } from '../../../ir/graph.ts';
import { sizeOf } from '../../../ir/shape.ts';
import { aTensor } from '../../expect.ts';
import { recordMany } from '../../record.ts';
import type { Tensor } from '../../tensor.ts';
import { apply, checkFloat, checkReal, show } from '../operand.ts';
import { contract } from '../product/contract.ts';

/** One size for all spatial axes, or one each; null keeps the axis as it is. */
export type OutputSize = number | readonly (number | null)[];

const isSize = arg.count(1);
/** @internal */
export const outputSizes: arg.Kind<OutputSize> = {
  accepts: (value) =>
    isSize.accepts(value) ||
    arg.sizes(1).accepts(value) ||
    (Array.isArray(value) && Array.from<unknown>(value).every((at) => at === null || isSize.accepts(at))),
  refuse: (op, what, value) => arg.sizes(1).refuse(op, what, value),
};

/** The result's sizes of the last `spatial` axes. */
function sizesOf(op: string, x: Tensor, spatial: number, outputSize: OutputSize): number[] {
  if (x.rank !== spatial + 1 && x.rank !== spatial + 2)
    throw new TensorError('E_SHAPE', op, `expects rank ${spatial + 2} (or ${spatial + 1}): ${show(x)}`);
  const from = x.shape.slice(-spatial);
  if (from.includes(0)) throw new TensorError('E_SHAPE', op, `nothing to pool: ${show(x)}`);
  const list: readonly (number | null)[] =
    typeof outputSize === 'number' ? new Array<number>(spatial).fill(outputSize) : [...outputSize];
  if (list.length !== spatial)
    throw new TensorError('E_SHAPE', op, `outputSize takes ${spatial} values: ${showValue(outputSize)}`);
  return list.map((size, i) => size ?? from[i]!);
}

/** First element of each window and the one behind its last, for windows in the shape of `index`. */
function endsOf(b: GraphBuilder, index: Node, count: number, size: number): [start: Node, end: Node] {
  const start = div(b, mul(b, index, size), count);
  const end = div(b, add(b, mul(b, add(b, index, 1), size), count - 1), count);
  return [start, end];
}

/** The last axes averaged to `counts` elements each. @internal */
export function averageTo(b: GraphBuilder, x: Node, counts: readonly number[]): Node {
  const lead = dims(x).length - counts.length;
  const sizes = dims(x).slice(lead);
  if (counts.every((count, i) => sizes[i]! % count === 0)) {
    const open = reshape(b, x, [
      ...dims(x).slice(0, lead),
      ...counts.flatMap((count, i) => [count, sizes[i]! / count]),
    ]);
    const inWindow = counts.map((_, i) => lead + 2 * i + 1);
    return reshape(b, formula.mean(b, open, inWindow), [...dims(x).slice(0, lead), ...counts]);
  }
  return counts.reduce((out, count, i) => {
    const size = sizes[i]!;
    if (size === count) return out;
    const shape = [count, size];
    const column = formula.iota(b, shape, 1);
    const [start, end] = endsOf(b, formula.iota(b, shape, 0), count, size);
    const isIn = binary(b, 'and', binary(b, 'le', start, column), binary(b, 'lt', column, end));
    return weightedAxis(b, out, lead + i, cast(b, isIn, out.dtype));
  }, x);
}

function adaptiveAvg(op: string, spatial: number, x: Tensor, outputSize: OutputSize): Tensor {
  checkFloat(op, x);
  const counts = sizesOf(op, x, spatial, outputSize);
  return apply([x], (b, node) => formula.widened(b, node, (wide) => averageTo(b, wide, counts)));
}

const takesAdaptive = arg.takes<typeof adaptiveAvgPool2d>(['x', aTensor], ['outputSize', outputSizes]);

/**
 * Means of the last axis over an even grid of `outputSize` windows.
 *
 * @example
 * const line = sn.tensor([[[1, 3, 2, 4]]]);
 * sn.adaptiveAvgPool1d(line, 3);
 */
export function adaptiveAvgPool1d<D extends DType>(x: Tensor<D>, outputSize: OutputSize): Tensor<D> {
  takesAdaptive('adaptiveAvgPool1d', x, outputSize);
  return adaptiveAvg('adaptiveAvgPool1d', 1, x, outputSize);
}

/**
 * Means of the last two axes over an even grid of `outputSize` windows, which overlap where sizes
 * do not divide.
 *
 * @example
 * const image = sn.linspace(0, 15, 16).reshape([1, 1, 4, 4]);
 * sn.adaptiveAvgPool2d(image, [3, 2]);
 */
export function adaptiveAvgPool2d<D extends DType>(x: Tensor<D>, outputSize: OutputSize): Tensor<D> {
  takesAdaptive('adaptiveAvgPool2d', x, outputSize);
  return adaptiveAvg('adaptiveAvgPool2d', 2, x, outputSize);
}

/**
 * Means of the last three axes over an even grid of `outputSize` windows.
 *
 * @example
 * const volume = sn.linspace(0, 7, 8).reshape([1, 1, 2, 2, 2]);
 * sn.adaptiveAvgPool3d(volume, 1);
 */
export function adaptiveAvgPool3d<D extends DType>(x: Tensor<D>, outputSize: OutputSize): Tensor<D> {
  takesAdaptive('adaptiveAvgPool3d', x, outputSize);
  return adaptiveAvg('adaptiveAvgPool3d', 3, x, outputSize);
}

/** Windows of one axis whose starts are data: i32 [count], or [lines, count]. @internal */
export interface Starts {
  readonly start: Node;
  /** The element behind each window's last, in the shape of `start`; without it all have `taps`. */
  readonly end?: Node;
  readonly taps: number;
}

/**
 * The maxima of x [lines, S…] over such windows of its axes, and their i32 places in the flattened
 * ones: each [lines, counts…].
 *
 * @internal
 */
export function maximaOf(b: GraphBuilder, x: Node, windows: readonly Starts[]): [value: Node, place: Node] {
  const [lines, ...sizes] = dims(x) as [number, ...number[]];
  const lowest = isFloat(x.dtype) ? -Infinity : integerRange(x.dtype)[0];
  const counts = windows.map(({ start }) => dims(start).at(-1)!);
  const grid = windows.flatMap(({ taps }, i) => [counts[i]!, taps]);
  // Each axis in turn becomes its windows, [count, taps].
  let open = x;
  let outside: Node | undefined;
  let place: Node | undefined;
  windows.forEach(({ start, end, taps }, i) => {
    const [size, count, axis] = [sizes[i]!, counts[i]!, 1 + 2 * i];
    const own = dims(start).length === 2 ? lines : 1;
    const both = [own, count, taps];
    const spread = (node: Node): Node => broadcast(b, reshape(b, node, [own, count, 1]), both);
    const at = add(b, spread(start), formula.iota(b, both, 2));
    const inside = binary(b, 'min', at, size - 1);
    const before = dims(open);
    const along = before.map((_, k) => (k === 0 ? own : k === axis ? count * taps : 1));
    const index = broadcast(b, reshape(b, inside, along), before.with(axis, count * taps));
    const rows = b.add('gather', [open, index], { axis }) as Node;
    open = reshape(b, rows, [...before.slice(0, axis), count, taps, ...before.slice(axis + 1)]);
    const overGrid = (node: Node): Node => {
      const shape = [own, ...grid.map((dim, k) => (k === 2 * i || k === 2 * i + 1 ? dim : 1))];
      return broadcast(b, reshape(b, node, shape), [lines, ...grid]);
    };
    if (end !== undefined) {
      const beyond = overGrid(binary(b, 'le', spread(end), at));
      outside = outside === undefined ? beyond : binary(b, 'or', outside, beyond);
    }
    const here = overGrid(inside);
    place = place === undefined ? here : add(b, mul(b, place, size), here);
  });
  const taps = windows.reduce((product, window) => product * window.taps, 1);
  const order = [0, ...counts.map((_, i) => 1 + 2 * i), ...counts.map((_, i) => 2 + 2 * i)];
  const flatten = (node: Node): Node => reshape(b, permute(b, node, order), [lines, ...counts, taps]);
  const flat = flatten(open);
  const last = dims(flat).length - 1;
  const kept = outside === undefined ? flat : where(b, flatten(outside), fullLike(b, flat, lowest), flat);
  const first = b.add('argReduce', [formula.stopGradient(b, kept)], { monoid: 'max', axis: last }) as Node;
  const hit = formula.pointedAt(b, kept, first, last);
  const chosen = (node: Node): Node => reduce(b, 'sum', where(b, hit, node, fullLike(b, node, 0)), [last]);
  // Read through its place, so that the whole gradient goes to that element.
  return [chosen(flat), chosen(flatten(place!))];
}

function adaptiveMax(
  op: string,
  spatial: number,
  x: Tensor,
  outputSize: OutputSize,
): [values: Tensor, indices: Tensor] {
  checkReal(op, x);
  const counts = sizesOf(op, x, spatial, outputSize);
  const [values, indices] = recordMany([x], (b, [node]) => {
    const windows = counts.map((count, i): Starts => {
      const size = x.shape[x.rank - spatial + i]!;
      const index = formula.iota(b, [count], 0);
      const [start, end] = endsOf(b, index, count, size);
      if (size % count === 0) return { start, taps: size / count };
      // The longest is ⌈size/count⌉, or one more where a window begins between elements.
      const lengths = Array.from(
        { length: count },
        (_, k) => Math.ceil(((k + 1) * size) / count) - Math.floor((k * size) / count),
      );
      return { start, end, taps: lengths.reduce((p, q) => Math.max(p, q), 1) };
    });
    const lead = x.shape.slice(0, -spatial);
    const [value, place] = maximaOf(
      b,
      reshape(b, node!, [sizeOf(lead), ...x.shape.slice(-spatial)]),
      windows,
    );
    return [reshape(b, value, [...lead, ...counts]), reshape(b, place, [...lead, ...counts])];
  });
  return [values!, indices!];
}

/**
 * Maxima of the last axis over an even grid of `outputSize` windows.
 *
 * @example
 * const line = sn.tensor([[[1, 3, 2, 4]]]);
 * sn.adaptiveMaxPool1d(line, 3);
 */
export function adaptiveMaxPool1d<D extends DType>(x: Tensor<D>, outputSize: OutputSize): Tensor<D> {
  takesAdaptive('adaptiveMaxPool1d', x, outputSize);
  return adaptiveMax('adaptiveMaxPool1d', 1, x, outputSize)[0];
}

/**
 * Maxima of the last two axes over an even grid of `outputSize` windows.
 *
 * @example
 * const image = sn.linspace(0, 15, 16).reshape([1, 1, 4, 4]);
 * sn.adaptiveMaxPool2d(image, [3, 2]);
 */
export function adaptiveMaxPool2d<D extends DType>(x: Tensor<D>, outputSize: OutputSize): Tensor<D> {
  takesAdaptive('adaptiveMaxPool2d', x, outputSize);
  return adaptiveMax('adaptiveMaxPool2d', 2, x, outputSize)[0];
}

/**
 * Maxima of the last three axes over an even grid of `outputSize` windows.
 *
 * @example
 * const volume = sn.linspace(0, 7, 8).reshape([1, 1, 2, 2, 2]);
 * sn.adaptiveMaxPool3d(volume, 1);
 */
export function adaptiveMaxPool3d<D extends DType>(x: Tensor<D>, outputSize: OutputSize): Tensor<D> {
  takesAdaptive('adaptiveMaxPool3d', x, outputSize);
  return adaptiveMax('adaptiveMaxPool3d', 3, x, outputSize)[0];
}

/**
 * `adaptiveMaxPool1d`, and the i32 place of each maximum in its line.
 *
 * @example
 * const line = sn.tensor([[[1, 3, 2, 4]]]);
 * sn.adaptiveMaxPool1dWithIndices(line, 3);
 */
export function adaptiveMaxPool1dWithIndices(
  x: Tensor,
  outputSize: OutputSize,
): [values: Tensor, indices: Tensor] {
  takesAdaptive('adaptiveMaxPool1dWithIndices', x, outputSize);
  return adaptiveMax('adaptiveMaxPool1dWithIndices', 1, x, outputSize);
}

/**
 * `adaptiveMaxPool2d`, and the i32 place of each maximum in its flattened plane.
 *
 * @example
 * const image = sn.linspace(0, 15, 16).reshape([1, 1, 4, 4]);
 * sn.adaptiveMaxPool2dWithIndices(image, 2);
 */
export function adaptiveMaxPool2dWithIndices(
  x: Tensor,
  outputSize: OutputSize,
): [values: Tensor, indices: Tensor] {
  takesAdaptive('adaptiveMaxPool2dWithIndices', x, outputSize);
  return adaptiveMax('adaptiveMaxPool2dWithIndices', 2, x, outputSize);
}

/**
 * `adaptiveMaxPool3d`, and the i32 place of each maximum in its flattened volume.
 *
 * @example
 * const volume = sn.linspace(0, 7, 8).reshape([1, 1, 2, 2, 2]);
 * sn.adaptiveMaxPool3dWithIndices(volume, 1);
 */
export function adaptiveMaxPool3dWithIndices(
  x: Tensor,
  outputSize: OutputSize,
): [values: Tensor, indices: Tensor] {
  takesAdaptive('adaptiveMaxPool3dWithIndices', x, outputSize);
  return adaptiveMax('adaptiveMaxPool3dWithIndices', 3, x, outputSize);
}

// An axis of which each output element is a weighted mean: a product with a matrix of weights.

/** Σ over `axis` of x by weights [count, size], each row of which counts as 1. @internal */
export function weightedAxis(b: GraphBuilder, x: Node, axis: number, weights: Node): Node {
  const total = reduceKeep(b, 'sum', weights, [1]);
  const shares = cast(b, div(b, weights, broadcast(b, total, dims(weights))), x.dtype);
  // The product has the output axis last.
  const product = contract(b, x, shares, [], [[axis, 1]]);
  const rank = dims(x).length;
  const order = Array.from({ length: rank }, (_, i) => (i < axis ? i : i === axis ? rank - 1 : i - 1));
  return permute(b, product, order);
}
