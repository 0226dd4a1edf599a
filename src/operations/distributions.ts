// `sinter/distributions`, which is `sn.distributions` too. Distributions: each is made of its parameters.

export * from '../tensor/ops/distributions/distributions.ts';
