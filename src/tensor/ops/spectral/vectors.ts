// Products of vectors, powers of their elements, and diagonals, by the names of `linalg`.

import { TensorError } from '../../../errors.ts';
import * as arg from '../../../ir/arguments.ts';
import { broadcast, cast, conj, full, mul, reduce, reshape, sub } from '../../../ir/build.ts';
import type { DType } from '../../../ir/dtype.ts';
import { dims, type GraphBuilder, type Node } from '../../../ir/graph.ts';
import { normalizeAxis } from '../../../ir/shape.ts';
import { aTensor } from '../../expect.ts';
import type { Tensor } from '../../tensor.ts';
import { apply, fit, operandType, show } from '../operand.ts';
import { sumType } from '../../formula/elementwise.ts';
import { concat, sliceAxis } from '../../formula/layout.ts';
import { diagonal as plainDiagonal, flip, type DiagonalOptions } from '../shape/movement.ts';
import { checkNumbers } from './stack.ts';

const takesCross = arg.takes<typeof linalgCross>(['x', aTensor], ['y', aTensor], ['axis', arg.inside()]);

/**
 * The cross product of vectors of three elements along an axis, the last by default.
 *
 * @names linalg.cross
 * @example
 * const three = sn.tensor([[1, 2, 3], [4, 5, 6]]);
 * const other = sn.tensor([[1, 0, 1], [0, 1, 0]]);
 * sn.linalg.cross(three, other);
 */
export function linalgCross(x: Tensor, y: Tensor, axis = -1): Tensor {
  takesCross('linalg.cross', x, y, axis);
  return crossOf('linalg.cross', x, y, axis);
}

const takesPlainCross = arg.takes<typeof cross>(['x', aTensor], ['y', aTensor], ['axis', arg.inside()]);

/**
 * The cross product along an axis, by default the first of three elements.
 *
 * @example
 * const x = sn.tensor([[1, 2, 3], [4, 5, 6]]);
 * const w = sn.tensor([[1, 0, 2], [3, 1, 0]]);
 * sn.cross(x, w, 1);
 */
export function cross(x: Tensor, y: Tensor, axis?: number): Tensor {
  takesPlainCross('cross', x, y, axis);
  const found = axis ?? x.shape.indexOf(3);
  if (axis === undefined && found < 0)
    throw new TensorError('E_SHAPE', 'cross', `expects an axis of three elements: ${show(x, y)}`);
  return crossOf('cross', x, y, found);
}

function crossOf(op: string, x: Tensor, y: Tensor, axis: number): Tensor {
  checkNumbers(op, x, y);
  const dtype: DType = operandType(op, [x, y], 'number');
  if (x.rank !== y.rank)
    throw new TensorError('E_SHAPE', op, `both must have the same number of axes: ${show(x, y)}`);
  const at = normalizeAxis(op, axis, x.rank);
  if (x.shape[at] !== 3 || y.shape[at] !== 3)
    throw new TensorError('E_SHAPE', op, `expects three elements along axis ${axis}: ${show(x, y)}`);
  return fit(
    op,
    [x, y],
    () => dtype,
    (b, u, v) => {
      const turned = (node: Node, by: 1 | 2): Node =>
        concat(b, [sliceAxis(b, node, at, by, 3 - by), sliceAxis(b, node, at, 0, by)], at);
      return sub(b, mul(b, turned(u, 1), turned(v, 2)), mul(b, turned(u, 2), turned(v, 1)));
    },
  );
}

const takesVecdot = arg.takes<typeof vecdot>(['x', aTensor], ['y', aTensor], ['axis', arg.inside()]);

/**
 * Σ conj(x)·y along an axis, the last by default; the operands broadcast.
 *
 * @names linalg.vecdot
 * @jax jnp.linalg.vecdot, jnp.vecdot
 * @example
 * const three = sn.tensor([[1, 2, 3], [4, 5, 6]]);
 * const other = sn.tensor([[1, 0, 1], [0, 1, 0]]);
 * sn.linalg.vecdot(three, other);
 */
export function vecdot(x: Tensor, y: Tensor, axis = -1): Tensor {
  const op = 'linalg.vecdot';
  takesVecdot(op, x, y, axis);
  checkNumbers(op, x, y);
  const dtype: DType = operandType(op, [x, y], 'number');
  return fit(
    op,
    [x, y],
    () => dtype,
    (b, u, v) => {
      const at = normalizeAxis(op, axis, dims(u).length);
      return reduce(b, 'sum', mul(b, conj(b, u), v), [at]);
    },
  );
}

/** @names linalg.LinalgVanderOptions */
export interface LinalgVanderOptions {
  /** How many columns; as many as elements by default. */
  readonly n?: number;
}

const takesVander = arg.takes<typeof linalgVander>(
  ['x', aTensor],
  ['options', arg.options<LinalgVanderOptions>({ n: arg.count(0) })],
);

/**
 * The powers 0 to n − 1 of each element, ascending along a new last axis.
 *
 * @names linalg.vander
 * @jax jnp.vander
 * @example
 * const v = sn.tensor([1, 2, 3]);
 * sn.linalg.vander(v);
 */
export function linalgVander(x: Tensor, options: LinalgVanderOptions = {}): Tensor {
  const op = 'linalg.vander';
  takesVander(op, x, options);
  checkNumbers(op, x);
  const shape = x.rank === 0 ? [1] : x.shape;
  const n = options.n ?? shape.at(-1)!;
  if (n < 2) throw new TensorError('E_VALUE', op, `n must be more than 1: ${n}`);
  return apply([x], (b, node) => powers(b, reshape(b, node, shape), n));
}

/** x⁰ … xⁿ⁻¹ along a new last axis, in the dtype that running products have. */
function powers(b: GraphBuilder, given: Node, n: number): Node {
  const x = cast(b, given, sumType(given.dtype));
  const shape = dims(x);
  const ones = full(b, [...shape, Math.min(1, n)], 1, x.dtype);
  const same = broadcast(b, reshape(b, x, [...shape, 1]), [...shape, Math.max(0, n - 1)]);
  const attrs = { monoid: 'prod', axis: shape.length, reverse: false, exclusive: false } as const;
  return b.add('scan', [concat(b, [ones, same], shape.length)], attrs) as Node;
}

export interface VanderOptions {
  /** How many columns; as many as elements by default. */
  readonly n?: number;
  /** Powers ascend; by default they descend. */
  readonly increasing?: boolean;
}

const takesPlainVander = arg.takes<typeof vander>(
  ['x', aTensor],
  ['options', arg.options<VanderOptions>({ n: arg.count(0), increasing: arg.flag })],
);

/**
 * The powers of the elements of a vector, a row each; the highest first unless `increasing`.
 *
 * @family Making tensors
 * @example
 * const x = sn.tensor([[1, 2], [3, 4]]);
 * sn.vander(x.flatten());
 */
export function vander(x: Tensor, options: VanderOptions = {}): Tensor {
  takesPlainVander('vander', x, options);
  if (x.rank !== 1) throw new TensorError('E_SHAPE', 'vander', `expects a vector: ${show(x)}`);
  const n = options.n ?? x.size;
  const ascending = apply([x], (b, node) => powers(b, node, n));
  return options.increasing === true ? ascending : flip(ascending, [1]);
}

const takesDiagonal = arg.takes<typeof linalgDiagonal>(
  ['x', aTensor],
  ['options', arg.options<DiagonalOptions>({ offset: arg.integer, axis1: arg.integer, axis2: arg.integer })],
);

/**
 * The diagonals of matrices, by default those of the last two axes.
 *
 * @names linalg.diagonal
 * @example
 * const x = sn.tensor([[1, 2], [3, 4], [5, 6]]);
 * sn.linalg.diagonal(x);
 */
export function linalgDiagonal(x: Tensor, options: DiagonalOptions = {}): Tensor {
  takesDiagonal('linalg.diagonal', x, options);
  return plainDiagonal(x, { axis1: -2, axis2: -1, ...options });
}
