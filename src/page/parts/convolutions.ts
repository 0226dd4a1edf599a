// Convolutions, as a page loads them.

import '../methods.ts';

export {
  conv1d,
  conv2d,
  conv3d,
  convTranspose1d,
  convTranspose2d,
  convTranspose3d,
} from '../../tensor/ops/product/conv.ts';
