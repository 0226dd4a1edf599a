// Functions of layers, as a page loads them.

import '../methods.ts';

export { affineGrid, gridSample } from '../../tensor/ops/creation/sample.ts';
export { interpolate } from '../../tensor/ops/image/interpolate.ts';
export { channelShuffle, pixelShuffle, pixelUnshuffle } from '../../tensor/ops/image/shuffle.ts';
export {
  alphaDropout,
  dropout1d,
  dropout2d,
  dropout3d,
  featureAlphaDropout,
} from '../../tensor/ops/creation/dropout.ts';
export { gruCell, gruCellFused, lstmCell, rnnCell } from '../../tensor/ops/sequence/cells.ts';
