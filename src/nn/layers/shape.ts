// Changes of shape as modules: patches to columns and back, and an axis as several.

import type { DType } from '../../ir/dtype.ts';
import * as arg from '../../ir/arguments.ts';
import { interpolate, interpolateOptions } from '../../tensor/ops/image/interpolate.ts';
import type { PerAxis } from '../../tensor/ops/operand.ts';
import { unflatten } from '../../tensor/ops/shape/view.ts';
import { col2im, im2col, patchOptions, type PatchOptions } from '../../tensor/ops/window/fold.ts';
import type { Tensor } from '../../tensor/tensor.ts';
import { Module } from '../module.ts';

const takesUnfold = arg.takes<typeof Unfold>(
  ['kernelSize', arg.sizes(1)],
  ['options', arg.options<PatchOptions>(patchOptions)],
);

/** Patches of [N, C, H, W] as columns [N, C·kh·kw, L]: `im2col` as a layer. */
export class Unfold extends Module {
  readonly kernelSize: PerAxis;
  readonly options: PatchOptions;

  constructor(kernelSize: PerAxis, options: PatchOptions = {}) {
    takesUnfold('Unfold', kernelSize, options);
    super();
    this.kernelSize = kernelSize;
    this.options = options;
  }

  forward<D extends DType>(x: Tensor<D>): Tensor<D> {
    return im2col(x, this.kernelSize, this.options);
  }
}

const takesFold = arg.takes<typeof Fold>(
  ['outputSize', arg.sizes(1)],
  ['kernelSize', arg.sizes(1)],
  ['options', arg.options<PatchOptions>(patchOptions)],
);

/** Columns [N, C·kh·kw, L] added where `Unfold` takes them from: `col2im` as a layer. */
export class Fold extends Module {
  readonly outputSize: PerAxis;
  readonly kernelSize: PerAxis;
  readonly options: PatchOptions;

  constructor(outputSize: PerAxis, kernelSize: PerAxis, options: PatchOptions = {}) {
    takesFold('Fold', outputSize, kernelSize, options);
    super();
    this.outputSize = outputSize;
    this.kernelSize = kernelSize;
    this.options = options;
  }

  forward<D extends DType>(x: Tensor<D>): Tensor<D> {
    return col2im(x, this.outputSize, this.kernelSize, this.options);
  }
}

const takesUnflatten = arg.takes<typeof Unflatten>(
  ['axis', arg.integer],
  ['the sizes', arg.listOf(arg.integer)],
);

/** Makes an axis several of these sizes, one of which may be −1. */
export class Unflatten extends Module {
  readonly axis: number;
  readonly sizes: readonly number[];

  constructor(axis: number, sizes: readonly number[]) {
    takesUnflatten('Unflatten', axis, sizes);
    super();
    this.axis = axis;
    this.sizes = sizes;
  }

  forward<D extends DType>(x: Tensor<D>): Tensor<D> {
    return unflatten(x, this.axis, this.sizes);
  }
}

export interface UpsamplingOptions {
  /**
   * Height and width of the result; either this or `scaleFactor`; by default `scaleFactor` says it.
   */
  readonly size?: PerAxis;
  /** How many times as long height and width become; by default `size` says it. */
  readonly scaleFactor?: PerAxis;
}

const { size, scaleFactor } = interpolateOptions;
const upsamplingOptions: arg.Table<UpsamplingOptions> = { size, scaleFactor };
const takesUpsampling = arg.takes<typeof UpsamplingNearest2d>([
  'options',
  arg.options<UpsamplingOptions>(upsamplingOptions),
]);

/** [N, C, H, W] in another size, by the nearest pixel. */
export class UpsamplingNearest2d extends Module {
  readonly options: UpsamplingOptions;

  constructor(options: UpsamplingOptions = {}) {
    takesUpsampling('UpsamplingNearest2d', options);
    super();
    this.options = options;
  }

  forward<D extends DType>(x: Tensor<D>): Tensor<D> {
    return interpolate(x, { ...this.options, mode: 'nearest' });
  }
}

/** [N, C, H, W] in another size, linear between pixels whose corners stay in place. */
export class UpsamplingBilinear2d extends Module {
  readonly options: UpsamplingOptions;

  constructor(options: UpsamplingOptions = {}) {
    takesUpsampling('UpsamplingBilinear2d', options);
    super();
    this.options = options;
  }

  forward<D extends DType>(x: Tensor<D>): Tensor<D> {
    return interpolate(x, { ...this.options, mode: 'bilinear', alignCorners: true });
  }
}
