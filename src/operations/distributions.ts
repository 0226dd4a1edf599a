// `sn.distributions`. Distributions: each is made of its parameters, and has `sample`, `rsample`, `logProb`, `mean`, `variance`.
// Made by `npm run operations` of the comments in src/tensor/ops.

// Random numbers, dropout and distributions
export {
  beta,
  cauchy,
  chi2,
  exponential,
  gamma,
  gumbel,
  laplace,
  logNormal,
  logistic,
  normal,
  studentT,
  uniform,
  type OfOne,
  type OfTwo,
  type StudentTOptions,
} from '../tensor/ops/distributions/continuous.ts';
export {
  bernoulli,
  categorical,
  geometric,
  poisson,
  type CategoricalOptions,
  type OfShare,
} from '../tensor/ops/distributions/discrete.ts';
export { type Distribution } from '../tensor/ops/distributions/distribution.ts';
