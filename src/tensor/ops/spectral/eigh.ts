// Eigenvalues and eigenvectors of Hermitian matrices.

import * as arg from '../../../ir/arguments.ts';
import { reshape } from '../../../ir/build.ts';
import { aTensor } from '../../expect.ts';
import { recordMany } from '../../record.ts';
import type { Tensor } from '../../tensor.ts';
import { apply } from '../operand.ts';
import { eighNodes, eigvalshNodes, type Triangle } from './rules.ts';
import { batchOf, stacked, unstacked } from '../matrices.ts';
import { checkMatrices } from './stack.ts';

/** @names linalg.EighOptions */
export interface EighOptions {
  /** Which triangle is read, and stands for the other: the lower one by default. */
  readonly uplo?: Triangle;
}

const eighOptions = arg.options<EighOptions>({ uplo: arg.oneOf('L', 'U') });
const takesEigh = arg.takes<typeof eigh>(['x', aTensor], ['options', eighOptions]);

/**
 * Eigenvalues w, ascending, and orthonormal eigenvectors, the columns of V, of Hermitian matrices
 * [.., n, n] = V·diag(w)·Vᴴ.
 *
 * @names linalg.eigh
 * @example
 * const a = sn.tensor([[4, 2], [2, 3]]);
 * sn.linalg.eigh(a);
 */
export function eigh(x: Tensor, options: EighOptions = {}): [w: Tensor, v: Tensor] {
  takesEigh('linalg.eigh', x, options);
  checkMatrices('linalg.eigh', x, 'square');
  const [w, v] = recordMany([x], (b, [node]) => {
    const parts = eighNodes(b, stacked(b, node!), options.uplo ?? 'L');
    return [reshape(b, parts.w, x.shape.slice(0, -1)), unstacked(b, parts.v, batchOf(x))];
  });
  return [w!, v!];
}

const takesEigvalsh = arg.takes<typeof eigvalsh>(['x', aTensor], ['options', eighOptions]);

/**
 * The eigenvalues of Hermitian matrices [.., n, n], ascending.
 *
 * @names linalg.eigvalsh
 * @example
 * const a = sn.tensor([[4, 2], [2, 3]]);
 * sn.linalg.eigvalsh(a);
 */
export function eigvalsh(x: Tensor, options: EighOptions = {}): Tensor {
  takesEigvalsh('linalg.eigvalsh', x, options);
  checkMatrices('linalg.eigvalsh', x, 'square');
  return apply([x], (b, node) =>
    reshape(b, eigvalshNodes(b, stacked(b, node), options.uplo ?? 'L'), x.shape.slice(0, -1)),
  );
}
