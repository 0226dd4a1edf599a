// Statistics, as a page loads them.

import '../methods.ts';

export { bincount, histc, histogram, histogramdd } from '../../tensor/ops/statistics/histogram.ts';
export { aminmax, corrcoef, cov, nanmean, nansum } from '../../tensor/ops/statistics/moments.ts';
export {
  kthvalue,
  median,
  medianWithIndices,
  mode,
  nanmedian,
  nanmedianWithIndices,
  nanquantile,
  quantile,
} from '../../tensor/ops/statistics/order.ts';
