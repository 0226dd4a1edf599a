// Orthogonal factorisations by Householder's reflections.

import { TensorError } from '../../../errors.ts';
import * as arg from '../../../ir/arguments.ts';
import { broadcast, full, reshape } from '../../../ir/build.ts';
import { dims, type GraphBuilder, type Node } from '../../../ir/graph.ts';
import { adjoint, block, columnsOf, identity, joined, rowsOf, sizes, upper } from '../../../ir/matrix.ts';
import { factor } from '../../formula/matrix.ts';
import { sizeOf } from '../../../ir/shape.ts';
import { aTensor } from '../../expect.ts';
import { apply } from '../operand.ts';
import { record, recordMany } from '../../record.ts';
import type { Tensor } from '../../tensor.ts';
import { show } from '../operand.ts';
import { orthogonal, reflected } from './formula.ts';
import { batchOf, checkMatrices, checkOneDType, sizeOfMatrix, stacked, unstacked } from '../matrices.ts';

/** @names QrOptions, linalg.QrOptions */
export interface QrOptions {
  /**
   * `reduced` (default): Q m×k, R k×n with k = min(m, n); `complete`: Q m×m, R m×n; `r`: R alone, and
   * a Q without elements.
   */
  readonly mode?: 'reduced' | 'complete' | 'r';
}

const takesQr = arg.takes<typeof qr>(
  ['x', aTensor],
  ['options', arg.options<QrOptions>({ mode: arg.oneOf('reduced', 'complete', 'r') })],
);

/**
 * Q and R of A = Q·R, Q with orthonormal columns and R an upper triangle, whose diagonal is real and
 * may have either sign. The complete Q of a tall matrix has no derivative (E_GRAD).
 *
 * @names qr, linalg.qr
 * @jax jnp.linalg.qr
 * @example
 * const x = sn.tensor([[1, 2], [3, 4], [5, 6]]);
 * sn.qr(x);
 */
export function qr(x: Tensor, options: QrOptions = {}): [q: Tensor, r: Tensor] {
  takesQr('qr', x, options);
  checkMatrices('qr', x);
  const { mode = 'reduced' } = options;
  const [m, n] = sizeOfMatrix(x);
  const [q, r] = recordMany([x], (b, [node]) => {
    const a = stacked(b, node!);
    const parts = mode === 'complete' && m > n ? complete(b, a) : orthogonal(b, a);
    const first = mode === 'r' ? full(b, [0], 0, x.dtype) : unstacked(b, parts[0], batchOf(x));
    return [first, unstacked(b, parts[1], batchOf(x))];
  });
  return [q!, r!];
}

/** All m columns of Q, and R above zeros. */
function complete(b: GraphBuilder, a: Node): readonly [q: Node, r: Node] {
  const [lines, m, n] = sizes(a);
  const whole = identity(b, lines, [m, m], a.dtype);
  if (n === 0) return [whole, a];
  const packed = factor(b, 'householder', a);
  const tau = reshape(b, rowsOf(b, packed, m, m + 1), [lines, n]);
  const q = reflected(b, rowsOf(b, packed, 0, m), tau, whole, false);
  const r = joined(b, 1, [upper(b, rowsOf(b, packed, 0, n)), full(b, [lines, m - n, n], 0, a.dtype)]);
  return [q, r];
}

const takesGeqrf = arg.takes<typeof geqrf>(['x', aTensor]);

/**
 * R on and above the diagonal, the vectors of Householder's reflections below it, and their τ: what
 * `householderProduct` and `ormqr` take. Has no derivative: `qr` has one.
 *
 * @names geqrf, linalg.geqrf
 * @example
 * const x = sn.tensor([[1, 2], [3, 4], [5, 6]]);
 * sn.geqrf(x);
 */
export function geqrf(x: Tensor): [a: Tensor, tau: Tensor] {
  takesGeqrf('geqrf', x);
  checkMatrices('geqrf', x);
  const [m, n] = sizeOfMatrix(x);
  const k = Math.min(m, n);
  const [a, tau] = recordMany([x], (b, [node]) => {
    const matrices = stacked(b, node!);
    const lines = sizes(matrices)[0];
    if (k === 0) return [node!, full(b, [...batchOf(x), 0], 0, x.dtype)];
    const packed = factor(b, 'householder', matrices);
    const taus = reshape(b, block(b, packed, [m, 0], [1, k]), [lines, k]);
    return [unstacked(b, rowsOf(b, packed, 0, m), batchOf(x)), unstacked(b, taus, batchOf(x))];
  });
  return [a!, tau!];
}

function checkReflectors(op: string, x: Tensor, tau: Tensor): void {
  checkMatrices(op, x);
  checkOneDType(op, x, tau);
  const fits =
    tau.rank === x.rank - 1 && tau.shape.slice(0, -1).every((size, axis) => size === x.shape[axis]);
  if (!fits || tau.shape.at(-1)! > Math.min(...sizeOfMatrix(x)))
    throw new TensorError('E_SHAPE', op, `expects a τ a column at most: ${show(x, tau)}`);
}

const takesProduct = arg.takes<typeof householderProduct>(['the reflectors', aTensor], ['τ', aTensor]);

/**
 * The first n columns of the product H₁·H₂⋯ of the reflections below the diagonal of an m×n matrix.
 *
 * @jax lax.linalg.householder_product
 * @example
 * const tau = sn.tensor([1.2, 1]);
 * const h = sn.tensor([[1, 2], [0.5, 1], [0.5, 2]]);
 * sn.linalg.householderProduct(h, tau);
 */
export function householderProduct(x: Tensor, tau: Tensor): Tensor {
  return productFor('householderProduct', x, tau);
}

/**
 * `linalg.householderProduct`, under LAPACK's name.
 *
 * @names orgqr
 * @jax lax.linalg.householder_product
 * @example
 * const tau = sn.tensor([1.2, 1]);
 * const h = sn.tensor([[1, 2], [0.5, 1], [0.5, 2]]);
 * sn.orgqr(h, tau);
 */
export function orgqr(x: Tensor, tau: Tensor): Tensor {
  return productFor('orgqr', x, tau);
}

function productFor(op: string, x: Tensor, tau: Tensor): Tensor {
  takesProduct(op, x, tau);
  checkReflectors(op, x, tau);
  const [m, n] = sizeOfMatrix(x);
  if (n > m) throw new TensorError('E_SHAPE', op, `expects no more columns than rows: ${show(x)}`);
  return apply([x, tau], (b, node, scales) => {
    const vectors = stacked(b, node);
    const [lines] = sizes(vectors);
    const taus = reshape(b, scales, [lines, tau.shape.at(-1)!]);
    const start = identity(b, lines, [m, n], x.dtype);
    return unstacked(b, reflected(b, vectors, taus, start, false), batchOf(x));
  });
}

/** @names OrmqrOptions, linalg.OrmqrOptions */
export interface OrmqrOptions {
  /** false multiplies from the right; true by default. */
  readonly left?: boolean;
  /** Takes Qᴴ in the place of Q (Qᵀ of real numbers); false by default. */
  readonly transpose?: boolean;
}

const takesOrmqr = arg.takes<typeof ormqr>(
  ['the reflectors', aTensor],
  ['τ', aTensor],
  ['the matrix', aTensor],
  ['options', arg.options<OrmqrOptions>({ left: arg.flag, transpose: arg.flag })],
);

/**
 * Q·C of the whole m×m product Q of reflections, without making Q.
 *
 * @names ormqr, linalg.ormqr
 * @example
 * const b3 = sn.tensor([[1], [0], [1]]);
 * const tau = sn.tensor([1.2, 1]);
 * const h = sn.tensor([[1, 2], [0.5, 1], [0.5, 2]]);
 * sn.ormqr(h, tau, b3);
 */
export function ormqr(x: Tensor, tau: Tensor, c: Tensor, options: OrmqrOptions = {}): Tensor {
  const op = 'ormqr';
  takesOrmqr(op, x, tau, c, options);
  checkReflectors(op, x, tau);
  checkMatrices(op, x, c);
  const { left = true, transpose: turned = false } = options;
  const m = sizeOfMatrix(x)[0];
  const batch = batchOf(x);
  const fits = sizeOf(batch) === sizeOf(batchOf(c)) && c.rank === x.rank;
  if (!fits || sizeOfMatrix(c)[left ? 0 : 1] !== m)
    throw new TensorError('E_SHAPE', op, `the reflectors do not fit: ${show(x, c)}`);
  return record([x, tau, c], (b, [node, scales, other]) => {
    const lines = sizeOf(batch);
    const taus = reshape(b, scales!, [lines, dims(scales!).at(-1)!]);
    const vectors = stacked(b, broadcast(b, node!, x.shape));
    const columns = columnsOf(b, vectors, 0, tau.shape.at(-1)!);
    const matrix = stacked(b, other!);
    // C·Q = (Qᴴ·Cᴴ)ᴴ
    const result = left
      ? reflected(b, columns, taus, matrix, turned)
      : adjoint(b, reflected(b, columns, taus, adjoint(b, matrix), !turned));
    return unstacked(b, result, batchOf(c));
  });
}
