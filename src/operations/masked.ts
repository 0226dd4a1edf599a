// `sn.masked`. Operations over the elements where a mask is true, as in torch.masked.
// Made by `npm run operations` of the comments in src/tensor/ops.

// Masked operations
export {
  amax,
  amin,
  argmax,
  argmin,
  logsumexp,
  mean,
  median,
  norm,
  prod,
  std,
  sum,
  variance as var,
  type MaskedVarOptions,
} from '../tensor/ops/masked/fold.ts';
export {
  cumprod,
  cumsum,
  logSoftmax,
  logaddexp,
  normalize,
  softmax,
  softmin,
  type MaskedLogaddexpOptions,
  type MaskedNormalizeOptions,
} from '../tensor/ops/masked/line.ts';
export { type MaskOptions, type MaskedReduceOptions } from '../tensor/ops/masked/masks.ts';
