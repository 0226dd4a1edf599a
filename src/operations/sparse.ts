// `sinter/sparse`, which is `sn.sparse` too. Sparse matrices of compressed rows, compressed columns, or places one by one.

export * from '../tensor/ops/sparse/sparse.ts';
