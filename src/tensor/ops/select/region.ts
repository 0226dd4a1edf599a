// Writing into parts of a copy whose places are known: slices, diagonals, strided elements. Each
// element chooses between the two by where it stands, so these fuse with what reads them.

import type { DType } from '../../../ir/dtype.ts';
import { TensorError } from '../../../errors.ts';
import * as arg from '../../../ir/arguments.ts';
import {
  add,
  binary,
  broadcast,
  constant,
  full,
  mul,
  permute,
  reshape,
  sub,
  where,
} from '../../../ir/build.ts';
import type { GraphBuilder, Node } from '../../../ir/graph.ts';
import { checkList, normalizeAxis, sizeOf, toShape } from '../../../ir/shape.ts';
import { aTensor } from '../../expect.ts';
import type { Tensor } from '../../tensor.ts';
import { alongAxis, iota } from '../../formula/elementwise.ts';
import { apply, show } from '../operand.ts';
import { aStart, checkStart, resolvePosition, resolveRange, runFrom } from '../shape/indexing.ts';
import { padConstant } from '../../formula/layout.ts';
import { checkSameType, scatterNode } from '../shape/scatter.ts';
import { flattened } from './count.ts';

function checkSource(op: string, x: Tensor, source: Tensor, shape: readonly number[]): void {
  checkSameType(op, x, source);
  if (source.rank === shape.length && source.shape.every((dim, i) => dim === shape[i])) return;
  const problem = `the source must be [${shape.join(',')}]: x ${show(x)}, source ${show(source)}`;
  throw new TensorError('E_SHAPE', op, problem);
}

/** The source at `first`, `first + step`, … of an axis of x; both of one rank. */
function written(
  b: GraphBuilder,
  x: Node,
  source: Node,
  shape: readonly number[],
  axis: number,
  [first, count, step]: readonly [number, number, number],
): Node {
  if (count === 0) return x;
  const only = (value: number): number[] => shape.map((_, i) => (i === axis ? value : 0));
  const reach = (count - 1) * step + 1;
  const placed = b.add('pad', [source], {
    low: only(first),
    high: only(shape[axis]! - first - reach),
    interior: only(step - 1),
    value: 0,
  }) as Node;
  const place = iota(b, shape, axis);
  const conditions = [
    ...(first === 0 ? [] : [binary(b, 'lt', full(b, shape, first - 1, 'i32'), place)]),
    ...(first + reach === shape[axis] ? [] : [binary(b, 'lt', place, first + reach)]),
    ...(step === 1 ? [] : [binary(b, 'eq', binary(b, 'mod', sub(b, place, first), step), 0)]),
  ];
  if (conditions.length === 0) return source;
  const inside = conditions.reduce((one, other) => binary(b, 'and', one, other));
  return where(b, inside, placed, x);
}

const takesSelectScatter = arg.takes<typeof selectScatter>(
  ['the operand', aTensor],
  ['the source', aTensor],
  ['axis', arg.inside()],
  ['the index', arg.inside()],
);

/**
 * A copy of x with the source in place of `select(x, axis, index)`.
 *
 * @example
 * const x = sn.tensor([[1, 2, 3], [4, 5, 6]]);
 * const v = sn.tensor([1, 2, 3]);
 * sn.selectScatter(x, v, 0, 1);
 */
export function selectScatter<D extends DType>(
  x: Tensor<D>,
  source: Tensor,
  axis: number,
  index: number,
): Tensor<D> {
  takesSelectScatter('selectScatter', x, source, axis, index);
  const at = normalizeAxis('selectScatter', axis, x.rank);
  const position = resolvePosition('selectScatter', index, x.shape[at]!, at, x);
  checkSource('selectScatter', x, source, x.shape.toSpliced(at, 1));
  return apply([x, source], (b, node, part) =>
    written(b, node, reshape(b, part, x.shape.with(at, 1)), x.shape, at, [position, 1, 1]),
  );
}

const takesSliceScatter = arg.takes<typeof sliceScatter>(
  ['the operand', aTensor],
  ['the source', aTensor],
  ['axis', arg.optional(arg.integer)],
  ['the start', arg.optional(arg.integer)],
  ['the stop', arg.optional(arg.integer)],
  ['the step', arg.optional(arg.count(1))],
);

/**
 * A copy of x with the source in place of `slice(x, axis, start, stop, step)`.
 *
 * @jax lax.dynamic_update_slice_in_dim
 * @example
 * const x = sn.tensor([[1, 2, 3], [4, 5, 6]]);
 * const column = sn.tensor([[7], [8]]);
 * sn.sliceScatter(x, column, 1, 1, 2);
 */
export function sliceScatter<D extends DType>(
  x: Tensor<D>,
  source: Tensor,
  axis = 0,
  start?: number,
  stop?: number,
  step?: number,
): Tensor<D> {
  takesSliceScatter('sliceScatter', x, source, axis, start, stop, step);
  const at = normalizeAxis('sliceScatter', axis, x.rank);
  const range = resolveRange('sliceScatter', { start, stop, step }, x.shape[at]!);
  checkSource('sliceScatter', x, source, x.shape.with(at, range[1]));
  return apply([x, source], (b, node, part) => written(b, node, part, x.shape, at, range));
}

export interface DiagonalScatterOptions {
  /** Diagonals above the main one are positive, those below negative; 0 by default. */
  readonly offset?: number;
  /** The rows; 0 by default. */
  readonly axis1?: number;
  /** The columns; 1 by default. */
  readonly axis2?: number;
}

const takesDiagonalScatter = arg.takes<typeof diagonalScatter>(
  ['the operand', aTensor],
  ['the source', aTensor],
  [
    'options',
    arg.options<DiagonalScatterOptions>({ offset: arg.integer, axis1: arg.integer, axis2: arg.integer }),
  ],
);

/**
 * A copy of x with the source in place of `diagonal(x, options)`.
 *
 * @example
 * const x = sn.tensor([[1, 2, 3], [4, 5, 6]]);
 * const v = sn.tensor([1, 2, 3]);
 * sn.diagonalScatter(x, v.slice(0, 0, 2));
 */
export function diagonalScatter<D extends DType>(
  x: Tensor<D>,
  source: Tensor,
  options: DiagonalScatterOptions = {},
): Tensor<D> {
  takesDiagonalScatter('diagonalScatter', x, source, options);
  const { offset = 0, axis1 = 0, axis2 = 1 } = options;
  const [row, column] = [axis1, axis2].map((axis) => normalizeAxis('diagonalScatter', axis, x.rank));
  if (row === undefined || column === undefined || row === column)
    throw new TensorError('E_AXIS', 'diagonalScatter', `rows and columns are one axis: ${axis1}, ${axis2}`);
  const [rows, columns] = [x.shape[row]!, x.shape[column]!];
  const [low, right] = [Math.max(0, -offset), Math.max(0, offset)];
  const length = Math.max(0, Math.min(rows - low, columns - right));
  const others = x.shape.flatMap((_, axis) => (axis === row || axis === column ? [] : [axis]));
  const rest = others.map((axis) => x.shape[axis]!);
  checkSource('diagonalScatter', x, source, [...rest, length]);
  if (length === 0) return apply([x, source], (_, node) => node);
  return apply([x, source], (b, node, part) => {
    const none = rest.map(() => 0);
    const down = padConstant(b, part, [...none, low], [...none, rows - low - length], 0);
    const spread = broadcast(b, reshape(b, down, [...rest, rows, 1]), [...rest, rows, columns]);
    const order = [...others, row, column];
    const placed = permute(
      b,
      spread,
      order.map((_, axis) => order.indexOf(axis)),
    );
    const away = sub(b, iota(b, x.shape, column), iota(b, x.shape, row));
    return where(b, binary(b, 'eq', away, offset), placed, node);
  });
}

const takesSliceWrite = arg.takes<typeof sliceWrite>(
  ['the operand', aTensor],
  ['axis', arg.inside()],
  ['the start', aStart],
  ['the source', aTensor],
);

/**
 * A copy of x with the source from `start` of an axis on, all of it inside: what a cache of keys and
 * values does at each step. Donated to a compiled function, x itself is written.
 *
 * @jax lax.dynamic_update_slice_in_dim
 * @example
 * const x = sn.tensor([[1, 2, 3], [4, 5, 6]]);
 * const column = sn.tensor([[7], [8]]);
 * sn.sliceWrite(x, 1, 2, column);
 */
export function sliceWrite<D extends DType>(
  x: Tensor<D>,
  axis: number,
  start: number | Tensor,
  source: Tensor,
): Tensor<D> {
  takesSliceWrite('sliceWrite', x, axis, start, source);
  const at = normalizeAxis('sliceWrite', axis, x.rank);
  const size = x.shape[at]!;
  const length = source.shape[at] ?? 0;
  checkSource('sliceWrite', x, source, x.shape.with(at, length));
  const from = typeof start === 'number' && start < 0 ? start + size : start;
  if (typeof from === 'number' && (from < 0 || from + length > size)) {
    const problem = `[${from}, ${from + length}) leaves axis ${axis} of ${show(x)}`;
    throw new TensorError('E_INDEX', 'sliceWrite', problem);
  }
  if (typeof from !== 'number') checkStart('sliceWrite', x, at, from, length);
  const place = typeof from === 'number' ? undefined : from;
  return apply([x, source, place], (b, node, part, first) => {
    const run = runFrom(b, first ?? constant(b, from as number, 'i32'), size, length);
    const along = broadcast(b, alongAxis(b, run, x.rank, at), source.shape);
    return scatterNode(b, node, along, part, at, 'set');
  });
}

const takesAsStrided = arg.takes<typeof asStrided>(
  ['the operand', aTensor],
  ['the shape', arg.inside()],
  ['the strides', arg.inside()],
  ['the offset', arg.optional(arg.integer)],
);

/** The positions that a strided view reads, all of them inside x. */
function stridedPlaces(
  op: string,
  x: Tensor,
  given: readonly number[],
  steps: readonly number[],
  offset: number,
): (b: GraphBuilder) => Node {
  const shape = toShape(op, given);
  checkList(op, 'the strides', steps);
  const strides = Array.from(steps);
  if (strides.length !== shape.length || !strides.every((stride) => Number.isSafeInteger(stride))) {
    throw new TensorError('E_SHAPE', op, `expects one stride for each axis of [${shape.join(',')}]`);
  }
  const reaches = shape.map((dim, i) => (Math.max(1, dim) - 1) * strides[i]!);
  const part = (sign: 1 | -1): number =>
    reaches.reduce((sum, reach) => (reach * sign > 0 ? sum + reach : sum), offset);
  const [least, greatest] = [part(-1), part(1)];
  if (sizeOf(shape) > 0 && (least < 0 || greatest >= x.size)) {
    const problem = `elements ${least} to ${greatest} leave the ${x.size} of ${show(x)}`;
    throw new TensorError('E_INDEX', op, problem);
  }
  return (b) => {
    const moving = shape.flatMap((dim, axis) => (dim > 1 && strides[axis] !== 0 ? [axis] : []));
    const start = full(b, shape, sizeOf(shape) === 0 ? 0 : offset, 'i32');
    return moving.reduce((sum, axis) => add(b, sum, mul(b, iota(b, shape, axis), strides[axis]!)), start);
  };
}

/**
 * The element at `offset + Σ iₖ·strideₖ` of x in C-order at each position i of a shape: views of any
 * strides, 0 and negative ones too.
 *
 * @family Views and movement
 * @example
 * const x = sn.tensor([[1, 2, 3], [4, 5, 6]]);
 * sn.asStrided(x, [2, 2], [1, 2], 1);
 */
export function asStrided<D extends DType>(
  x: Tensor<D>,
  shape: readonly number[],
  strides: readonly number[],
  offset = 0,
): Tensor<D> {
  takesAsStrided('asStrided', x, shape, strides, offset);
  const places = stridedPlaces('asStrided', x, shape, strides, offset);
  return apply([x], (b, node) => {
    const found = b.add('gather', [flattened(b, node), flattened(b, places(b))], { axis: 0 });
    return reshape(b, found as Node, [...shape]);
  });
}

const takesAsStridedScatter = arg.takes<typeof asStridedScatter>(
  ['the operand', aTensor],
  ['the source', aTensor],
  ['the shape', arg.inside()],
  ['the strides', arg.inside()],
  ['the offset', arg.optional(arg.integer)],
);

/**
 * A copy of x with the source in place of `asStrided(x, shape, strides, offset)`.
 *
 * @example
 * const x = sn.tensor([[1, 2, 3], [4, 5, 6]]);
 * const s = sn.tensor([[7, 8], [9, 10]]);
 * sn.asStridedScatter(x, s, [2, 2], [3, 1]);
 */
export function asStridedScatter<D extends DType>(
  x: Tensor<D>,
  source: Tensor,
  shape: readonly number[],
  strides: readonly number[],
  offset = 0,
): Tensor<D> {
  takesAsStridedScatter('asStridedScatter', x, source, shape, strides, offset);
  const places = stridedPlaces('asStridedScatter', x, shape, strides, offset);
  checkSource('asStridedScatter', x, source, shape);
  return apply([x, source], (b, node, part) => {
    const flat = scatterNode(b, flattened(b, node), flattened(b, places(b)), flattened(b, part), 0, 'set');
    return reshape(b, flat, x.shape);
  });
}
