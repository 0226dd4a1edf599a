// Losses of pairs and triplets of vectors, and the distances they are made of, as modules.

import type { FloatDType } from '../../ir/dtype.ts';
import * as arg from '../../ir/arguments.ts';
import {
  cosineEmbeddingLoss,
  marginOptions,
  marginRankingLoss,
  tripletDistanceOptions,
  tripletMarginLoss,
  tripletMarginOptions,
  tripletMarginWithDistanceLoss,
  type MarginOptions,
  type TripletDistanceOptions,
  type TripletMarginOptions,
} from '../../tensor/ops/loss/pair.ts';
import { cosineSimilarity, type CosineSimilarityOptions } from '../../tensor/ops/product/similarity.ts';
import {
  pairwiseDistance,
  pairwiseDistanceOptions,
  type PairwiseDistanceOptions,
} from '../../tensor/ops/spectral/distance.ts';
import type { Tensor, TensorLike } from '../../tensor/tensor.ts';
import { Module } from '../module.ts';
import { Loss } from './base.ts';

/** max(0, −target·(x − y) + margin). */
export class MarginRankingLoss extends Loss<MarginOptions> {
  constructor(options: MarginOptions = {}) {
    super('MarginRankingLoss', marginOptions, options);
  }

  forward(x: Tensor, y: Tensor, target: TensorLike): Tensor<FloatDType> {
    return marginRankingLoss(x, y, target, this.options);
  }
}

/** 1 − cos(x, y) where the target is 1, max(0, cos(x, y) − margin) where it is −1. */
export class CosineEmbeddingLoss extends Loss<MarginOptions> {
  constructor(options: MarginOptions = {}) {
    super('CosineEmbeddingLoss', marginOptions, options);
  }

  forward(x: Tensor, y: Tensor, target: Tensor): Tensor<FloatDType> {
    return cosineEmbeddingLoss(x, y, target, this.options);
  }
}

/** max(0, d(anchor, positive) − d(anchor, negative) + margin). */
export class TripletMarginLoss extends Loss<TripletMarginOptions> {
  constructor(options: TripletMarginOptions = {}) {
    super('TripletMarginLoss', tripletMarginOptions, options);
  }

  forward(anchor: Tensor, positive: Tensor, negative: Tensor): Tensor<FloatDType> {
    return tripletMarginLoss(anchor, positive, negative, this.options);
  }
}

/** `TripletMarginLoss` with any function as its distance. */
export class TripletMarginWithDistanceLoss extends Loss<TripletDistanceOptions> {
  constructor(options: TripletDistanceOptions = {}) {
    super('TripletMarginWithDistanceLoss', tripletDistanceOptions, options);
  }

  forward(anchor: Tensor, positive: Tensor, negative: Tensor): Tensor<FloatDType> {
    return tripletMarginWithDistanceLoss(anchor, positive, negative, this.options);
  }
}

/** ‖x − y + eps‖ along the last axis. */
export class PairwiseDistance extends Loss<PairwiseDistanceOptions> {
  constructor(options: PairwiseDistanceOptions = {}) {
    super('PairwiseDistance', pairwiseDistanceOptions, options);
  }

  forward(x: Tensor, y: Tensor): Tensor<FloatDType> {
    return pairwiseDistance(x, y, this.options);
  }
}

const takesCosine = arg.takes<typeof CosineSimilarity>(
  ['axis', arg.optional(arg.integer)],
  ['options', arg.options<CosineSimilarityOptions>({ eps: arg.number })],
);

/** The cosine of the angle between vectors along an axis, 1 by default. */
export class CosineSimilarity extends Module {
  readonly axis: number;
  readonly options: CosineSimilarityOptions;

  constructor(axis: number = 1, options: CosineSimilarityOptions = {}) {
    takesCosine('CosineSimilarity', axis, options);
    super();
    this.axis = axis;
    this.options = options;
  }

  forward(x: Tensor, y: Tensor): Tensor<FloatDType> {
    return cosineSimilarity(x, y, this.axis, this.options);
  }
}
