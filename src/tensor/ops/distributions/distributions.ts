// The namespace `distributions`: samples and log-probabilities.

// Continuous
export {
  beta,
  cauchy,
  chi2,
  exponential,
  gamma,
  gumbel,
  laplace,
  logistic,
  logNormal,
  normal,
  studentT,
  uniform,
  type OfOne,
  type OfTwo,
  type StudentTOptions,
} from './continuous.ts';

// Of whole numbers
export {
  bernoulli,
  categorical,
  geometric,
  poisson,
  type CategoricalOptions,
  type OfShare,
} from './discrete.ts';
export type { Distribution } from './distribution.ts';
