// Layers with weights beside ../linear.ts: a bilinear form, bags of rows of a table, and learnt slopes.

import type { DType, FloatDType } from '../../ir/dtype.ts';
import type { Floated, Weighed } from '../../tensor/inferred.ts';
import * as arg from '../../ir/arguments.ts';
import { normalizeAxis } from '../../ir/shape.ts';
import { arange, full } from '../../tensor/ops/creation/creation.ts';
import { normal } from '../../tensor/ops/creation/random.ts';
import { prelu } from '../../tensor/ops/elementwise/activation.ts';
import { eq, maskedFill } from '../../tensor/ops/elementwise/compare.ts';
import { rrelu, rreluOptions, type RreluOptions } from '../../tensor/ops/elementwise/shrink.ts';
import { bilinear } from '../../tensor/ops/product/bilinear.ts';
import { softmax } from '../../tensor/ops/reduce/softmax.ts';
import { embeddingBag, type EmbeddingBagOptions } from '../../tensor/ops/shape/embedding-bag.ts';
import { reshape } from '../../tensor/ops/shape/view.ts';
import { aTensor, expectTensor } from '../../tensor/expect.ts';
import { checkRank } from '../../tensor/ops/operand.ts';
import type { Tensor } from '../../tensor/tensor.ts';
import { initOptions, symmetric, typeOf, type InitOptions } from '../init.ts';
import type { LinearOptions } from '../linear.ts';
import { Module } from '../module.ts';
import { parameter } from '../parameters.ts';

const takesBilinear = arg.takes<typeof Bilinear>(
  ['the size of x', arg.count(1)],
  ['the size of y', arg.count(1)],
  ['the number of outputs', arg.count(1)],
  ['options', arg.options<LinearOptions>({ ...initOptions, bias: arg.flag })],
);

/**
 * xᵀ·weight·y + bias for each output: [.., left] and [.., right] to [.., outputs]. All start as
 * U(±1/√left).
 */
export class Bilinear extends Module {
  weight: Tensor;
  bias: Tensor | undefined;

  constructor(left: number, right: number, outputs: number, options: LinearOptions = {}) {
    takesBilinear('Bilinear', left, right, outputs, options);
    super();
    const bound = 1 / Math.sqrt(left);
    this.weight = parameter(symmetric([outputs, left, right], bound, options));
    this.bias = options.bias === false ? undefined : parameter(symmetric([outputs], bound, options));
  }

  forward<D extends DType>(x: Tensor<D>, y: Tensor): Tensor<Weighed<D>> {
    return bilinear(x, y, this.weight, this.bias);
  }
}

export interface EmbeddingBagLayerOptions extends InitOptions {
  /** How the rows of a bag become one; 'mean' by default. */
  readonly mode?: 'sum' | 'mean' | 'max';
  /** The row of this index starts as zeros and counts for nothing; none by default. */
  readonly paddingIdx?: number;
  /** The offsets have one more, the number of indices; false by default. */
  readonly includeLastOffset?: boolean;
}

/** What `forward` of an `EmbeddingBag` takes beside the indices. */
export type BagOptions = Pick<EmbeddingBagOptions, 'offsets' | 'perSampleWeights'>;

const takesEmbeddingBag = arg.takes<typeof EmbeddingBag>(
  ['the number of rows', arg.count(1)],
  ['the width', arg.count(1)],
  [
    'options',
    arg.options<EmbeddingBagLayerOptions>({
      ...initOptions,
      mode: arg.oneOf('sum', 'mean', 'max'),
      paddingIdx: arg.integer,
      includeLastOffset: arg.flag,
    }),
  ],
);
const takesBag = arg.takes<(indices: Tensor, options?: BagOptions) => unknown>(
  ['the indices', aTensor],
  ['options', arg.options<BagOptions>({ offsets: aTensor, perSampleWeights: aTensor })],
);

/** Bags of rows of a table of `count` vectors of `width`, each summed, averaged or at its maximum. */
export class EmbeddingBag extends Module {
  weight: Tensor;
  readonly mode: 'sum' | 'mean' | 'max';
  readonly paddingIdx: number | undefined;
  readonly includeLastOffset: boolean;

  constructor(count: number, width: number, options: EmbeddingBagLayerOptions = {}) {
    takesEmbeddingBag('EmbeddingBag', count, width, options);
    super();
    const { paddingIdx, mode = 'mean', includeLastOffset = false } = options;
    this.paddingIdx = paddingIdx === undefined ? undefined : normalizeAxis('EmbeddingBag', paddingIdx, count);
    const table = normal([count, width], typeOf(options));
    this.weight = parameter(
      this.paddingIdx === undefined
        ? table
        : maskedFill(table, reshape(eq(arange(count), this.paddingIdx), [count, 1]), 0),
    );
    this.mode = mode;
    this.includeLastOffset = includeLastOffset;
  }

  forward(indices: Tensor, options: BagOptions = {}): Tensor<FloatDType> {
    takesBag('EmbeddingBag', indices, options);
    const { mode, paddingIdx, includeLastOffset } = this;
    return embeddingBag(indices, this.weight, {
      ...options,
      mode,
      includeLastOffset,
      ...(paddingIdx === undefined ? {} : { paddingIdx }),
    });
  }
}

export interface PReLUOptions extends InitOptions {
  /** What the slopes start as; 0.25 by default. */
  readonly init?: number;
}

const takesPReLU = arg.takes<typeof PReLU>(
  ['the number of slopes', arg.optional(arg.count(1))],
  ['options', arg.options<PReLUOptions>({ ...initOptions, init: arg.number })],
);

/** x where positive, else x times a learnt slope: one for all, or one per channel [N, C, …]. */
export class PReLU extends Module {
  weight: Tensor;

  constructor(count: number = 1, options: PReLUOptions = {}) {
    takesPReLU('PReLU', count, options);
    super();
    this.weight = parameter(full([count], options.init ?? 0.25, typeOf(options)));
  }

  forward<D extends DType>(x: Tensor<D>): Tensor<Weighed<D>> {
    return prelu(x, this.weight);
  }
}

/** The slopes of an `RReLU`. */
export type RReLUOptions = Omit<RreluOptions, 'training'>;

const takesRReLU = arg.takes<typeof RReLU>([
  'options',
  arg.options<RReLUOptions>({ lower: rreluOptions.lower, upper: rreluOptions.upper }),
]);

/** x above 0, below it times a slope: drawn in training, else the mean of the slopes. */
export class RReLU extends Module {
  readonly options: RReLUOptions;

  constructor(options: RReLUOptions = {}) {
    takesRReLU('RReLU', options);
    super();
    this.options = options;
  }

  forward<D extends DType>(x: Tensor<D>): Tensor<Floated<D>> {
    return rrelu(x, { ...this.options, training: this.training });
  }
}

/** Softmax over the channels at each place of [N, C, H, W] (or [C, H, W]). */
export class Softmax2d extends Module {
  forward<D extends DType>(x: Tensor<D>): Tensor<Floated<D>> {
    expectTensor('Softmax2d', 'x', x);
    checkRank('Softmax2d', 'x', x, 3, 4);
    return softmax(x, -3);
  }
}
