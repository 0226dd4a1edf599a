// What stands at the top of the package: PyTorch's names, and the namespaces `special` and
// `distributions`.

// Special functions
export { digamma, erfinv, i0, lgamma, sinc } from './functions.ts';
export { igamma, igammac, logit, mvlgamma, polygamma, xlogy, type LogitOptions } from './pairs.ts';
export type { OrderOptions, Polynomial } from './polynomials.ts';
export * as special from './special.ts';
export * as distributions from '../distributions/distributions.ts';
