// Eigenvalues and eigenvectors of matrices of any kind.

import * as arg from '../../../ir/arguments.ts';
import { reshape } from '../../../ir/build.ts';
import { aTensor } from '../../expect.ts';
import { recordMany } from '../../record.ts';
import type { Tensor } from '../../tensor.ts';
import { apply } from '../operand.ts';
import { eigNodes } from './eigen.ts';
import { batchOf, stacked, unstacked } from '../matrices.ts';
import { checkMatrices } from './stack.ts';

const takesEig = arg.takes<typeof eig>(['x', aTensor]);

/**
 * Eigenvalues w and eigenvectors, the columns of V, of matrices [.., n, n]: x·V = V·diag(w). Both
 * are complex, in no order; vectors have length 1. Of a real matrix, eigenvalues that are real have
 * imaginary parts of rounding.
 *
 * @names linalg.eig
 * @example
 * const a = sn.tensor([[4, 2], [2, 3]]);
 * sn.linalg.eig(a);
 */
export function eig(x: Tensor): [w: Tensor, v: Tensor] {
  takesEig('linalg.eig', x);
  checkMatrices('linalg.eig', x, 'square');
  const [w, v] = recordMany([x], (b, [node]) => {
    const pairs = eigNodes(b, stacked(b, node!));
    return [reshape(b, pairs.w, x.shape.slice(0, -1)), unstacked(b, pairs.v, batchOf(x))];
  });
  return [w!, v!];
}

const takesEigvals = arg.takes<typeof eigvals>(['x', aTensor]);

/**
 * The eigenvalues of matrices [.., n, n], complex, in no order.
 *
 * @names linalg.eigvals
 * @example
 * const a = sn.tensor([[4, 2], [2, 3]]);
 * sn.linalg.eigvals(a);
 */
export function eigvals(x: Tensor): Tensor {
  takesEigvals('linalg.eigvals', x);
  checkMatrices('linalg.eigvals', x, 'square');
  return apply([x], (b, node) => reshape(b, eigNodes(b, stacked(b, node)).w, x.shape.slice(0, -1)));
}
