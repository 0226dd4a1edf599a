// Norms, as a page loads them.

import '../methods.ts';

export {
  batchNorm,
  batchNormUpdate,
  groupNorm,
  instanceNorm,
  layerNorm,
  localResponseNorm,
  normalize,
  rmsNorm,
} from '../../tensor/ops/reduce/norm.ts';
