// `sinter/masked`, which is `sn.masked` too. Operations over the elements where a mask is true, as in `torch.masked`.

export * from '../tensor/ops/masked/masked.ts';
