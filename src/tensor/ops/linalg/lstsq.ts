// Least squares by orthogonal factorisation.

import { TensorError } from '../../../errors.ts';
import * as arg from '../../../ir/arguments.ts';
import { full, reduce, mul, sub } from '../../../ir/build.ts';
import { product, sizes, solveLower, solveUpper, transpose } from '../../../ir/matrix.ts';
import { aTensor } from '../../expect.ts';
import { recordMany } from '../../recording/record.ts';
import type { Tensor } from '../../tensor.ts';
import { show } from '../operand.ts';
import { orthogonal } from './formula.ts';
import { checkMatrices, commonBatch, sizeOfMatrix, stackedTogether, unstacked } from './stack.ts';

export interface LeastSquares {
  /** X with the least ‖A·X − B‖, n×k; the shortest such X where A has fewer rows than columns. */
  readonly solution: Tensor;
  /** Σ (A·X − B)² of each column where A has more rows than columns; without elements else. */
  readonly residuals: Tensor;
}

const takesLstsq = arg.takes<typeof lstsq>(['the matrix', aTensor], ['the right-hand sides', aTensor]);

/** Least squares of a matrix of full rank, as `torch.linalg.lstsq` with the driver `gels`. */
export function lstsq(a: Tensor, b: Tensor): LeastSquares {
  const op = 'lstsq';
  takesLstsq(op, a, b);
  checkMatrices(op, a, b);
  const [m, n] = sizeOfMatrix(a);
  if (sizeOfMatrix(b)[0] !== m)
    throw new TensorError('E_SHAPE', op, `the right-hand sides do not fit: ${show(a, b)}`);
  const batch = commonBatch(op, a, b);
  const [solution, residuals] = recordMany([a, b], (builder, [node, rhs]) => {
    const [matrix, sides] = stackedTogether(builder, node!, rhs!, batch);
    if (m < n) {
      // A = Rᵀ·Qᵀ: the shortest X is Q·R⁻ᵀ·B.
      const [q, r] = orthogonal(builder, transpose(builder, matrix));
      const x = product(builder, q, solveLower(builder, transpose(builder, r), sides));
      return [unstacked(builder, x, batch), full(builder, [0], 0, a.dtype)];
    }
    const [q, r] = orthogonal(builder, matrix);
    const x = solveUpper(builder, r, product(builder, q, sides, { ofX: true }));
    const rest = sub(builder, product(builder, matrix, x), sides);
    const squares = reduce(builder, 'sum', mul(builder, rest, rest), [1]);
    const isShort = m === n || sizes(sides)[0] === 0;
    return [
      unstacked(builder, x, batch),
      isShort ? full(builder, [0], 0, a.dtype) : unstacked(builder, squares, batch),
    ];
  });
  return { solution: solution!, residuals: residuals! };
}
