// Folds of segments: runs of neighbours along an axis, given by their lengths or by where they
// begin. Each segment is folded on its own, in order, without a sort.

import { TensorError } from '../../../errors.ts';
import * as arg from '../../../ir/arguments.ts';
import {
  add,
  binary,
  broadcast,
  cast,
  div,
  full,
  fullLike,
  mul,
  reduce,
  reshape,
  slice,
  sub,
  where,
} from '../../../ir/build.ts';
import { dims, type GraphBuilder, type Node } from '../../../ir/graph.ts';
import { normalizeAxis } from '../../../ir/shape.ts';
import { watch } from '../../debug.ts';
import { aTensor } from '../../expect.ts';
import type { Tensor } from '../../tensor.ts';
import { alongAxis, iota, narrowIndex, wideType } from '../../formula/elementwise.ts';
import { apply, checkFloat, checkInteger, show } from '../operand.ts';
import { padConstant, sliceAxis } from '../../formula/layout.ts';

/** How the elements of a segment are folded. */
export type SegmentReduce = 'sum' | 'mean' | 'prod' | 'max' | 'min';

export interface SegmentReduceOptions {
  /**
   * How many elements each segment has, [.., segments]; their sum is the size of the axis; by default
   * `offsets` say it.
   */
  readonly lengths?: Tensor;
  /**
   * Where each segment begins, and the end of the last: [.., segments + 1]; by default `lengths` say
   * it.
   */
  readonly offsets?: Tensor;
  /** The axis of the segments, 0 by default; lengths and offsets have the axes up to it. */
  readonly axis?: number;
  /** What each fold begins with, and gives for a segment of nothing; the fold's identity by default. */
  readonly initial?: number;
}

const takesSegmentReduce = arg.takes<typeof segmentReduce>(
  ['the operand', aTensor],
  ['reduction', arg.oneOf('sum', 'mean', 'prod', 'max', 'min')],
  [
    'options',
    arg.settings<SegmentReduceOptions>({
      lengths: aTensor,
      offsets: aTensor,
      axis: arg.integer,
      initial: arg.element,
    }),
  ],
);

const modes = { sum: 'add', mean: 'add', prod: 'mul', max: 'max', min: 'min' } as const;
const identities = { sum: 0, mean: 0, prod: 1, max: -Infinity, min: Infinity } as const;

/**
 * Folds of the updates from `starts[i]` up to `starts[i + 1]` along an axis, in order: starts are
 * i32 with one more element than there are segments, and have the axes up to this one.
 *
 * @internal
 */
export function foldSegments(
  b: GraphBuilder,
  updates: Node,
  starts: Node,
  axis: number,
  mode: 'add' | 'mul' | 'max' | 'min',
  identity: number,
): Node {
  const shape = dims(updates);
  const [size, more] = [shape[axis]!, dims(starts)[axis]!];
  const inside = binary(b, 'min', binary(b, 'max', starts, 0), size);
  const spread = shape.with(axis, more);
  const along = reshape(
    b,
    inside,
    spread.map((dim, i) => (i <= axis ? dim : 1)),
  );
  const none = full(b, shape.with(axis, more - 1), identity, updates.dtype);
  const order = broadcast(b, alongAxis(b, iota(b, [size], 0), shape.length, axis), shape);
  const inputs = [none, broadcast(b, along, spread), order, updates];
  return b.add('segmentReduce', inputs, { axis, mode }) as Node;
}

/**
 * Sums, means, products or extrema of segments of neighbours.
 *
 * @example
 * const v = sn.tensor([1, 2, 3]);
 * const lengths = sn.tensor([2, 1], { dtype: 'i32' });
 * sn.segmentReduce(v, 'max', { lengths });
 */
export function segmentReduce(x: Tensor, reduction: SegmentReduce, options: SegmentReduceOptions): Tensor {
  takesSegmentReduce('segmentReduce', x, reduction, options);
  checkFloat('segmentReduce', x);
  const { lengths, offsets, initial } = options;
  const given = lengths ?? offsets;
  if (given === undefined || (lengths !== undefined && offsets !== undefined)) {
    throw new TensorError('E_VALUE', 'segmentReduce', 'expects either lengths or offsets');
  }
  checkInteger('segmentReduce', 'lengths and offsets', given);
  const axis = normalizeAxis('segmentReduce', options.axis ?? 0, x.rank);
  const fits = given.rank === axis + 1 && given.shape.every((dim, i) => i === axis || dim === x.shape[i]);
  if (!fits || (offsets !== undefined && given.shape[axis] === 0)) {
    const expected = [...x.shape.slice(0, axis), offsets === undefined ? 'segments' : 'segments + 1'];
    const problem = `expects [${expected.join(',')}] for axis ${axis} of ${show(x)}: ${show(given)}`;
    throw new TensorError('E_SHAPE', 'segmentReduce', problem);
  }
  if (lengths !== undefined && lengths.size > 0) {
    const size = x.shape[axis]!;
    watch(
      'segmentReduce',
      'E_VALUE',
      [lengths],
      (b, [node]) => {
        const counts = cast(b, narrowIndex(b, node!), 'i32');
        const sums = reduce(b, 'sum', counts, [axis]);
        const [all, rows] = [counts, sums].map(({ shape }) => shape.map((_, i) => i)) as [number[], number[]];
        return [reduce(b, 'min', counts, all), reduce(b, 'min', sums, rows), reduce(b, 'max', sums, rows)];
      },
      ([least, low, high]) => {
        if (least! < 0) return `lengths must not be negative: ${least}`;
        const sum = Number(low) === size ? high : low;
        return Number(sum) === size ? undefined : `lengths add up to ${sum}, of ${size} on axis ${axis}`;
      },
    );
  }
  return apply([x, given], (b, node, told) => {
    const starts = lengths === undefined ? cast(b, narrowIndex(b, told), 'i32') : startsOf(b, told, axis);
    const wide = cast(b, node, wideType(x.dtype));
    return cast(b, folded(b, wide, starts, axis, reduction, initial), x.dtype);
  });
}

/** Where segments of these lengths begin and end. */
function startsOf(b: GraphBuilder, lengths: Node, axis: number): Node {
  const counted = cast(b, narrowIndex(b, lengths), 'i32');
  const attrs = { monoid: 'sum', axis, reverse: false, exclusive: false } as const;
  const ends = b.add('scan', [counted], attrs) as Node;
  const only = dims(lengths).map((_, i) => (i === axis ? 1 : 0));
  return padConstant(
    b,
    ends,
    only,
    only.map(() => 0),
    0,
  );
}

function folded(
  b: GraphBuilder,
  x: Node,
  starts: Node,
  axis: number,
  reduction: SegmentReduce,
  initial: number | undefined,
): Node {
  const fold = foldSegments(b, x, starts, axis, modes[reduction], identities[reduction]);
  const begun = initial === undefined ? fold : withInitial(b, fold, reduction, initial);
  if (reduction !== 'mean') return begun;
  const segments = dims(starts)[axis]! - 1;
  const later = slice(
    b,
    starts,
    dims(starts).map((_, i) => (i === axis ? 1 : 0)),
    dims(starts).with(axis, segments),
  );
  const length = sub(b, later, sliceAxis(b, starts, axis, 0, segments));
  const count = reshape(
    b,
    cast(b, length, x.dtype),
    dims(fold).map((dim, i) => (i <= axis ? dim : 1)),
  );
  const nothing = binary(b, 'eq', count, 0);
  const mean = div(b, begun, broadcast(b, where(b, nothing, fullLike(b, count, 1), count), dims(fold)));
  if (initial !== undefined) return mean;
  return where(b, broadcast(b, nothing, dims(fold)), fullLike(b, mean, NaN), mean);
}

function withInitial(b: GraphBuilder, fold: Node, reduction: SegmentReduce, initial: number): Node {
  const first = fullLike(b, fold, initial);
  switch (reduction) {
    case 'sum':
    case 'mean':
      return add(b, fold, first);
    case 'prod':
      return mul(b, fold, first);
    case 'max':
      return where(b, binary(b, 'lt', fold, first), first, fold);
    case 'min':
      return where(b, binary(b, 'lt', first, fold), first, fold);
  }
}
