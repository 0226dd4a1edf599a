// The public names of sparse matrices: `sn.sparse.csr(…)`, `sn.sparse.spmm(a, x)`.

export {
  coo,
  CooMatrix,
  csc,
  CscMatrix,
  csr,
  CsrMatrix,
  type MatrixShape,
  type SparseLayout,
  type SparseMatrix,
} from './formats.ts';
export {
  coalesce,
  fromDense,
  scale,
  toCoo,
  toCsc,
  toCsr,
  toDense,
  transpose,
  type FromDense,
  type FromDenseOptions,
  type MatrixOf,
} from './convert.ts';
export { spmm, spmv } from './product.ts';
