// `sn.sparse24`. Matrices with two elements in each group of four.
// Made by `npm run operations` of the comments in src/tensor/ops.

// Sparse matrices
export { Packed24, compress, decompress, matmul } from '../tensor/ops/sparse/structured.ts';
