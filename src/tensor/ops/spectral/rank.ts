// What singular values tell of matrices: their rank, their condition, their pseudo-inverse.

import { TensorError } from '../../../errors.ts';
import * as arg from '../../../ir/arguments.ts';
import {
  binary,
  broadcast,
  cast,
  div,
  full,
  fullLike,
  mul,
  reduce,
  reduceKeep,
  reshape,
  unary,
  where,
} from '../../../ir/build.ts';
import { dims, type GraphBuilder, type Node } from '../../../ir/graph.ts';
import { aTensor } from '../../expect.ts';
import { Tensor } from '../../tensor.ts';
import { apply, show } from '../operand.ts';
import * as formula from '../../formula/elementwise.ts';
import { matrixNorm, type MatrixOrder } from './norms.ts';
import { pseudoInverted } from './inverse.ts';
import { eigvalshNodes, svdvalsNodes } from './rules.ts';
import { batchOf, stacked, unstacked } from '../matrices.ts';
import { checkMatrices, epsilonOf } from './stack.ts';

/**
 * Which singular values count as zero.
 *
 * @names linalg.RankOptions
 */
export interface RankOptions {
  /** Those of at most this; a number, or one for each matrix. 0 by default. */
  readonly atol?: number | Tensor;
  /**
   * Those of at most this share of the greatest. By default max(m, n) times the distance from 1 to
   * the next number, or 0 where `atol` is given.
   */
  readonly rtol?: number | Tensor;
  /**
   * The matrices are Hermitian: eigenvalues are used, and only the lower triangle read; false by
   * default.
   */
  readonly hermitian?: boolean;
}

const bound = arg.either(arg.notNegative, aTensor);
const rankOptions = arg.options<RankOptions>({ atol: bound, rtol: bound, hermitian: arg.flag });

/** The tensors among the bounds, which are operands too. */
function boundsOf({ atol, rtol }: RankOptions): readonly (Tensor | undefined)[] {
  return [atol, rtol].map((each) => (each instanceof Tensor ? each : undefined));
}

/** The largest value that counts as zero, [count, 1], of descending sizes [count, k]. */
function threshold(
  b: GraphBuilder,
  sizes: Node,
  x: Tensor,
  { atol, rtol }: RankOptions,
  [atolNode, rtolNode]: readonly (Node | undefined)[],
): Node {
  const [count] = dims(sizes) as [number, number];
  const [m, n] = x.shape.slice(-2) as [number, number];
  const fallback = atol === undefined || atol === 0 ? Math.max(m, n) * epsilonOf(x.dtype) : 0;
  const lead = x.shape.slice(0, -2);
  const spread = (node: Node | undefined, number: number | Tensor | undefined): Node => {
    if (node === undefined) return full(b, [count, 1], typeof number === 'number' ? number : 0, sizes.dtype);
    return reshape(b, broadcast(b, cast(b, node, sizes.dtype), lead), [count, 1]);
  };
  const greatest = reduceKeep(b, 'max', sizes, [1]);
  const relative = mul(b, greatest, spread(rtolNode, rtol ?? fallback));
  return binary(b, 'max', spread(atolNode, atol), relative);
}

const takesMatrixRank = arg.takes<typeof matrixRank>(['x', aTensor], ['options', rankOptions]);

/**
 * How many singular values of matrices [.., m, n] are not zero: i32.
 *
 * @names linalg.matrixRank
 * @example
 * const a = sn.tensor([[4, 2], [2, 3]]);
 * sn.linalg.matrixRank(a);
 */
export function matrixRank(x: Tensor, options: RankOptions = {}): Tensor<'i32'> {
  const op = 'linalg.matrixRank';
  takesMatrixRank(op, x, options);
  const hermitian = options.hermitian === true;
  checkMatrices(op, x, hermitian ? 'square' : 'any');
  const lead = x.shape.slice(0, -2);
  return apply([x, ...boundsOf(options)] as const, (b, node, ...bounds) => {
    const a = stacked(b, node);
    const sizes = hermitian ? unary(b, 'abs', eigvalshNodes(b, a, 'L')) : svdvalsNodes(b, a);
    if (dims(sizes)[1] === 0) return full(b, lead, 0, 'i32');
    const least = broadcast(b, threshold(b, sizes, x, options, bounds), dims(sizes));
    return reshape(b, reduce(b, 'sum', cast(b, binary(b, 'lt', least, sizes), 'i32'), [1]), lead);
  });
}

const takesPinv = arg.takes<typeof pinv>(['x', aTensor], ['options', rankOptions]);

/**
 * The pseudo-inverse (E. Moore, R. Penrose) of matrices [.., m, n]: [.., n, m].
 *
 * @names linalg.pinv
 * @example
 * const x = sn.tensor([[1, 2], [3, 4], [5, 6]]);
 * sn.linalg.pinv(x);
 */
export function pinv(x: Tensor, options: RankOptions = {}): Tensor {
  takesPinv('linalg.pinv', x, options);
  return pseudoInverse('linalg.pinv', x, options);
}

const takesPinverse = arg.takes<typeof pinverse>(['x', aTensor], ['rcond', arg.optional(arg.notNegative)]);

/**
 * The pseudo-inverse, by singular values above `rcond` (1e-15 by default) times the greatest.
 *
 * @jax jnp.linalg.pinv
 * @example
 * const x = sn.tensor([[1, 2], [3, 4], [5, 6]]);
 * sn.pinverse(x);
 */
export function pinverse(x: Tensor, rcond = 1e-15): Tensor {
  takesPinverse('pinverse', x, rcond);
  return pseudoInverse('pinverse', x, { rtol: rcond });
}

function pseudoInverse(op: string, x: Tensor, options: RankOptions): Tensor {
  const hermitian = options.hermitian === true;
  checkMatrices(op, x, hermitian ? 'square' : 'any');
  const [m, n] = x.shape.slice(-2) as [number, number];
  const lead = x.shape.slice(0, -2);
  if (m === 0 || n === 0) return apply([x], (b, node) => reshape(b, node, [...lead, n, m]));
  return apply([x, ...boundsOf(options)] as const, (b, node, ...bounds) => {
    const a = stacked(b, node);
    const found = pseudoInverted(b, a, hermitian, (sizes) => threshold(b, sizes, x, options, bounds));
    return unstacked(b, found, batchOf(x));
  });
}

const takesCond = arg.takes<typeof cond>(
  ['x', aTensor],
  ['the order', arg.optional(arg.either(arg.oneOf('fro', 'nuc'), arg.number))],
);

/**
 * The condition of matrices, ‖A‖·‖A⁻¹‖: by the ratio of the extreme singular values for 2 (the
 * default) and −2, else by the inverse of square ones in the norm that `ord` names.
 *
 * @names linalg.cond
 * @example
 * const a = sn.tensor([[4, 2], [2, 3]]);
 * sn.linalg.cond(a);
 */
export function cond(x: Tensor, ord: MatrixOrder = 2): Tensor {
  const op = 'linalg.cond';
  takesCond(op, x, ord);
  const bySingular = ord === 2 || ord === -2;
  checkMatrices(op, x, bySingular ? 'any' : 'square');
  const lead = x.shape.slice(0, -2);
  const k = Math.min(...x.shape.slice(-2));
  if (bySingular) {
    if (k === 0) throw new TensorError('E_SHAPE', op, `expects matrices with elements: ${show(x)}`);
    return apply([x], (b, node) => {
      const values = svdvalsNodes(b, stacked(b, node));
      const [greatest, least] = [reduce(b, 'max', values, [1]), reduce(b, 'min', values, [1])];
      if (ord === -2) return reshape(b, div(b, least, greatest), lead);
      // Of zeros as well, where the ratio is no number.
      const isZero = binary(b, 'eq', greatest, 0);
      const ratio = div(b, greatest, where(b, isZero, fullLike(b, least, 1), least));
      return reshape(b, where(b, isZero, fullLike(b, ratio, Infinity), ratio), lead);
    });
  }
  if (k === 0) return apply([x], (b, node) => full(b, lead, 0, node.dtype));
  const inverse = pseudoInverse(op, x, { rtol: 0 });
  const [size, other] = [matrixNorm(x, ord), matrixNorm(inverse, ord)];
  return apply([size, other, x], (b, p, q, node) => {
    const value = mul(b, p, q);
    const least = reduce(b, 'min', formula.stopGradient(b, svdvalsNodes(b, stacked(b, node))), [1]);
    // What has no inverse is as ill-conditioned as can be.
    const singular = reshape(b, binary(b, 'eq', least, 0), lead);
    return where(b, singular, fullLike(b, value, Infinity), value);
  });
}
