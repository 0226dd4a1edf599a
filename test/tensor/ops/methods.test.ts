// Methods are the functions, and no operation on a tensor lacks its method by accident.

import { beforeAll, describe, expect, expectTypeOf, test } from 'vitest';
import '../../../src/tensor/methods.ts';
import * as entry from '../../../src/index.ts';
import * as sn from '../../../src/tensor/ops/all.ts';
import { setDevice } from '../../../src/tensor/storage/device.ts';
import { Tensor } from '../../../src/tensor/tensor.ts';
import { read } from './support.ts';

beforeAll(() => setDevice('interpreter'));

/** Operations whose first argument is no tensor, or that read better as functions of several tensors. */
const functionsOnly = new Set(
  `tensor zeros ones full zerosLike onesLike fullLike arange linspace eye
   rand randn randLike randnLike randint randperm uniform normal
   cat stack meshgrid einsum embedding segmentSum searchsorted
   conv1d conv2d conv3d convTranspose1d convTranspose2d convTranspose3d
   maxPool1d maxPool2d maxPool3d maxPool1dWithIndices maxPool2dWithIndices maxPool3dWithIndices
   avgPool1d avgPool2d avgPool3d lpPool1d lpPool2d lpPool3d affineGrid gridSample
   adaptiveAvgPool2d globalAvgPool
   argwhere expandByMask maskedAt asStrided asStridedScatter isin unravelIndex segmentReduce uniqueConsecutive
   bincount histc histogram histogramdd corrcoef cov nanmedianWithIndices nanquantile bucketize
   batchNorm batchNormUpdate scaledDotProductAttention cosineSimilarity
   empty emptyLike logspace trilIndices triuIndices complex polar rsub tensordot trapezoid cumulativeTrapezoid gradient
   atleast1d atleast2d atleast3d hstack vstack dstack columnStack blockDiag broadcastTensors cartesianProd combinations
   cdist pairwiseDistance pdist matrixExp pinverse svd vander
   stft istft hannWindow hammingWindow blackmanWindow bartlettWindow kaiserWindow
   adaptiveAvgPool1d adaptiveAvgPool3d adaptiveMaxPool1d adaptiveMaxPool2d adaptiveMaxPool3d
   adaptiveMaxPool1dWithIndices adaptiveMaxPool2dWithIndices adaptiveMaxPool3dWithIndices
   maxUnpool1d maxUnpool2d maxUnpool3d fractionalMaxPool2d fractionalMaxPool3d
   fractionalMaxPool2dWithIndices fractionalMaxPool3dWithIndices im2col col2im
   gumbelSoftmax bilinear rotaryEmbedding embeddingBag rnnCell lstmCell gruCell gruCellFused
   marginRankingLoss cosineEmbeddingLoss tripletMarginLoss tripletMarginWithDistanceLoss softMarginLoss multiMarginLoss
   multilabelMarginLoss multilabelSoftMarginLoss gaussianNllLoss poissonNllLoss ctcLoss
   mseLoss l1Loss smoothL1Loss huberLoss bceLoss bceWithLogits klDiv hingeEmbeddingLoss nllLoss crossEntropy`.split(
    /\s+/,
  ),
);

describe('methods', () => {
  test('exist for every operation but those listed as functions', () => {
    const operations = Object.entries(sn).flatMap(([name, at]) =>
      typeof at === 'function' && name in entry ? [name] : [],
    );
    const missing = operations.filter((name) => !functionsOnly.has(name) && !(name in Tensor.prototype));
    expect(missing).toEqual([]);
    const unexpected = [...functionsOnly].filter((name) => name in Tensor.prototype || !(name in sn));
    expect(unexpected).toEqual([]);
  });

  test('are no enumerable properties of tensors', () => {
    expect(Object.keys(Tensor.prototype)).toEqual([]);
  });

  test('call the function on the tensor', async () => {
    const x = sn.tensor([
      [1, -2],
      [3, -4],
    ]);
    expect(await read(x.matmul(x.T).add(1).relu().sum(0))).toEqual([18, 38]);
    expect(await read(x.at(0, { step: -1 }))).toEqual([-2, 1]);
    expect(await read(x.gt(0).where(x, 0))).toEqual([1, 0, 3, 0]);
    expect(await x.div(0).hasInfNan()).toBe(true);
    expect(await x.hasInfNan()).toBe(false);
  });

  test('T reverses all axes', () => {
    expect(sn.ones([2, 3, 4]).T.shape).toEqual([4, 3, 2]);
  });

  test('have the types of the functions', () => {
    const x = sn.ones([2]);
    expectTypeOf(x.sum).parameter(0).toEqualTypeOf<sn.Axes | undefined>();
    expectTypeOf(x.hasInfNan).returns.toEqualTypeOf<Promise<boolean>>();
    expectTypeOf(x.at).parameters.toEqualTypeOf<sn.Index[]>();
  });
});
