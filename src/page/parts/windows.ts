// Pools and patches, as a page loads them.

import '../methods.ts';

export {
  avgPool1d,
  avgPool2d,
  avgPool3d,
  globalAvgPool,
  lpPool1d,
  lpPool2d,
  lpPool3d,
  maxPool1d,
  maxPool1dWithIndices,
  maxPool2d,
  maxPool2dWithIndices,
  maxPool3d,
  maxPool3dWithIndices,
} from '../../tensor/ops/product/pool.ts';
export {
  adaptiveAvgPool1d,
  adaptiveAvgPool2d,
  adaptiveAvgPool3d,
  adaptiveMaxPool1d,
  adaptiveMaxPool1dWithIndices,
  adaptiveMaxPool2d,
  adaptiveMaxPool2dWithIndices,
  adaptiveMaxPool3d,
  adaptiveMaxPool3dWithIndices,
} from '../../tensor/ops/window/adaptive.ts';
export {
  fractionalMaxPool2d,
  fractionalMaxPool2dWithIndices,
  fractionalMaxPool3d,
  fractionalMaxPool3dWithIndices,
  maxUnpool1d,
  maxUnpool2d,
  maxUnpool3d,
} from '../../tensor/ops/window/unpool.ts';
export { col2im, im2col } from '../../tensor/ops/window/fold.ts';
