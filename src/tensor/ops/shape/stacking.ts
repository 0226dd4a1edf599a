// Tensors put together along axes by their names (rows, columns, depth), taken apart the same way,
// and lists of tensors brought to a common shape.

import type { DType } from '../../../ir/dtype.ts';
import { TensorError } from '../../../errors.ts';
import * as arg from '../../../ir/arguments.ts';
import { full } from '../../../ir/build.ts';
import { checkList, normalizeAxis } from '../../../ir/shape.ts';
import { aTensor, tensors as someTensors } from '../../expect.ts';
import { fromHost, record, recordMany } from '../../record.ts';
import type { Tensor } from '../../tensor.ts';
import { cast } from '../elementwise/cast.ts';
import { commonShape, resultType, show } from '../operand.ts';
import { cat, meshgrid, split, stack } from './join.ts';
import { take } from './gather.ts';
import { sliceAxis } from '../../formula/layout.ts';
import { pad } from './movement.ts';
import { expand, reshape } from './view.ts';

const takesTensor = arg.takes<(x: Tensor) => Tensor>(['x', aTensor]);
const takesList = arg.takes<(tensors: readonly Tensor[]) => unknown>(['tensors', someTensors]);

/**
 * x with at least one axis: a number becomes a vector of it.
 *
 * @family Views and movement
 * @torch torch.atleast_1d
 * @jax jnp.atleast_1d
 * @example
 * const v = sn.tensor([1, 2, 3]);
 * sn.atleast1d(v);
 */
export function atleast1d<D extends DType>(x: Tensor<D>): Tensor<D> {
  takesTensor('atleast1d', x);
  return withRank(x, 1);
}

/**
 * x with at least two axes: a vector becomes a row.
 *
 * @family Views and movement
 * @torch torch.atleast_2d
 * @jax jnp.atleast_2d
 * @example
 * const v = sn.tensor([1, 2, 3]);
 * sn.atleast2d(v);
 */
export function atleast2d<D extends DType>(x: Tensor<D>): Tensor<D> {
  takesTensor('atleast2d', x);
  return withRank(x, 2);
}

/**
 * x with at least three axes: a vector becomes [1, n, 1], a matrix [m, n, 1].
 *
 * @family Views and movement
 * @torch torch.atleast_3d
 * @jax jnp.atleast_3d
 * @example
 * const v = sn.tensor([1, 2, 3]);
 * sn.atleast3d(v);
 */
export function atleast3d<D extends DType>(x: Tensor<D>): Tensor<D> {
  takesTensor('atleast3d', x);
  return withRank(x, 3);
}

/** A tensor without elements. */
function nothing(shape: readonly number[], dtype: DType): Tensor {
  return record([], (b) => full(b, shape, 0, dtype));
}

function withRank(x: Tensor, rank: 1 | 2 | 3): Tensor {
  if (x.rank >= rank) return x;
  const before = rank > 1 && x.rank < 2 ? 1 : 0;
  const after = rank - x.rank - before;
  if (x.rank === 0) return reshape(x, new Array<number>(rank).fill(1));
  return reshape(x, [...new Array<number>(before).fill(1), ...x.shape, ...new Array<number>(after).fill(1)]);
}

function joined(op: string, tensors: readonly Tensor[], rank: 1 | 2 | 3, axis: number): Tensor {
  takesList(op, tensors);
  if (tensors.length === 0) throw new TensorError('E_VALUE', op, 'expects at least one tensor');
  return cat(
    tensors.map((x) => withRank(x, rank)),
    axis,
  );
}

/**
 * Joined side by side: along the second axis, vectors along their only one.
 *
 * @example
 * const x = sn.tensor([[1, 2, 3], [4, 5, 6]]);
 * const y = sn.tensor([[7, 8, 9], [0, 1, 2]]);
 * sn.hstack([x, y]);
 */
export function hstack(tensors: readonly Tensor[]): Tensor {
  takesList('hstack', tensors);
  return joined('hstack', tensors, 1, (tensors[0]?.rank ?? 0) < 2 ? 0 : 1);
}

/**
 * Joined one below the other: along the first axis, vectors as rows.
 *
 * @example
 * const x = sn.tensor([[1, 2, 3], [4, 5, 6]]);
 * const y = sn.tensor([[7, 8, 9], [0, 1, 2]]);
 * sn.vstack([x, y]);
 */
export function vstack(tensors: readonly Tensor[]): Tensor {
  return joined('vstack', tensors, 2, 0);
}

/**
 * Joined along the third axis; matrices get one.
 *
 * @example
 * const x = sn.tensor([[1, 2, 3], [4, 5, 6]]);
 * const y = sn.tensor([[7, 8, 9], [0, 1, 2]]);
 * sn.dstack([x, y]);
 */
export function dstack(tensors: readonly Tensor[]): Tensor {
  return joined('dstack', tensors, 3, 2);
}

/**
 * Joined along the second axis, vectors as columns.
 *
 * @example
 * const x = sn.tensor([[1, 2, 3], [4, 5, 6]]);
 * const y = sn.tensor([[7, 8, 9], [0, 1, 2]]);
 * sn.columnStack([x, y]);
 */
export function columnStack(tensors: readonly Tensor[]): Tensor {
  takesList('columnStack', tensors);
  if (tensors.length === 0) throw new TensorError('E_VALUE', 'columnStack', 'expects at least one tensor');
  const columns = tensors.map((x) => (x.rank < 2 ? reshape(x, [x.size, 1]) : x));
  return cat(columns, 1);
}

const takesTensorSplit = arg.takes<typeof tensorSplit>(
  ['x', aTensor],
  ['the parts', arg.inside()],
  ['axis', arg.inside()],
);

/**
 * `parts` parts along an axis, the first ones longer by one where they cannot be equal; or the
 * parts between the listed places, which count from the end where negative.
 *
 * @jax jnp.array_split
 * @example
 * const x = sn.tensor([[1, 2, 3], [4, 5, 6]]);
 * sn.tensorSplit(x, 2, 1);
 */
export function tensorSplit(x: Tensor, parts: number | readonly number[], axis = 0): Tensor[] {
  takesTensorSplit('tensorSplit', x, parts, axis);
  return splitAlong('tensorSplit', x, parts, normalizeAxis('tensorSplit', axis, x.rank));
}

function splitAlong(op: string, x: Tensor, parts: number | readonly number[], axis: number): Tensor[] {
  const total = x.shape[axis]!;
  if (typeof parts === 'number') {
    if (!arg.count(1).accepts(parts)) arg.count(1).refuse(op, 'the number of parts', parts);
    const [each, longer] = [Math.floor(total / parts), total % parts];
    return split(
      x,
      Array.from({ length: parts }, (_, i) => each + (i < longer ? 1 : 0)),
      axis,
    );
  }
  checkList(op, 'places', parts);
  const inside = (place: number): number => {
    if (!arg.integer.accepts(place)) arg.integer.refuse(op, 'a place', place);
    return Math.min(total, Math.max(0, place < 0 ? place + total : place));
  };
  const places = [0, ...Array.from(parts, inside), total];
  return recordMany([x], (b, [node]) =>
    places.slice(1).map((stop, i) => {
      const start = Math.min(places[i]!, total);
      return sliceAxis(b, node!, axis, start, Math.max(0, stop - start));
    }),
  );
}

function divided(
  op: string,
  x: Tensor,
  parts: number | readonly number[],
  axis: number,
  rank: number,
): Tensor[] {
  takesTensorSplit(op, x, parts);
  if (x.rank < rank)
    throw new TensorError('E_SHAPE', op, `expects at least ${rank} axes: ${show(x)}`, 'tensorSplit');
  if (typeof parts === 'number' && parts > 0 && x.shape[axis]! % parts !== 0) {
    const problem = `${parts} equal parts do not fit axis ${axis} of ${show(x)}`;
    throw new TensorError('E_SHAPE', op, problem, 'tensorSplit');
  }
  return splitAlong(op, x, parts, axis);
}

/**
 * Equal parts, or those between places, along the second axis; of vectors along their only one.
 *
 * @example
 * const x = sn.tensor([[1, 2, 3], [4, 5, 6]]);
 * sn.hsplit(x, 3);
 */
export function hsplit(x: Tensor, parts: number | readonly number[]): Tensor[] {
  takesTensor('hsplit', x);
  return divided('hsplit', x, parts, x.rank === 1 ? 0 : 1, 1);
}

/**
 * Equal parts, or those between places, along the first axis.
 *
 * @example
 * const x = sn.tensor([[1, 2, 3], [4, 5, 6]]);
 * sn.vsplit(x, 2);
 */
export function vsplit(x: Tensor, parts: number | readonly number[]): Tensor[] {
  return divided('vsplit', x, parts, 0, 2);
}

/**
 * Equal parts, or those between places, along the third axis.
 *
 * @example
 * const cube = sn.linspace(0, 7, 8).reshape([2, 2, 2]);
 * sn.dsplit(cube, 2);
 */
export function dsplit(x: Tensor, parts: number | readonly number[]): Tensor[] {
  return divided('dsplit', x, parts, 2, 3);
}

/**
 * One matrix with the given ones along its diagonal, 0 elsewhere; vectors are rows.
 *
 * @jax jax.scipy.linalg.block_diag
 * @example
 * const x = sn.tensor([[1, 2, 3], [4, 5, 6]]);
 * const v = sn.tensor([1, 2, 3]);
 * sn.blockDiag([x, v]);
 */
export function blockDiag(tensors: readonly Tensor[]): Tensor {
  takesList('blockDiag', tensors);
  if (tensors.length === 0) return nothing([1, 0], 'f32');
  const dtype = resultType(tensors);
  const blocks = tensors.map((x) => {
    if (x.rank > 2) throw new TensorError('E_SHAPE', 'blockDiag', `expects matrices: ${show(x)}`);
    return cast(withRank(x, 2), dtype);
  });
  const width = blocks.reduce((sum, block) => sum + block.shape[1]!, 0);
  let left = 0;
  const rows = blocks.map((block) => {
    const before = left;
    left += block.shape[1]!;
    return pad(block, [
      [0, 0],
      [before, width - left],
    ]);
  });
  return cat(rows, 0);
}

/**
 * All tensors, repeated to the shape that they broadcast to.
 *
 * @jax jnp.broadcast_arrays
 * @example
 * const x = sn.tensor([[1, 2, 3], [4, 5, 6]]);
 * const v = sn.tensor([1, 2, 3]);
 * sn.broadcastTensors([x, v]);
 */
export function broadcastTensors(tensors: readonly Tensor[]): Tensor[] {
  takesList('broadcastTensors', tensors);
  const shape = commonShape('broadcastTensors', tensors);
  return tensors.map((x) => expand(x, shape));
}

/**
 * Every choice of one element of each vector, a row each; of one vector, its elements.
 *
 * @example
 * const v = sn.tensor([1, 2, 3]);
 * const w = sn.tensor([4, 5]);
 * sn.cartesianProd([v, w]);
 */
export function cartesianProd(vectors: readonly Tensor[]): Tensor {
  takesList('cartesianProd', vectors);
  const [first] = vectors;
  if (first === undefined || !vectors.every((x) => x.rank === 1))
    throw new TensorError('E_SHAPE', 'cartesianProd', `expects vectors: ${show(...vectors)}`);
  if (vectors.length === 1) return first;
  const dtype = resultType(vectors);
  const grid = meshgrid(vectors.map((x) => cast(x, dtype)));
  return stack(
    grid.map((x) => reshape(x, [x.size])),
    1,
  );
}

export interface CombinationsOptions {
  /** Whether an element may be chosen again; false by default. */
  readonly withReplacement?: boolean;
}

const takesCombinations = arg.takes<typeof combinations>(
  ['x', aTensor],
  ['the number of elements', arg.optional(arg.count(0))],
  ['options', arg.options<CombinationsOptions>({ withReplacement: arg.flag })],
);

/**
 * Every choice of `count` elements of a vector in their order, a row each.
 *
 * @example
 * const v = sn.tensor([1, 2, 3]);
 * sn.combinations(v);
 */
export function combinations(x: Tensor, count = 2, options: CombinationsOptions = {}): Tensor {
  takesCombinations('combinations', x, count, options);
  if (x.rank !== 1) throw new TensorError('E_SHAPE', 'combinations', `expects a vector: ${show(x)}`);
  if (count === 0) return nothing([0], x.dtype);
  const rows = choices(x.size, count, options.withReplacement === true);
  if (rows.length === 0) return nothing([0, count], x.dtype);
  return reshape(take(x, fromHost(Int32Array.from(rows.flat()), [rows.length * count], 'i32')), [
    rows.length,
    count,
  ]);
}

/** The places of every choice, in lexicographic order. */
function choices(size: number, count: number, again: boolean): number[][] {
  let found: number[][] = [[]];
  for (let k = 0; k < count; k++) {
    found = found.flatMap((places) => {
      const last = places.at(-1);
      const start = last === undefined ? 0 : again ? last : last + 1;
      return Array.from({ length: Math.max(0, size - start) }, (_, i) => [...places, start + i]);
    });
  }
  return found;
}
