// Norms of vectors and of matrices, and numbers made of singular values.

import { TensorError } from '../../../errors.ts';
import * as arg from '../../../ir/arguments.ts';
import { cast, permute, reduce, reduceKeep, reshape, unary } from '../../../ir/build.ts';
import { partType, type DType } from '../../../ir/dtype.ts';
import { dims, type GraphBuilder, type Node } from '../../../ir/graph.ts';
import { normalizeAxes, sizeOf } from '../../../ir/shape.ts';
import { aTensor } from '../../expect.ts';
import type { Tensor } from '../../tensor.ts';
import * as formula from '../../formula/elementwise.ts';
import { apply, casted, checkInexact, checkNotEmpty, show } from '../operand.ts';
import { dropKeptAxes, type Axes } from '../reduce/axes.ts';
import { svdvalsNodes } from './rules.ts';

/** @names linalg.VectorNormOptions */
export interface VectorNormOptions {
  /** Keeps the folded axes with size 1; false by default. */
  readonly keepdim?: boolean;
  /** What elements are converted to before they are folded; x's by default. */
  readonly dtype?: DType;
}

const normOptions = arg.options<VectorNormOptions>({ keepdim: arg.flag, dtype: arg.dtype });

/** A norm over axes, of elements in the wanted dtype. */
function vectorNormOf(
  op: string,
  x: Tensor,
  ord: number,
  axes: Axes | undefined,
  { keepdim = false, dtype }: VectorNormOptions,
): Tensor {
  checkInexact(op, x);
  const list = x.rank === 0 ? [] : normalizeAxes(op, axes, x.rank);
  if (x.rank === 0) normalizeAxes(op, axes, 1);
  if (ord < 0 || ord === Infinity) checkNotEmpty(op, x, list);
  return apply([x], (b, node) => {
    const wanted = converted(b, node, dtype);
    const kept = formula.normOf(b, widest(b, wanted), ord, list);
    return dropKeptAxes(b, cast(b, kept, partType(wanted.dtype)), list, keepdim);
  });
}

const takesVectorNorm = arg.takes<typeof vectorNorm>(
  ['x', aTensor],
  ['the order', arg.optional(arg.number)],
  ['axes', arg.inside()],
  ['options', normOptions],
);

/**
 * (Σ|x|^ord)^(1/ord) over axes, all by default: ∞ and −∞ give the extrema of |x|, 0 counts the elements that
 * are not 0.
 *
 * @names linalg.vectorNorm
 * @example
 * const x = sn.tensor([[1, 2], [3, 4], [5, 6]]);
 * sn.linalg.vectorNorm(x, 1);
 */
export function vectorNorm(x: Tensor, ord = 2, axes?: Axes, options: VectorNormOptions = {}): Tensor {
  takesVectorNorm('linalg.vectorNorm', x, ord, axes, options);
  return vectorNormOf('linalg.vectorNorm', x, ord, axes, options);
}

/**
 * Which norm of a matrix: that of Frobenius, the sum of singular values, or one by a number.
 *
 * @names linalg.MatrixOrder
 */
export type MatrixOrder = 'fro' | 'nuc' | 1 | -1 | 2 | -2 | number;

const matrixOrder: arg.Kind<MatrixOrder> = arg.either(arg.oneOf('fro', 'nuc'), arg.number);
const takesMatrixNorm = arg.takes<typeof matrixNorm>(
  ['x', aTensor],
  ['the order', arg.optional(matrixOrder)],
  ['axes', arg.inside()],
  ['options', normOptions],
);

/**
 * The norm of the matrices spanned by two axes, the last by default: 'fro' (the default) is √Σ|x|²,
 * 'nuc' the sum of the singular values, 2 and −2 their extrema, 1 and −1 those of the sums of |x|
 * down the columns, ∞ and −∞ along the rows.
 *
 * @names linalg.matrixNorm
 * @example
 * const x = sn.tensor([[1, 2], [3, 4], [5, 6]]);
 * sn.linalg.matrixNorm(x);
 */
export function matrixNorm(
  x: Tensor,
  ord: MatrixOrder = 'fro',
  axes: readonly [number, number] = [-2, -1],
  options: VectorNormOptions = {},
): Tensor {
  takesMatrixNorm('linalg.matrixNorm', x, ord, axes, options);
  return matrixNormOf('linalg.matrixNorm', x, ord, axes, options);
}

function matrixNormOf(
  op: string,
  x: Tensor,
  ord: MatrixOrder,
  axes: Axes,
  options: VectorNormOptions,
): Tensor {
  checkInexact(op, x);
  const chosen = normalizeAxes(op, axes, x.rank);
  const list = typeof axes === 'number' ? [axes] : axes;
  if (chosen.length !== 2 || list.length !== 2)
    throw new TensorError('E_AXIS', op, `expects two axes, got [${list.join(',')}]: ${show(x)}`);
  const [row, column] = list.map((axis) => (axis < 0 ? axis + x.rank : axis)) as [number, number];
  if (ord === 'fro') return vectorNormOf(op, x, 2, list, options);
  const known = ord === 'nuc' || [1, 2, Infinity].includes(Math.abs(ord));
  if (!known)
    throw new TensorError('E_VALUE', op, `no norm ${ord} of matrices`, "'fro', 'nuc', ±1, ±2 or ±Infinity");
  if (ord !== 'nuc')
    checkNotEmpty(op, x, Math.abs(ord) === 1 ? [column] : Math.abs(ord) === 2 ? [row, column] : [row]);
  const { keepdim = false, dtype } = options;
  return apply([x], (b, node) => {
    const shape = dims(node);
    const kept = shape.map((dim, axis) => (axis === row || axis === column ? 1 : dim));
    const wanted = widest(b, converted(b, node, dtype));
    const finish = (found: Node): Node =>
      dropKeptAxes(
        b,
        cast(b, reshape(b, found, kept), partType(dtype ?? node.dtype)),
        [row, column].toSorted((p, q) => p - q),
        keepdim,
      );
    if (ord === 'nuc' || Math.abs(ord) === 2) {
      const rest = shape.map((_, axis) => axis).filter((axis) => axis !== row && axis !== column);
      const sorted = permute(b, wanted, [...rest, row, column]);
      const count = sizeOf(rest.map((axis) => shape[axis]!));
      const values = svdvalsNodes(b, reshape(b, sorted, [count, shape[row]!, shape[column]!]));
      const monoid = ord === 'nuc' ? 'sum' : ord > 0 ? 'max' : 'min';
      return finish(reduce(b, monoid, values, [1]));
    }
    const [along, across] = Math.abs(ord) === 1 ? [row, column] : [column, row];
    const sums = reduceKeep(b, 'sum', unary(b, 'abs', wanted), [along]);
    return finish(reduceKeep(b, ord > 0 ? 'max' : 'min', sums, [across]));
  });
}

/** Elements as they are wanted, 16-bit ones wide enough to have a decomposition. */
function widest(b: GraphBuilder, x: Node): Node {
  return cast(b, x, formula.wideType(x.dtype));
}

function converted(b: GraphBuilder, x: Node, dtype: DType | undefined): Node {
  return dtype === undefined ? x : cast(b, x, dtype);
}

const takesLinalgNorm = arg.takes<typeof linalgNorm>(
  ['x', aTensor],
  ['the order', arg.optional(matrixOrder)],
  ['axes', arg.inside()],
  ['options', normOptions],
);

/**
 * The norm of vectors along one axis, or of matrices along two. Without an order it is the 2-norm
 * of all elements along the axes; without axes too, of all elements, or with an order that of the
 * one vector or matrix that x is.
 *
 * @names linalg.norm
 * @example
 * const x = sn.tensor([[1, 2], [3, 4], [5, 6]]);
 * sn.linalg.norm(x);
 */
export function linalgNorm(
  x: Tensor,
  ord?: MatrixOrder,
  axes?: Axes,
  options: VectorNormOptions = {},
): Tensor {
  const op = 'linalg.norm';
  takesLinalgNorm(op, x, ord, axes, options);
  if (ord === undefined) return vectorNormOf(op, x, 2, axes, options);
  const count = axes === undefined ? x.rank : typeof axes === 'number' ? 1 : axes.length;
  if (count === 2) return matrixNormOf(op, x, ord, axes ?? [0, 1], options);
  if (count === 1 && typeof ord === 'number') return vectorNormOf(op, x, ord, axes, options);
  throw new TensorError('E_AXIS', op, `no norm ${ord} over ${count} axes: ${show(x)}`, 'one axis, or two');
}

const takesNorm = arg.takes<typeof norm>(
  ['the operand', aTensor],
  ['p', arg.optional(matrixOrder)],
  ['axes', arg.inside()],
  ['options', normOptions],
);

/**
 * (Σ|x|^p)^(1/p) over axes, all by default: p is 2 by default, ∞ and −∞ give the extrema of |x|, 0 counts
 * the elements that are not 0. 'fro' is 2; 'nuc' sums the singular values of matrices, the last two axes by
 * default.
 *
 * @jax jnp.linalg.norm
 * @example
 * const x = sn.tensor([[1, -2, 3], [0.5, 4, -1]]);
 * sn.norm(x, 2, 1);
 */
export function norm(
  x: Tensor,
  p: 'fro' | 'nuc' | number = 2,
  axes?: Axes,
  options: VectorNormOptions = {},
): Tensor {
  takesNorm('norm', x, p, axes, options);
  if (p === 'nuc') return matrixNormOf('norm', x, p, axes ?? [-2, -1], options);
  return vectorNormOf('norm', casted('norm', x), p === 'fro' ? 2 : p, axes, options);
}
