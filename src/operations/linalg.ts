// `sinter/linalg`, which is `sn.linalg` too. Linear algebra, as in `torch.linalg`.

export * from '../tensor/ops/linalg/linalg.ts';
