// `sinter/special`, which is `sn.special` too. Special functions, as in `torch.special`.

export * from '../tensor/ops/special/special.ts';
