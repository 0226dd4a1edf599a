// Products of sparse matrices with dense ones. Each row folds the rows of the dense matrix that its
// elements name, times these elements: the elements of a row lie together, so nothing is sorted
// forward; the gradient of the dense matrix sorts columns, once for all its columns.

import { TensorError } from '../../../errors.ts';
import * as arg from '../../../ir/arguments.ts';
import { broadcast, cast, mul, reshape } from '../../../ir/build.ts';
import { aTensor } from '../../expect.ts';
import type { Tensor } from '../../tensor.ts';
import { wideType } from '../../formula/elementwise.ts';
import { apply, checkRank, show } from '../operand.ts';
import { foldSegments } from '../select/segment.ts';
import { selectRows } from '../shape/gather.ts';
import { toCsr } from './convert.ts';
import { aMatrix, type SparseMatrix } from './formats.ts';

const takesProduct = arg.takes<typeof spmm>(['the matrix', aMatrix], ['the dense matrix', aTensor]);

function product(op: string, matrix: SparseMatrix, dense: Tensor, width: number): Tensor {
  const [rows, inner] = matrix.shape;
  if (dense.shape[0] !== inner) {
    const problem = `rows must be as many as the matrix has columns (${inner}): ${show(dense)}`;
    throw new TensorError('E_SHAPE', op, problem);
  }
  if (dense.dtype !== matrix.values.dtype || dense.dtype === 'bool') {
    const problem = `expects numbers of one dtype: ${show(matrix.values, dense)}`;
    throw new TensorError('E_DTYPE', op, problem);
  }
  const { crow, col, values } = toCsr(matrix);
  return apply([crow, col, values, dense], (b, starts, places, elements, right) => {
    const wide = wideType(dense.dtype);
    const table = reshape(b, cast(b, right, wide), [inner, width]);
    const shape = [values.size, width];
    const factors = broadcast(b, reshape(b, cast(b, elements, wide), [values.size, 1]), shape);
    const terms = mul(b, factors, selectRows(b, table, places, 0));
    const sums = foldSegments(b, terms, starts, 0, 'add', 0);
    return reshape(b, cast(b, sums, dense.dtype), dense.rank === 1 ? [rows] : [rows, width]);
  });
}

/**
 * A sparse matrix [m, k] times a dense one [k, n].
 *
 * @torch torch.sparse.mm
 * @example
 * const starts = sn.tensor([0, 2, 3], { dtype: 'i32' });
 * const columns = sn.tensor([0, 2, 1], { dtype: 'i32' });
 * const v = sn.tensor([1, 2, 3]);
 * const x = sn.tensor([[1, 0], [2, 1], [0, 3]]);
 * sn.sparse.spmm(sn.sparse.csr(starts, columns, v, [2, 3]), x);
 */
export function spmm(matrix: SparseMatrix, dense: Tensor): Tensor {
  takesProduct('spmm', matrix, dense);
  checkRank('spmm', 'the dense matrix', dense, 2);
  return product('spmm', matrix, dense, dense.shape[1]!);
}

/**
 * A sparse matrix [m, k] times a vector [k].
 *
 * @example
 * const starts = sn.tensor([0, 2, 3], { dtype: 'i32' });
 * const columns = sn.tensor([0, 2, 1], { dtype: 'i32' });
 * const v = sn.tensor([1, 2, 3]);
 * const u = sn.tensor([1, 2, 3]);
 * sn.sparse.spmv(sn.sparse.csr(starts, columns, v, [2, 3]), u);
 */
export function spmv(matrix: SparseMatrix, vector: Tensor): Tensor {
  takesProduct('spmv', matrix, vector);
  checkRank('spmv', 'the vector', vector, 1);
  return product('spmv', matrix, vector, 1);
}
