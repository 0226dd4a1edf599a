// Writing at positions that are data, into copies: of slices of an axis, of elements in C-order, and
// of elements at positions given for several axes.

import type { DType } from '../../../ir/dtype.ts';
import { TensorError } from '../../../errors.ts';
import * as arg from '../../../ir/arguments.ts';
import { add, binary, broadcast, cast, full, mul, permute, reshape, sub, where } from '../../../ir/build.ts';
import { partType } from '../../../ir/dtype.ts';
import { dims, type GraphBuilder, type Node } from '../../../ir/graph.ts';
import type { ScatterMode } from '../../../ir/ops.ts';
import { normalizeAxis, sizeOf } from '../../../ir/shape.ts';
import { watchRange } from '../../debug.ts';
import { anOperand, aTensor } from '../../expect.ts';
import { asTensor, record } from '../../record.ts';
import { Tensor, type TensorLike } from '../../tensor.ts';
import { alongAxis, narrowIndex } from '../../formula/elementwise.ts';
import { apply, checkInteger, checkRank, commonShape, show } from '../operand.ts';
import { fromEnd, selectRows } from '../shape/gather.ts';
import { flatPosition, mergedAxes } from '../shape/indexing.ts';
import { lineShape } from '../shape/places.ts';
import {
  checkFolded,
  checkSameType,
  reduceAt,
  scatterNode,
  writeRows,
  type ScatterReduceOptions,
} from '../shape/scatter.ts';
import { flattened, runningCount } from './count.ts';

const takesIndexFill = arg.takes<typeof indexFill>(
  ['the operand', aTensor],
  ['axis', arg.inside()],
  ['the index', aTensor],
  ['the value', anOperand],
);

/**
 * A copy of x with one value in the listed slices of an axis; positions below 0 count from the end.
 *
 * @example
 * const x = sn.tensor([[1, 2, 3], [4, 5, 6]]);
 * const i = sn.tensor([1, 0], { dtype: 'i32' });
 * sn.indexFill(x, 1, i, 0);
 */
export function indexFill<D extends DType>(
  x: Tensor<D>,
  axis: number,
  index: Tensor,
  value: TensorLike,
): Tensor<D> {
  takesIndexFill('indexFill', x, axis, index, value);
  checkInteger('indexFill', 'the index', index);
  checkRank('indexFill', 'the index', index, 0, 1);
  const line = lineShape(x);
  const at = normalizeAxis('indexFill', axis, line.length);
  const size = line[at]!;
  if (value instanceof Tensor && value.rank !== 0)
    throw new TensorError('E_SHAPE', 'indexFill', `the value must have rank 0: ${show(value)}`);
  watchRange('indexFill', 'index', index, -size, size, `axis ${axis} of ${show(x)}`);
  // A number is a constant of the parts' dtype: complex ones are made of two.
  const filling = asTensor(value, partType(x.dtype), 'indexFill');
  return apply([x, index, filling], (b, node, places, one) => {
    const row = fromEnd(b, narrowIndex(b, reshape(b, places, [index.size])), size);
    const none = full(b, [size], 0, 'bool');
    const hit = scatterNode(b, none, row, full(b, [index.size], 1, 'bool'), 0, 'set');
    const spread = broadcast(b, alongAxis(b, hit, line.length, at), line);
    const filled = broadcast(b, reshape(b, cast(b, one, x.dtype), []), line);
    return reshape(b, where(b, spread, filled, reshape(b, node, line)), x.shape);
  });
}

const takesIndexReduce = arg.takes<typeof indexReduce>(
  ['the operand', aTensor],
  ['axis', arg.inside()],
  ['the index', aTensor],
  ['the source', aTensor],
  ['reduction', arg.oneOf('prod', 'mean', 'amax', 'amin')],
  ['options', arg.options<ScatterReduceOptions>({ includeSelf: arg.flag })],
);

/**
 * A copy of x with slice i of the source folded into slice `index[i]` of an axis.
 *
 * @example
 * const x = sn.tensor([[1, 2, 3], [4, 5, 6]]);
 * const i = sn.tensor([1, 0], { dtype: 'i32' });
 * const rows = sn.tensor([[7, 8, 9], [1, 1, 1]]);
 * sn.indexReduce(x, 0, i, rows, 'amax');
 */
export function indexReduce(
  x: Tensor,
  axis: number,
  index: Tensor,
  source: Tensor,
  reduction: 'prod' | 'mean' | 'amax' | 'amin',
  options: ScatterReduceOptions = {},
): Tensor {
  takesIndexReduce('indexReduce', x, axis, index, source, reduction, options);
  checkFolded('indexReduce', reduction, x);
  return writeRows('indexReduce', x, axis, index, source, (b, node, places, values, at) =>
    reduceAt(b, node, places, values, at, reduction, options),
  );
}

export interface PutOptions {
  /** Adds to what is there instead of replacing it; false by default. */
  readonly accumulate?: boolean;
}

const putOptions = arg.options<PutOptions>({ accumulate: arg.flag });
const takesPut = arg.takes<typeof put>(
  ['the operand', aTensor],
  ['the index', aTensor],
  ['the source', aTensor],
  ['options', putOptions],
);

/**
 * A copy of x with the source's elements at these positions in C-order, those below 0 counted from
 * the end.
 *
 * @example
 * const x = sn.tensor([[1, 2, 3], [4, 5, 6]]);
 * const v = sn.tensor([1, 2, 3]);
 * const i = sn.tensor([1, 0], { dtype: 'i32' });
 * sn.put(x, i, v.slice(0, 0, 2));
 */
export function put<D extends DType>(
  x: Tensor<D>,
  index: Tensor,
  source: Tensor,
  options: PutOptions = {},
): Tensor<D> {
  takesPut('put', x, index, source, options);
  checkInteger('put', 'the index', index);
  checkSameType('put', x, source);
  if (index.size !== source.size)
    throw new TensorError(
      'E_SHAPE',
      'put',
      `one position for each element: index ${show(index)}, source ${show(source)}`,
    );
  watchRange('put', 'index', index, -x.size, x.size, `the ${x.size} elements of ${show(x)}`);
  const mode = options.accumulate === true ? 'add' : 'set';
  return apply([x, index, source], (b, node, places, values) => {
    const flat = fromEnd(b, narrowIndex(b, flattened(b, places)), x.size);
    return reshape(b, scatterNode(b, flattened(b, node), flat, flattened(b, values), 0, mode), x.shape);
  });
}

const places: arg.Kind<readonly (Tensor | null)[]> = arg.listOf({
  accepts: (value) => value === null || aTensor.accepts(value),
  refuse: (op, what, value) => aTensor.refuse(op, what, value),
});
const takesIndexPut = arg.takes<typeof indexPut>(
  ['the operand', aTensor],
  ['the indices', places],
  ['the values', aTensor],
  ['options', putOptions],
);

/**
 * A copy of x with `values` where `x.at(...indices)` reads: integer tensors, one for each leading
 * axis and `null` for a whole axis, or one mask over leading axes. Values broadcast.
 *
 * @example
 * const x = sn.tensor([[1, 2, 3], [4, 5, 6]]);
 * const i = sn.tensor([1, 0], { dtype: 'i32' });
 * const rows = sn.tensor([[7, 8, 9], [1, 1, 1]]);
 * sn.indexPut(x, [i], rows);
 */
export function indexPut(
  x: Tensor,
  indices: readonly (Tensor | null)[],
  values: Tensor,
  options: PutOptions = {},
): Tensor {
  takesIndexPut('indexPut', x, indices, values, options);
  checkSameType('indexPut', x, values);
  const [mask] = indices;
  if (mask instanceof Tensor && mask.dtype === 'bool' && indices.length === 1)
    return putByMask(x, mask, values, options.accumulate === true);
  const given = indices.flatMap((index, axis) => (index === null ? [] : [{ axis, index }]));
  for (const { index } of given) {
    if (index.dtype !== 'bool') checkInteger('indexPut', 'an index', index);
    else {
      const problem = `a mask stands alone: ${show(index)}`;
      throw new TensorError('E_INDEX', 'indexPut', problem, 'await nonzero(mask), and its columns');
    }
  }
  if (indices.length > x.rank)
    throw new TensorError('E_INDEX', 'indexPut', `${indices.length} indices for ${show(x)}`);
  if (given.length === 0)
    throw new TensorError('E_INDEX', 'indexPut', 'expects at least one index that is not null');
  for (const { axis, index } of given) {
    const size = x.shape[axis]!;
    watchRange('indexPut', 'index', index, -size, size, `axis ${axis} of ${show(x)}`);
  }
  const tensors = given.map(({ index }) => index);
  const common = commonShape('indexPut', tensors);
  const axes = given.map(({ axis }) => axis);
  checkSpread('indexPut', values, writtenShape(x.shape, axes, common));
  return record([x, values, ...tensors], (b, [node, source, ...indexNodes]) => {
    const places = indexNodes.map((index) => broadcast(b, cast(b, narrowIndex(b, index), 'i32'), common));
    return writeAxes(b, node!, axes, places, source!, options.accumulate === true ? 'add' : 'set');
  });
}

/** The shape of what is read, or written, at positions of this common shape on these axes. @internal */
export function writtenShape(
  shape: readonly number[],
  axes: readonly number[],
  common: readonly number[],
): number[] {
  const { before, after } = mergedAxes(shape.length, axes);
  return [...before.map((axis) => shape[axis]!), ...common, ...after.map((axis) => shape[axis]!)];
}

/**
 * x with the source, which broadcasts to what is read there, folded in at positions of equal shapes
 * on these axes.
 *
 * @internal
 */
export function writeAxes(
  b: GraphBuilder,
  x: Node,
  axes: readonly number[],
  places: readonly Node[],
  source: Node,
  mode: ScatterMode,
): Node {
  const shape = dims(x);
  const merged = mergedAxes(shape.length, axes);
  const sizes = (list: readonly number[]): number[] => list.map((axis) => shape[axis]!);
  const [before, after] = [sizes(merged.before), sizes(merged.after)];
  const common = dims(places[0]!);
  const count = sizeOf(common);
  const order = [...merged.before, ...merged.axes, ...merged.after];
  const flat = flatPosition(b, sizes(merged.axes), places);
  const along = reshape(b, flat, [...before.map(() => 1), count, ...after.map(() => 1)]);
  const table = reshape(b, permute(b, x, order), [...before, sizeOf(sizes(merged.axes)), ...after]);
  const spread = [...before, count, ...after];
  const written = scatterNode(
    b,
    table,
    broadcast(b, along, spread),
    reshape(b, broadcast(b, source, [...before, ...common, ...after]), spread),
    before.length,
    mode,
  );
  return permute(
    b,
    reshape(b, written, sizes(order)),
    order.map((_, axis) => order.indexOf(axis)),
  );
}

/** The values must broadcast to this shape. @internal */
export function checkSpread(op: string, values: Tensor, shape: readonly number[]): void {
  const offset = shape.length - values.rank;
  if (offset >= 0 && values.shape.every((dim, i) => dim === 1 || dim === shape[offset + i])) return;
  const problem = `the values must broadcast to [${shape.join(',')}]: ${show(values)}`;
  throw new TensorError('E_SHAPE', op, problem);
}

/** A mask must cover leading axes of x. @internal */
export function checkMask(op: string, x: Tensor, mask: Tensor): void {
  if (mask.rank <= x.rank && mask.shape.every((dim, axis) => dim === x.shape[axis])) return;
  throw new TensorError('E_SHAPE', op, `the mask must cover x's leading axes: ${show(x, mask)}`);
}

/** The r-th of the values, or the only one, where a mask over leading axes is true for the r-th time. */
function putByMask(x: Tensor, mask: Tensor, values: Tensor, accumulate: boolean): Tensor {
  checkMask('indexPut', x, mask);
  const rest = x.shape.slice(mask.rank);
  const isListed = values.rank === rest.length + 1 && values.shape[0] !== 1;
  const count = isListed ? values.shape[0]! : 1;
  checkSpread('indexPut', values, values.rank > rest.length ? [count, ...rest] : rest);
  return apply([x, mask, values], (b, node, kept, source) => {
    const flat = flattened(b, kept);
    const full = [mask.size, ...rest];
    const rows = isListed
      ? selectRows(b, broadcast(b, source, [count, ...rest]), sub(b, runningCount(b, flat), 1), 0)
      : broadcast(b, source, full);
    const own = reshape(b, node, full);
    const hit = broadcast(b, reshape(b, flat, [mask.size, ...rest.map(() => 1)]), full);
    return reshape(b, where(b, hit, folded(b, own, rows, accumulate ? 'add' : 'set'), own), x.shape);
  });
}

/** What an element and the value that meets it become. @internal */
export function folded(b: GraphBuilder, x: Node, value: Node, mode: ScatterMode): Node {
  switch (mode) {
    case 'set':
      return value;
    case 'add':
      return x.dtype === 'bool' ? binary(b, 'or', x, value) : add(b, x, value);
    case 'mul':
      return x.dtype === 'bool' ? binary(b, 'and', x, value) : mul(b, x, value);
    case 'min':
    case 'max':
      return binary(b, mode, x, value);
  }
}
