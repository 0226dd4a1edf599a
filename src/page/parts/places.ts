// Gathering and scattering, as a page loads them.

import '../methods.ts';

export {
  embedding,
  gather,
  indexSelect,
  oneHot,
  take,
  takeAlongAxis,
  takeAlongDim,
} from '../../tensor/ops/shape/gather.ts';
export {
  indexAdd,
  indexCopy,
  scatter,
  scatterAdd,
  scatterReduce,
  segmentSum,
} from '../../tensor/ops/shape/scatter.ts';
export { embeddingBag } from '../../tensor/ops/shape/embedding-bag.ts';
