// Changes of size, of channels to pixels, and of neighbouring channels, as modules.

import type { DType } from '../ir/dtype.ts';
import type { Floated } from '../tensor/inferred.ts';
import * as arg from '../ir/arguments.ts';
import { interpolate, interpolateOptions, type InterpolateOptions } from '../tensor/ops/image/interpolate.ts';
import { channelShuffle, pixelShuffle, pixelUnshuffle } from '../tensor/ops/image/shuffle.ts';
import { checkRank } from '../tensor/ops/operand.ts';
import { localResponseNorm, type LocalResponseOptions } from '../tensor/ops/reduce/norm.ts';
import type { Tensor } from '../tensor/tensor.ts';
import { Module } from './module.ts';

const takesUpsample = arg.takes<typeof Upsample>([
  'options',
  arg.options<InterpolateOptions>(interpolateOptions),
]);

/** [N, C, S…] in another size: `interpolate` as a layer. */
export class Upsample extends Module {
  readonly options: InterpolateOptions;

  constructor(options: InterpolateOptions = {}) {
    takesUpsample('Upsample', options);
    super();
    this.options = options;
  }

  forward<D extends DType>(x: Tensor<D>): Tensor<D> {
    return interpolate(x, this.options);
  }
}

const takesPixelShuffle = arg.takes<typeof PixelShuffle>(['the factor', arg.count(1)]);

/** Channels become squares of factor × factor pixels. */
export class PixelShuffle extends Module {
  readonly factor: number;

  constructor(factor: number) {
    takesPixelShuffle('PixelShuffle', factor);
    super();
    this.factor = factor;
  }

  forward<D extends DType>(x: Tensor<D>): Tensor<D> {
    return pixelShuffle(x, this.factor);
  }
}

const takesPixelUnshuffle = arg.takes<typeof PixelUnshuffle>(['the factor', arg.count(1)]);

/** Squares of factor × factor pixels become channels. */
export class PixelUnshuffle extends Module {
  readonly factor: number;

  constructor(factor: number) {
    takesPixelUnshuffle('PixelUnshuffle', factor);
    super();
    this.factor = factor;
  }

  forward<D extends DType>(x: Tensor<D>): Tensor<D> {
    return pixelUnshuffle(x, this.factor);
  }
}

const takesChannelShuffle = arg.takes<typeof ChannelShuffle>(['the number of groups', arg.count(1)]);

/** Runs of channels interleaved. */
export class ChannelShuffle extends Module {
  readonly groups: number;

  constructor(groups: number) {
    takesChannelShuffle('ChannelShuffle', groups);
    super();
    this.groups = groups;
  }

  forward<D extends DType>(x: Tensor<D>): Tensor<D> {
    return channelShuffle(x, this.groups);
  }
}

const takesLocalResponseNorm = arg.takes<typeof LocalResponseNorm>(
  ['the size', arg.count(1)],
  ['options', arg.options<LocalResponseOptions>({ alpha: arg.number, beta: arg.number, k: arg.number })],
);

/** Divided by the squares of neighbouring channels (Krizhevsky et al., 2012). */
export class LocalResponseNorm extends Module {
  readonly size: number;
  readonly options: LocalResponseOptions;

  constructor(size: number, options: LocalResponseOptions = {}) {
    takesLocalResponseNorm('LocalResponseNorm', size, options);
    super();
    this.size = size;
    this.options = options;
  }

  forward<D extends DType>(x: Tensor<D>): Tensor<Floated<D>> {
    return localResponseNorm(x, this.size, this.options);
  }
}

/**
 * As `LocalResponseNorm`, of [N, C, H, W] and as Torch 7 had it: of an even `size` the window has one
 * channel less, so that it is centred, and the mean still divides by `size`. PyTorch's class of this
 * name keeps the first channel in every window, which its gradient does not; not so here.
 */
export class CrossMapLRN2d extends Module {
  readonly size: number;
  readonly options: LocalResponseOptions;

  constructor(size: number, options: LocalResponseOptions = {}) {
    takesLocalResponseNorm('CrossMapLRN2d', size, options);
    super();
    this.size = size;
    this.options = options;
  }

  forward<D extends DType>(x: Tensor<D>): Tensor<Floated<D>> {
    checkRank('CrossMapLRN2d', 'x', x, 4);
    const { alpha = 1e-4, ...rest } = this.options;
    const window = this.size % 2 === 0 ? this.size - 1 : this.size;
    return localResponseNorm(x, window, { ...rest, alpha: (alpha * window) / this.size });
  }
}
