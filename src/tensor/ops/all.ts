// Every operation under its public name. src/index.ts lists them one by one; methods.ts makes
// methods of those that start with a tensor.

export * from './elementwise/activation.ts';
export * from './product/attention.ts';
export * from './elementwise/arithmetic.ts';
export * from './complex/complex.ts';
export * from './elementwise/cast.ts';
export * from './elementwise/compare.ts';
export * from './product/conv.ts';
export * from './creation/creation.ts';
export * from './product/einsum.ts';
export * from './elementwise/elementwise.ts';
export * from './elementwise/erfc.ts';
export {
  embedding,
  gather,
  indexSelect,
  oneHot,
  take,
  takeAlongAxis,
  takeAlongDim,
  type EmbeddingOptions,
  type OneHotOptions,
} from './shape/gather.ts';
export {
  indexAdd,
  indexCopy,
  scatter,
  scatterAdd,
  scatterReduce,
  segmentSum,
  type IndexAddOptions,
  type ScatterAddOptions,
  type ScatterReduce,
  type ScatterReduceOptions,
} from './shape/scatter.ts';
export { at, narrow, select, slice, type Index, type Range } from './shape/indexing.ts';
export * from './shape/join.ts';
export * from './classification-loss.ts';
// Selection and indexing, statistics, masked operations
export {
  argwhere,
  expandByMask,
  maskedAt,
  maskedScatter,
  maskedSelect,
  nonzero,
  type Counted,
} from './select/nonzero.ts';
export type { Sized, Unsized } from './select/count.ts';
export { dynamicSlice, dynamicUpdateSlice } from './select/dynamic.ts';
export * from './select/region.ts';
export * from './select/search.ts';
export { segmentReduce, type SegmentReduce, type SegmentReduceOptions } from './select/segment.ts';
export * from './select/unique.ts';
export { indexFill, indexPut, indexReduce, put, type PutOptions } from './select/write.ts';
export * from './select/write-at.ts';
export * from './statistics/histogram.ts';
export * from './statistics/moments.ts';
export * from './statistics/order.ts';
export * as masked from './masked/masked.ts';
export * as sparse from './sparse/sparse.ts';
export * as sparse24 from './sparse/structured.ts';
export * from './loss.ts';
export * from './product/matmul.ts';
export * from './shape/movement.ts';
export * from './reduce/norm.ts';
export * from './product/pool.ts';
export * from './creation/random.ts';
export * from './shape/rearrange.ts';
export type { Axes, ReduceOptions } from './reduce/axes.ts';
export * from './reduce/extremum.ts';
export * from './reduce/reduce.ts';
export { affineGrid, gridSample, type GridOptions, type SampleOptions } from './creation/sample.ts';
export * as fft from './fft/fft.ts';
export * from './fft/stft.ts';
export * from './fft/windows.ts';
export * from './reduce/scan.ts';
export * from './product/similarity.ts';
export * from './reduce/softmax.ts';
export * from './reduce/sort.ts';
export * from './shape/view.ts';
export { cdist, dist, pairwiseDistance, pdist, type PairwiseDistanceOptions } from './spectral/distance.ts';
export { matrixExp } from './spectral/exponential.ts';
export { norm } from './spectral/norms.ts';
export { pinverse } from './spectral/rank.ts';
export { svdOfTorch as svd, type SvdOptions } from './spectral/svd.ts';
export { cross, vander, type VanderOptions } from './spectral/vectors.ts';

// Layers as functions
export * from './window/adaptive.ts';
export * from './window/unpool.ts';
export * from './window/fold.ts';
export * from './image/interpolate.ts';
export * from './image/shuffle.ts';
export * from './elementwise/shrink.ts';
export * from './creation/dropout.ts';
export * from './product/bilinear.ts';
export * from './shape/embedding-bag.ts';
export * from './loss/pair.ts';
export * from './loss/margin.ts';
export * from './loss/likelihood.ts';
export * from './loss/ctc.ts';
export * from './sequence/cells.ts';
export * from './creation/like.ts';
export * from './elementwise/pairs.ts';
export * from './elementwise/parts.ts';
export * from './elementwise/scale.ts';
export * from './product/affine.ts';
export * from './product/tensordot.ts';
export * from './reduce/difference.ts';
export * from './reduce/summary.ts';
export * from './shape/stacking.ts';
export * from './shape/turn.ts';
