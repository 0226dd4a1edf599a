// Pools as modules: over windows of one size, over even grids of windows and over random ones, and
// what undoes them, in one to three dimensions. One factory makes the classes of each.

import type { DType } from '../ir/dtype.ts';
import * as arg from '../ir/arguments.ts';
import type { PerAxis } from '../tensor/ops/operand.ts';
import {
  avgPool1d,
  avgPool2d,
  avgPool3d,
  avgPoolOptions,
  lpPool1d,
  lpPool2d,
  lpPool3d,
  lpPoolOptions,
  maxPool1d,
  maxPool2d,
  maxPool3d,
  type AvgPoolOptions,
  type LpPoolOptions,
  type MaxPoolOptions,
} from '../tensor/ops/product/pool.ts';
import { windowOptions } from '../tensor/ops/shape/window.ts';
import {
  adaptiveAvgPool1d,
  adaptiveAvgPool2d,
  adaptiveAvgPool3d,
  adaptiveMaxPool1d,
  adaptiveMaxPool2d,
  adaptiveMaxPool3d,
  outputSizes,
  type OutputSize,
} from '../tensor/ops/window/adaptive.ts';
import {
  fractionalMaxPool2d,
  fractionalMaxPool3d,
  fractionalPoolOptions,
  maxUnpool1d,
  maxUnpool2d,
  maxUnpool3d,
  unpoolOptions,
  type FractionalPoolOptions,
  type UnpoolOptions,
} from '../tensor/ops/window/unpool.ts';
import type { Tensor } from '../tensor/tensor.ts';
import { Module } from './module.ts';

/** A layer over windows of one size, which also takes tensors `Rest`. */
interface Windowed<O, Rest extends readonly Tensor[]> extends Module {
  readonly kernelSize: PerAxis;
  readonly options: O;
  forward<D extends DType>(x: Tensor<D>, ...rest: Rest): Tensor<D>;
}

type WindowedClass<O, Rest extends readonly Tensor[] = []> = new (
  kernelSize: PerAxis,
  options?: O,
) => Windowed<O, Rest>;

/** The class of layers over windows of one size that `apply` computes; `table` checks its options. */
/* @__NO_SIDE_EFFECTS__ */
function windowed<O extends object, Rest extends readonly Tensor[] = []>(
  name: string,
  table: arg.Table<O>,
  apply: (x: Tensor, kernelSize: PerAxis, options: O, ...rest: Rest) => Tensor,
): WindowedClass<O, Rest> {
  const takes = arg.takes<(kernelSize: PerAxis, options?: O) => unknown>(
    ['kernelSize', arg.sizes(1)],
    ['options', arg.options<O>(table)],
  );
  return class extends Module {
    readonly kernelSize: PerAxis;
    readonly options: O;

    constructor(kernelSize: PerAxis, options: O = {} as O) {
      takes(name, kernelSize, options);
      super();
      this.kernelSize = kernelSize;
      this.options = options;
    }

    forward<D extends DType>(x: Tensor<D>, ...rest: Rest): Tensor<D> {
      return apply(x, this.kernelSize, this.options, ...rest);
    }
  };
}

const takesGrid = arg.takes<(outputSize: OutputSize) => unknown>(['outputSize', outputSizes]);

/** A pool over an even grid of windows. */
interface GridPool extends Module {
  readonly outputSize: OutputSize;
  forward<D extends DType>(x: Tensor<D>): Tensor<D>;
}

type GridPoolClass = new (outputSize: OutputSize) => GridPool;

/** The class of pools over an even grid of windows that `apply` computes. */
/* @__NO_SIDE_EFFECTS__ */
function gridPool(name: string, apply: (x: Tensor, outputSize: OutputSize) => Tensor): GridPoolClass {
  return class extends Module {
    readonly outputSize: OutputSize;

    constructor(outputSize: OutputSize) {
      takesGrid(name, outputSize);
      super();
      this.outputSize = outputSize;
    }

    forward<D extends DType>(x: Tensor<D>): Tensor<D> {
      return apply(x, this.outputSize);
    }
  };
}

const MaxPoolOf1: WindowedClass<MaxPoolOptions> = windowed('MaxPool1d', windowOptions, maxPool1d);
const MaxPoolOf2: WindowedClass<MaxPoolOptions> = windowed('MaxPool2d', windowOptions, maxPool2d);
const MaxPoolOf3: WindowedClass<MaxPoolOptions> = windowed('MaxPool3d', windowOptions, maxPool3d);

/** The largest value of each window of [N, C, L]. */
export class MaxPool1d extends MaxPoolOf1 {}

/** The largest value of each window of [N, C, H, W]. */
export class MaxPool2d extends MaxPoolOf2 {}

/** The largest value of each window of [N, C, D, H, W]. */
export class MaxPool3d extends MaxPoolOf3 {}

const AvgPoolOf1: WindowedClass<AvgPoolOptions> = windowed('AvgPool1d', avgPoolOptions, avgPool1d);
const AvgPoolOf2: WindowedClass<AvgPoolOptions> = windowed('AvgPool2d', avgPoolOptions, avgPool2d);
const AvgPoolOf3: WindowedClass<AvgPoolOptions> = windowed('AvgPool3d', avgPoolOptions, avgPool3d);

/** The mean of each window of [N, C, L]. */
export class AvgPool1d extends AvgPoolOf1 {}

/** The mean of each window of [N, C, H, W]. */
export class AvgPool2d extends AvgPoolOf2 {}

/** The mean of each window of [N, C, D, H, W]. */
export class AvgPool3d extends AvgPoolOf3 {}

const LPPoolOf1: WindowedClass<LpPoolOptions> = windowed('LPPool1d', lpPoolOptions, lpPool1d);
const LPPoolOf2: WindowedClass<LpPoolOptions> = windowed('LPPool2d', lpPoolOptions, lpPool2d);
const LPPoolOf3: WindowedClass<LpPoolOptions> = windowed('LPPool3d', lpPoolOptions, lpPool3d);

/** The p-norm of each window of [N, C, L]. */
export class LPPool1d extends LPPoolOf1 {}

/** The p-norm of each window of [N, C, H, W]. */
export class LPPool2d extends LPPoolOf2 {}

/** The p-norm of each window of [N, C, D, H, W]. */
export class LPPool3d extends LPPoolOf3 {}

const AdaptiveAvgPoolOf1: GridPoolClass = gridPool('AdaptiveAvgPool1d', adaptiveAvgPool1d);
const AdaptiveAvgPoolOf2: GridPoolClass = gridPool('AdaptiveAvgPool2d', adaptiveAvgPool2d);
const AdaptiveAvgPoolOf3: GridPoolClass = gridPool('AdaptiveAvgPool3d', adaptiveAvgPool3d);

/** Means over an even grid of windows of [N, C, L]. */
export class AdaptiveAvgPool1d extends AdaptiveAvgPoolOf1 {}

/** Means over an even grid of windows of [N, C, H, W]. */
export class AdaptiveAvgPool2d extends AdaptiveAvgPoolOf2 {}

/** Means over an even grid of windows of [N, C, D, H, W]. */
export class AdaptiveAvgPool3d extends AdaptiveAvgPoolOf3 {}

const AdaptiveMaxPoolOf1: GridPoolClass = gridPool('AdaptiveMaxPool1d', adaptiveMaxPool1d);
const AdaptiveMaxPoolOf2: GridPoolClass = gridPool('AdaptiveMaxPool2d', adaptiveMaxPool2d);
const AdaptiveMaxPoolOf3: GridPoolClass = gridPool('AdaptiveMaxPool3d', adaptiveMaxPool3d);

/** Maxima over an even grid of windows of [N, C, L]. */
export class AdaptiveMaxPool1d extends AdaptiveMaxPoolOf1 {}

/** Maxima over an even grid of windows of [N, C, H, W]. */
export class AdaptiveMaxPool2d extends AdaptiveMaxPoolOf2 {}

/** Maxima over an even grid of windows of [N, C, D, H, W]. */
export class AdaptiveMaxPool3d extends AdaptiveMaxPoolOf3 {}

/** How a random pool is laid out; where its windows begin is drawn at each call. */
export type FractionalPoolLayerOptions = Omit<FractionalPoolOptions, 'samples'>;

type FractionalPool = WindowedClass<FractionalPoolLayerOptions>;

/** The class of pools over windows of one size at random places. */
/* @__NO_SIDE_EFFECTS__ */
function fractionalPool(name: string, apply: typeof fractionalMaxPool2d): FractionalPool {
  const { outputSize, outputRatio } = fractionalPoolOptions;
  const table: arg.Table<FractionalPoolLayerOptions> = { outputSize, outputRatio };
  return windowed(name, table, apply);
}

const FractionalMaxPoolOf2: FractionalPool = fractionalPool('FractionalMaxPool2d', fractionalMaxPool2d);
const FractionalMaxPoolOf3: FractionalPool = fractionalPool('FractionalMaxPool3d', fractionalMaxPool3d);

/** Maxima over windows of random places that fill [N, C, H, W] evenly (Graham, 2014). */
export class FractionalMaxPool2d extends FractionalMaxPoolOf2 {}

/** Maxima over windows of random places that fill [N, C, D, H, W] evenly (Graham, 2014). */
export class FractionalMaxPool3d extends FractionalMaxPoolOf3 {}

type Unpool = WindowedClass<UnpoolOptions, [indices: Tensor]>;

/** The class of what undoes pools of maxima over windows of one size. */
/* @__NO_SIDE_EFFECTS__ */
function unpool(name: string, apply: typeof maxUnpool1d): Unpool {
  return windowed(name, unpoolOptions, (x, kernelSize, options, indices: Tensor) =>
    apply(x, indices, kernelSize, options),
  );
}

const MaxUnpoolOf1: Unpool = unpool('MaxUnpool1d', maxUnpool1d);
const MaxUnpoolOf2: Unpool = unpool('MaxUnpool2d', maxUnpool2d);
const MaxUnpoolOf3: Unpool = unpool('MaxUnpool3d', maxUnpool3d);

/** Maxima of [N, C, L] at their places (`maxPool1dWithIndices`) of larger axes, zeros elsewhere. */
export class MaxUnpool1d extends MaxUnpoolOf1 {}

/** Maxima of [N, C, H, W] at their places (`maxPool2dWithIndices`) of larger axes, zeros elsewhere. */
export class MaxUnpool2d extends MaxUnpoolOf2 {}

/** Maxima of [N, C, D, H, W] at their places (`maxPool3dWithIndices`) of larger axes, zeros elsewhere. */
export class MaxUnpool3d extends MaxUnpoolOf3 {}
