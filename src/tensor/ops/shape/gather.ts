// Gather: reading at positions that are data. Index tensors hold integers
// in [0, size). Others are an error where they are watched (debug.ts); elsewhere reads outside give
// 0.

import { TensorError } from '../../../errors.ts';
import { add, binary, broadcast, cast, reshape, where } from '../../../ir/build.ts';
import * as arg from '../../../ir/arguments.ts';
import type { DType } from '../../../ir/dtype.ts';
import { dims, type GraphBuilder, type Node } from '../../../ir/graph.ts';
import { normalizeAxis } from '../../../ir/shape.ts';
import { watchRange } from '../../debug.ts';
import { aTensor } from '../../expect.ts';
import type { Tensor } from '../../tensor.ts';
import * as formula from '../../formula/elementwise.ts';
import { apply, checkInteger, checkRank, show } from '../operand.ts';
import { checkIndex, lineShape, watchAxis } from './places.ts';

/** Positions with those below 0 counted from the end of `size` elements. @internal */
export function fromEnd(b: GraphBuilder, index: Node, size: number): Node {
  if (index.dtype === 'u32') return index;
  return where(b, binary(b, 'lt', index, 0), add(b, index, size), index);
}

function gatherNode(b: GraphBuilder, x: Node, index: Node, axis: number): Node {
  return b.add('gather', [x, formula.narrowIndex(b, index)], { axis });
}

const takesGather = arg.takes<typeof gather>(['x', aTensor], ['axis', arg.inside()], ['the index', aTensor]);

/**
 * out[i,j,k] = x[i, index[i,j,k], k] for axis 1.
 *
 * @method
 * @jax jnp.take_along_axis
 * @example
 * const x = sn.tensor([[1, 2, 3], [4, 5, 6]]);
 * const places = sn.tensor([[0, 2], [1, 1]], { dtype: 'i32' });
 * sn.gather(x, 1, places);
 */
export function gather<D extends DType>(x: Tensor<D>, axis: number, index: Tensor): Tensor<D> {
  takesGather('gather', x, axis, index);
  const at = checkIndex('gather', x, axis, index);
  watchAxis('gather', x, at, index);
  return apply([x, index], (b, node, places) => {
    const [line, row] = [reshape(b, node, lineShape(x)), reshape(b, places, lineShape(index))];
    return reshape(b, gatherNode(b, line, row, at), index.shape);
  });
}

const takesTakeAlongAxis = arg.takes<typeof takeAlongAxis>(
  ['x', aTensor],
  ['the index', aTensor],
  ['axis', arg.inside()],
);

/**
 * As `gather`; x and index broadcast outside the axis (NumPy's take_along_axis).
 *
 * @example
 * const x = sn.tensor([[1, 2, 3], [4, 5, 6]]);
 * const places = sn.tensor([[0, 2], [1, 1]], { dtype: 'i32' });
 * sn.takeAlongAxis(x, places, 1);
 */
export function takeAlongAxis<D extends DType>(x: Tensor<D>, index: Tensor, axis: number): Tensor<D> {
  takesTakeAlongAxis('takeAlongAxis', x, index, axis);
  return alongAxis('takeAlongAxis', x, index, axis);
}

function alongAxis(op: string, x: Tensor, index: Tensor, axis: number): Tensor {
  checkInteger(op, 'the index', index);
  const at = normalizeAxis(op, axis, x.rank);
  if (index.rank !== x.rank) {
    throw new TensorError('E_SHAPE', op, `the index must have x's rank: x ${show(x)}, index ${show(index)}`);
  }
  watchAxis(op, x, at, index);
  const outside = (shape: readonly number[], size: number): number[] =>
    shape.map((dim, i) => (i === at ? size : dim));
  const common = x.shape.map((dim, i) => (dim === 1 ? index.shape[i]! : dim));
  return apply([x, index], (b, node, places) => {
    const table = broadcast(b, node, outside(common, x.shape[at]!));
    return gatherNode(b, table, broadcast(b, places, outside(common, index.shape[at]!)), at);
  });
}

/** A vector of positions along one axis, in place of that axis. @internal */
export function selectRows(b: GraphBuilder, x: Node, index: Node, axis: number): Node {
  const shape = dims(x);
  const count = dims(index)[0]!;
  const along = formula.alongAxis(b, index, shape.length, axis);
  return gatherNode(
    b,
    x,
    broadcast(
      b,
      along,
      shape.map((dim, i) => (i === axis ? count : dim)),
    ),
    axis,
  );
}

/**
 * The listed positions of an axis: out[o, i, j] = x[o, index[i], j].
 *
 * @method
 * @jax jnp.take
 * @example
 * const x = sn.tensor([[1, 2, 3], [4, 5, 6]]);
 * const i = sn.tensor([1, 0], { dtype: 'i32' });
 * sn.indexSelect(x, 0, i);
 */
export function indexSelect<D extends DType>(x: Tensor<D>, axis: number, index: Tensor): Tensor<D> {
  takesGather('indexSelect', x, axis, index);
  checkInteger('indexSelect', 'the index', index);
  checkRank('indexSelect', 'the index', index, 0, 1);
  const at = normalizeAxis('indexSelect', axis, Math.max(1, x.rank));
  watchAxis('indexSelect', x, at, index);
  return apply([x, index], (b, node, places) => {
    const found = selectRows(b, reshape(b, node, lineShape(x)), reshape(b, places, [index.size]), at);
    return x.rank === 0 && index.size === 1 ? reshape(b, found, []) : found;
  });
}

const takesTake = arg.takes<typeof take>(['x', aTensor], ['the index', aTensor]);

/**
 * Elements by their position in C-order, negative ones from the end; the result has the index's
 * shape.
 *
 * @method
 * @example
 * const x = sn.tensor([[1, 2, 3], [4, 5, 6]]);
 * const i = sn.tensor([1, 0], { dtype: 'i32' });
 * sn.take(x, i);
 */
export function take<D extends DType>(x: Tensor<D>, index: Tensor): Tensor<D> {
  takesTake('take', x, index);
  checkInteger('take', 'the index', index);
  watchRange('take', 'index', index, -x.size, x.size, `the ${x.size} elements of ${show(x)}`);
  return apply([x, index], (b, node, places) => {
    const flat = fromEnd(b, formula.narrowIndex(b, reshape(b, places, [index.size])), x.size);
    return reshape(b, gatherNode(b, reshape(b, node, [x.size]), flat, 0), index.shape);
  });
}

const takesTakeAlongDim = arg.takes<typeof takeAlongDim>(
  ['x', aTensor],
  ['the index', aTensor],
  ['axis', arg.optional(arg.integer)],
);

/**
 * As `takeAlongAxis`; without an axis from all elements in C-order (torch.take_along_dim).
 *
 * @jax jnp.take_along_axis
 * @example
 * const x = sn.tensor([[1, 2, 3], [4, 5, 6]]);
 * const places = sn.tensor([[0, 2], [1, 1]], { dtype: 'i32' });
 * sn.takeAlongDim(x, places, 1);
 */
export function takeAlongDim<D extends DType>(x: Tensor<D>, index: Tensor, axis?: number): Tensor<D> {
  takesTakeAlongDim('takeAlongDim', x, index, axis);
  if (axis !== undefined) return alongAxis('takeAlongDim', x, index, axis);
  checkInteger('takeAlongDim', 'the index', index);
  watchRange('takeAlongDim', 'index', index, 0, x.size, `the ${x.size} elements of ${show(x)}`);
  return apply([x, index], (b, node, places) =>
    gatherNode(b, reshape(b, node, [x.size]), reshape(b, places, [index.size]), 0),
  );
}

export interface EmbeddingOptions {
  /** The row of this index gets no gradient; none by default. */
  readonly paddingIdx?: number;
}

const takesEmbedding = arg.takes<typeof embedding>(
  ['the indices', aTensor],
  ['the weight', aTensor],
  ['options', arg.options<EmbeddingOptions>({ paddingIdx: arg.integer })],
);

/**
 * Rows of a [V, D] table: indices [..] give [.., D].
 *
 * @example
 * const x = sn.tensor([[1, 2, 3], [4, 5, 6]]);
 * const i = sn.tensor([1, 0], { dtype: 'i32' });
 * sn.embedding(i, x);
 * @example <caption>one</caption>
 * const x = sn.tensor([[1, 2, 3], [4, 5, 6]]);
 * const i = sn.tensor([1, 0], { dtype: 'i32' });
 * sn.embedding(i.at(0), x);
 */
export function embedding<D extends DType>(
  indices: Tensor,
  weight: Tensor<D>,
  options: EmbeddingOptions = {},
): Tensor<D> {
  takesEmbedding('embedding', indices, weight, options);
  checkInteger('embedding', 'the indices', indices);
  checkRank('embedding', 'the weight', weight, 2);
  const [rows, width] = [weight.shape[0]!, weight.shape[1]!];
  watchRange('embedding', 'index', indices, 0, rows, `the ${rows} rows of ${show(weight)}`);
  const padding =
    options.paddingIdx === undefined ? undefined : normalizeAxis('embedding', options.paddingIdx, rows);
  return apply([indices, weight], (b, places, table) => {
    const flat = reshape(b, formula.narrowIndex(b, places), [indices.size]);
    const found = selectRows(b, table, flat, 0);
    if (padding === undefined) return reshape(b, found, [...indices.shape, width]);
    const padded = formula.spreadTo(b, reshape(b, binary(b, 'eq', flat, padding), [indices.size, 1]), found);
    return reshape(b, where(b, padded, formula.stopGradient(b, found), found), [...indices.shape, width]);
  });
}

export interface OneHotOptions {
  /** i32 by default. */
  readonly dtype?: DType;
}

const takesOneHot = arg.takes<typeof oneHot>(
  ['the classes', aTensor],
  ['the number of classes', arg.count(1)],
  ['options', arg.options<OneHotOptions>({ dtype: arg.dtype })],
);

/**
 * 1 at each element's class, 0 elsewhere, along a new last axis; devices give zeros outside.
 *
 * @example
 * const i = sn.tensor([1, 0], { dtype: 'i32' });
 * sn.oneHot(i, 3);
 */
export function oneHot(x: Tensor, classes: number, options: OneHotOptions = {}): Tensor {
  takesOneHot('oneHot', x, classes, options);
  checkInteger('oneHot', 'the classes', x);
  watchRange('oneHot', 'class', x, 0, classes, `the ${classes} classes`);
  const shape = [...x.shape, classes];
  return apply([x], (b, node) => {
    const place = broadcast(b, reshape(b, formula.narrowIndex(b, node), [...x.shape, 1]), shape);
    const hit = binary(b, 'eq', formula.iota(b, shape, x.rank, place.dtype), place);
    return cast(b, hit, options.dtype ?? 'i32');
  });
}
