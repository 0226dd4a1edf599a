// Scans and sorts, as a page loads them.

import '../methods.ts';

export { cummax, cummin, cumprod, cumsum, logcumsumexp } from '../../tensor/ops/reduce/scan.ts';
export { argsort, bucketize, msort, searchsorted, sort, topk } from '../../tensor/ops/reduce/sort.ts';
export { cumulativeTrapezoid, diff, gradient, trapezoid } from '../../tensor/ops/reduce/difference.ts';
export { allclose, equal, renorm, stdMean, sumToSize } from '../../tensor/ops/reduce/summary.ts';
