// Special functions, as a page loads them.

import '../methods.ts';

export { erfc } from '../../tensor/ops/elementwise/erfc.ts';
export { digamma, erfinv, i0, lgamma, sinc } from '../../tensor/ops/special/functions.ts';
export { igamma, igammac, logit, mvlgamma, polygamma, xlogy } from '../../tensor/ops/special/pairs.ts';
export * as special from '../../tensor/ops/special/special.ts';
