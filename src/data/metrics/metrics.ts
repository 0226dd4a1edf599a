// `metrics`, a namespace of `sinter/data`: figures over many batches whose state stays on the device.

export { Metric, type MetricFunctions } from './metric.ts';
export {
  accuracy,
  confusionMatrix,
  f1,
  precision,
  recall,
  type AccuracyOptions,
  type Averaging,
  type ClassOptions,
  type ConfusionOptions,
  type F1Options,
  type Rate,
} from './classes.ts';
export type { LabelOptions } from './labels.ts';
export {
  auc,
  averagePrecision,
  averagePrecisionScore,
  rocAuc,
  type BinCounts,
  type BinOptions,
} from './ranking.ts';
export {
  mae,
  mean,
  mse,
  perplexity,
  r2,
  type MeanState,
  type PerplexityOptions,
  type VarianceState,
} from './means.ts';
export { overAll, type Kept } from './whole.ts';
export type { Total } from './total.ts';
