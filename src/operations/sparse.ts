// `sn.sparse`. Sparse matrices of compressed rows, compressed columns, or places one by one.
// Made by `npm run operations` of the comments in src/tensor/ops.

// Sparse matrices
export {
  CooMatrix,
  CscMatrix,
  CsrMatrix,
  coo,
  csc,
  csr,
  type MatrixShape,
  type SparseLayout,
  type SparseMatrix,
} from '../tensor/ops/sparse/formats.ts';
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
} from '../tensor/ops/sparse/convert.ts';
export { spmm, spmv } from '../tensor/ops/sparse/product.ts';
