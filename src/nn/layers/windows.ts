// Pools by norms and over random windows, and unpooling, as modules; see ../pool.ts for the usual ones.

import type { DType } from '../../ir/dtype.ts';
import * as arg from '../../ir/arguments.ts';
import type { PerAxis } from '../../tensor/ops/operand.ts';
import {
  lpPool1d,
  lpPool2d,
  lpPool3d,
  lpPoolOptions,
  type LpPoolOptions,
} from '../../tensor/ops/product/pool.ts';
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
} from '../../tensor/ops/window/unpool.ts';
import type { Tensor } from '../../tensor/tensor.ts';
import { Module } from '../module.ts';

/** Windows of one size, with options of their own. */
abstract class Windowed<O extends object> extends Module {
  readonly kernelSize: PerAxis;
  readonly options: O;

  protected constructor(name: string, table: arg.Table<O>, kernelSize: PerAxis, options: O) {
    arg.takes<(kernelSize: PerAxis, options?: O) => unknown>(
      ['kernelSize', arg.sizes(1)],
      ['options', arg.options<O>(table)],
    )(name, kernelSize, options);
    super();
    this.kernelSize = kernelSize;
    this.options = options;
  }
}

/** The p-norm of each window of [N, C, L]. */
export class LPPool1d extends Windowed<LpPoolOptions> {
  constructor(kernelSize: PerAxis, options: LpPoolOptions = {}) {
    super('LPPool1d', lpPoolOptions, kernelSize, options);
  }

  forward<D extends DType>(x: Tensor<D>): Tensor<D> {
    return lpPool1d(x, this.kernelSize, this.options);
  }
}

/** The p-norm of each window of [N, C, H, W]. */
export class LPPool2d extends Windowed<LpPoolOptions> {
  constructor(kernelSize: PerAxis, options: LpPoolOptions = {}) {
    super('LPPool2d', lpPoolOptions, kernelSize, options);
  }

  forward<D extends DType>(x: Tensor<D>): Tensor<D> {
    return lpPool2d(x, this.kernelSize, this.options);
  }
}

/** The p-norm of each window of [N, C, D, H, W]. */
export class LPPool3d extends Windowed<LpPoolOptions> {
  constructor(kernelSize: PerAxis, options: LpPoolOptions = {}) {
    super('LPPool3d', lpPoolOptions, kernelSize, options);
  }

  forward<D extends DType>(x: Tensor<D>): Tensor<D> {
    return lpPool3d(x, this.kernelSize, this.options);
  }
}

/** How a random pool is laid out; where its windows begin is drawn at each call. */
export type FractionalPoolLayerOptions = Omit<FractionalPoolOptions, 'samples'>;

const { outputSize, outputRatio } = fractionalPoolOptions;
const fractionalOptions: arg.Table<FractionalPoolLayerOptions> = { outputSize, outputRatio };

/** Maxima over windows of random places that fill [N, C, H, W] evenly (Graham, 2014). */
export class FractionalMaxPool2d extends Windowed<FractionalPoolLayerOptions> {
  constructor(kernelSize: PerAxis, options: FractionalPoolLayerOptions = {}) {
    super('FractionalMaxPool2d', fractionalOptions, kernelSize, options);
  }

  forward<D extends DType>(x: Tensor<D>): Tensor<D> {
    return fractionalMaxPool2d(x, this.kernelSize, this.options);
  }
}

/** Maxima over windows of random places that fill [N, C, D, H, W] evenly (Graham, 2014). */
export class FractionalMaxPool3d extends Windowed<FractionalPoolLayerOptions> {
  constructor(kernelSize: PerAxis, options: FractionalPoolLayerOptions = {}) {
    super('FractionalMaxPool3d', fractionalOptions, kernelSize, options);
  }

  forward<D extends DType>(x: Tensor<D>): Tensor<D> {
    return fractionalMaxPool3d(x, this.kernelSize, this.options);
  }
}

/** Maxima of [N, C, L] at their places (`maxPool1dWithIndices`) of larger axes, zeros elsewhere. */
export class MaxUnpool1d extends Windowed<UnpoolOptions> {
  constructor(kernelSize: PerAxis, options: UnpoolOptions = {}) {
    super('MaxUnpool1d', unpoolOptions, kernelSize, options);
  }

  forward<D extends DType>(x: Tensor<D>, indices: Tensor): Tensor<D> {
    return maxUnpool1d(x, indices, this.kernelSize, this.options);
  }
}

/** Maxima of [N, C, H, W] at their places (`maxPool2dWithIndices`) of larger axes, zeros elsewhere. */
export class MaxUnpool2d extends Windowed<UnpoolOptions> {
  constructor(kernelSize: PerAxis, options: UnpoolOptions = {}) {
    super('MaxUnpool2d', unpoolOptions, kernelSize, options);
  }

  forward<D extends DType>(x: Tensor<D>, indices: Tensor): Tensor<D> {
    return maxUnpool2d(x, indices, this.kernelSize, this.options);
  }
}

/** Maxima of [N, C, D, H, W] at their places (`maxPool3dWithIndices`) of larger axes, zeros elsewhere. */
export class MaxUnpool3d extends Windowed<UnpoolOptions> {
  constructor(kernelSize: PerAxis, options: UnpoolOptions = {}) {
    super('MaxUnpool3d', unpoolOptions, kernelSize, options);
  }

  forward<D extends DType>(x: Tensor<D>, indices: Tensor): Tensor<D> {
    return maxUnpool3d(x, indices, this.kernelSize, this.options);
  }
}
