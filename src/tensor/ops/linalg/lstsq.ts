// Least squares, by orthogonal factorisation or by singular values.

import { TensorError } from '../../../errors.ts';
import * as arg from '../../../ir/arguments.ts';
import { full, mul, reduce, sub, unary } from '../../../ir/build.ts';
import { isComplex, partType } from '../../../ir/dtype.ts';
import { adjoint, adjointProduct, product, sizes } from '../../../ir/matrix.ts';
import { solveLower, solveUpper } from '../../formula/matrix.ts';
import { aTensor } from '../../expect.ts';
import { recordMany } from '../../record.ts';
import type { Tensor } from '../../tensor.ts';
import { sub as difference } from '../elementwise/arithmetic.ts';
import { abs, square } from '../elementwise/elementwise.ts';
import { zeros } from '../creation/creation.ts';
import { withAutocastType } from '../../autocast.ts';
import { show } from '../operand.ts';
import { matmul } from '../product/matmul.ts';
import { sum } from '../reduce/reduce.ts';
import { matrixRank, pinv } from '../spectral/rank.ts';
import { svdvals } from '../spectral/svd.ts';
import { orthogonal } from './formula.ts';
import { checkMatrices, commonBatch, sizeOfMatrix, stackedTogether, unstacked } from '../matrices.ts';

/**
 * What `linalg.lstsq` gives.
 *
 * @names LeastSquares, linalg.LeastSquares
 */
export interface LeastSquares {
  /** X with the least ‖A·X − B‖, n×k; the shortest such X where A has fewer rows than columns. */
  readonly solution: Tensor;
  /** Σ (A·X − B)² of each column where A has more rows than columns; without elements else. */
  readonly residuals: Tensor;
  /** i32: how many singular values count; without elements where the driver is `gels`. */
  readonly rank: Tensor;
  /** Descending; without elements where the driver is `gels`. */
  readonly singularValues: Tensor;
}

/** @names LstsqOptions, linalg.LstsqOptions */
export interface LstsqOptions {
  /**
   * `gels` (default): A has full rank, and Q and R do. `gelsd`: any A, by its singular values, and the
   * shortest X of those with the least residual.
   */
  readonly driver?: 'gels' | 'gelsd';
  /** Singular values up to `rcond` times the greatest count as 0: ε·max(m, n) by default. */
  readonly rcond?: number;
}

const takesLstsq = arg.takes<typeof lstsq>(
  ['the matrix', aTensor],
  ['the right-hand sides', aTensor],
  ['options', arg.options<LstsqOptions>({ driver: arg.oneOf('gels', 'gelsd'), rcond: arg.notNegative })],
);

/**
 * X with the least ‖A·X − B‖, as `torch.linalg.lstsq`.
 *
 * @example
 * const x = sn.tensor([[1, 2], [3, 4], [5, 6]]);
 * const b3 = sn.tensor([[1], [0], [1]]);
 * sn.linalg.lstsq(x, b3);
 */
export function lstsq(a: Tensor, b: Tensor, options: LstsqOptions = {}): LeastSquares {
  const op = 'lstsq';
  takesLstsq(op, a, b, options);
  checkMatrices(op, a, b);
  const isBySingularValues = options.driver === 'gelsd';
  const [m, n] = sizeOfMatrix(a);
  if (sizeOfMatrix(b)[0] !== m)
    throw new TensorError('E_SHAPE', op, `the right-hand sides do not fit: ${show(a, b)}`);
  const batch = commonBatch(op, a, b);
  if (isBySingularValues) return bySingularValues(a, b, options.rcond);
  const [solution, residuals] = recordMany([a, b], (builder, [node, rhs]) => {
    const [matrix, sides] = stackedTogether(builder, node!, rhs!, batch);
    if (m < n) {
      // A = Rᴴ·Qᴴ: the shortest X is Q·R⁻ᴴ·B.
      const [q, r] = orthogonal(builder, adjoint(builder, matrix));
      const x = product(builder, q, solveLower(builder, adjoint(builder, r), sides));
      return [unstacked(builder, x, batch), full(builder, [0], 0, partType(a.dtype))];
    }
    const [q, r] = orthogonal(builder, matrix);
    const x = solveUpper(builder, r, adjointProduct(builder, q, sides));
    const rest = sub(builder, product(builder, matrix, x), sides);
    const size = isComplex(a.dtype) ? unary(builder, 'abs', rest) : rest;
    const squares = reduce(builder, 'sum', mul(builder, size, size), [1]);
    const isShort = m === n || sizes(sides)[0] === 0;
    return [
      unstacked(builder, x, batch),
      isShort ? full(builder, [0], 0, partType(a.dtype)) : unstacked(builder, squares, batch),
    ];
  });
  return { solution: solution!, residuals: residuals!, ...unranked(a) };
}

function unranked(a: Tensor): Pick<LeastSquares, 'rank' | 'singularValues'> {
  return { rank: zeros([0], { dtype: 'i32' }), singularValues: zeros([0], { dtype: partType(a.dtype) }) };
}

function bySingularValues(a: Tensor, b: Tensor, rcond: number | undefined): LeastSquares {
  const [m, n] = sizeOfMatrix(a);
  const rtol = rcond ?? Math.max(m, n) * 2 ** (partType(a.dtype) === 'f32' ? -23 : -52);
  // Solutions are exact also inside of `autocast`.
  const exact = (x: Tensor, y: Tensor): Tensor => withAutocastType(undefined, () => matmul(x, y));
  const solution = exact(pinv(a, { rtol }), b);
  const rest = difference(exact(a, solution), b);
  return {
    solution,
    residuals: m > n ? sum(square(abs(rest)), -2) : zeros([0], { dtype: partType(a.dtype) }),
    rank: matrixRank(a, { rtol }),
    singularValues: svdvals(a),
  };
}
