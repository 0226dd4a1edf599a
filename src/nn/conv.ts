// Convolutional layers over one, two or three spatial axes. Weights and biases start as
// U(±1/√fanIn).

import type { DType } from '../ir/dtype.ts';
import type { Unknown, Weighed } from '../tensor/inferred.ts';
import { TensorError } from '../errors.ts';
import * as arg from '../ir/arguments.ts';
import {
  conv1d,
  conv2d,
  conv3d,
  convOptions,
  convTransposeOptions,
  convTranspose1d,
  convTranspose2d,
  convTranspose3d,
  type ConvOptions,
  type ConvTransposeOptions,
} from '../tensor/ops/product/conv.ts';
import { perAxis, type PerAxis } from '../tensor/ops/operand.ts';
import type { Tensor } from '../tensor/tensor.ts';
import { fans, initOptions, symmetric, type InitOptions } from './init.ts';
import { Module } from './module.ts';
import { parameter } from './parameters.ts';

interface Common extends InitOptions {
  /** true by default. */
  readonly bias?: boolean;
}

export interface ConvLayerOptions extends ConvOptions, Common {}
export interface ConvTransposeLayerOptions extends ConvTransposeOptions, Common {}

const layerOptions: arg.Table<Common> = { ...initOptions, bias: arg.flag };
const channels = arg.count(1);
const kernel = arg.sizes(1);

/** What all convolutions hold. */
abstract class Convolution<O> extends Module {
  weight: Tensor;
  bias: Tensor | undefined;
  readonly options: O;

  /** `lead` are the weight's first two sizes. */
  constructor(lead: readonly number[], kernel: readonly number[], outputs: number, options: O & Common) {
    super();
    const { bias = true, dtype, ...rest } = options;
    const init = dtype === undefined ? {} : { dtype };
    const shape = [...lead, ...kernel];
    const bound = 1 / Math.sqrt(fans(shape).fanIn);
    this.options = rest as O;
    this.weight = parameter(symmetric(shape, bound, init));
    this.bias = bias ? parameter(symmetric([outputs], bound, init)) : undefined;
  }
}

/** `channels / groups`. Throws E_VALUE when they do not split. */
function perGroup(op: string, channels: number, groups: number): number {
  if (channels % groups !== 0) {
    throw new TensorError('E_VALUE', op, `${channels} channels do not split into ${groups} groups`);
  }
  return channels / groups;
}

/** The weight's first sizes of a convolution: [outputs, inputs / groups]. */
function forwardLead(op: string, inputs: number, outputs: number, groups: number = 1): number[] {
  perGroup(op, outputs, groups);
  return [outputs, perGroup(op, inputs, groups)];
}

/** The weight's first sizes of a transposed convolution: [inputs, outputs / groups]. */
function transposedLead(op: string, inputs: number, outputs: number, groups: number = 1): number[] {
  perGroup(op, inputs, groups);
  return [inputs, perGroup(op, outputs, groups)];
}

function kernelOf(op: string, size: PerAxis, axes: number): number[] {
  return perAxis(op, 'the kernel size', size, axes, 1);
}

const takesConv1d = arg.takes<typeof Conv1d>(
  ['the number of inputs', channels],
  ['the number of outputs', channels],
  ['the kernel size', kernel],
  ['options', arg.options<ConvLayerOptions>({ ...convOptions, ...layerOptions })],
);

/** Cross-correlation of [N, inputs, L] with a window. */
export class Conv1d extends Convolution<ConvOptions> {
  constructor(inputs: number, outputs: number, kernelSize: PerAxis, options: ConvLayerOptions = {}) {
    takesConv1d('Conv1d', inputs, outputs, kernelSize, options);
    const lead = forwardLead('Conv1d', inputs, outputs, options.groups);
    super(lead, kernelOf('Conv1d', kernelSize, 1), outputs, options);
  }

  forward<D extends DType>(x: Tensor<D>): Tensor<Weighed<D>> {
    return conv1d<Unknown, Unknown>(x, this.weight, this.bias, this.options);
  }
}

/** Cross-correlation of [N, inputs, H, W] with a window. */
export class Conv2d extends Convolution<ConvOptions> {
  constructor(inputs: number, outputs: number, kernelSize: PerAxis, options: ConvLayerOptions = {}) {
    takesConv1d('Conv2d', inputs, outputs, kernelSize, options);
    const lead = forwardLead('Conv2d', inputs, outputs, options.groups);
    super(lead, kernelOf('Conv2d', kernelSize, 2), outputs, options);
  }

  forward<D extends DType>(x: Tensor<D>): Tensor<Weighed<D>> {
    return conv2d<Unknown, Unknown>(x, this.weight, this.bias, this.options);
  }
}

/** Cross-correlation of [N, inputs, D, H, W] with a window. */
export class Conv3d extends Convolution<ConvOptions> {
  constructor(inputs: number, outputs: number, kernelSize: PerAxis, options: ConvLayerOptions = {}) {
    takesConv1d('Conv3d', inputs, outputs, kernelSize, options);
    const lead = forwardLead('Conv3d', inputs, outputs, options.groups);
    super(lead, kernelOf('Conv3d', kernelSize, 3), outputs, options);
  }

  forward<D extends DType>(x: Tensor<D>): Tensor<Weighed<D>> {
    return conv3d<Unknown, Unknown>(x, this.weight, this.bias, this.options);
  }
}

const takesConvTranspose1d = arg.takes<typeof ConvTranspose1d>(
  ['the number of inputs', channels],
  ['the number of outputs', channels],
  ['the kernel size', kernel],
  ['options', arg.options<ConvTransposeLayerOptions>({ ...convTransposeOptions, ...layerOptions })],
);

/** The transpose of `Conv1d` as a linear map: [N, inputs, L] grows by the stride. */
export class ConvTranspose1d extends Convolution<ConvTransposeOptions> {
  constructor(inputs: number, outputs: number, kernelSize: PerAxis, options: ConvTransposeLayerOptions = {}) {
    takesConvTranspose1d('ConvTranspose1d', inputs, outputs, kernelSize, options);
    const lead = transposedLead('ConvTranspose1d', inputs, outputs, options.groups);
    super(lead, kernelOf('ConvTranspose1d', kernelSize, 1), outputs, options);
  }

  forward<D extends DType>(x: Tensor<D>): Tensor<Weighed<D>> {
    return convTranspose1d<Unknown, Unknown>(x, this.weight, this.bias, this.options);
  }
}

/** The transpose of `Conv2d` as a linear map: [N, inputs, H, W] grows by the stride. */
export class ConvTranspose2d extends Convolution<ConvTransposeOptions> {
  constructor(inputs: number, outputs: number, kernelSize: PerAxis, options: ConvTransposeLayerOptions = {}) {
    takesConvTranspose1d('ConvTranspose2d', inputs, outputs, kernelSize, options);
    const lead = transposedLead('ConvTranspose2d', inputs, outputs, options.groups);
    super(lead, kernelOf('ConvTranspose2d', kernelSize, 2), outputs, options);
  }

  forward<D extends DType>(x: Tensor<D>): Tensor<Weighed<D>> {
    return convTranspose2d<Unknown, Unknown>(x, this.weight, this.bias, this.options);
  }
}

/** The transpose of `Conv3d` as a linear map: [N, inputs, D, H, W] grows by the stride. */
export class ConvTranspose3d extends Convolution<ConvTransposeOptions> {
  constructor(inputs: number, outputs: number, kernelSize: PerAxis, options: ConvTransposeLayerOptions = {}) {
    takesConvTranspose1d('ConvTranspose3d', inputs, outputs, kernelSize, options);
    const lead = transposedLead('ConvTranspose3d', inputs, outputs, options.groups);
    super(lead, kernelOf('ConvTranspose3d', kernelSize, 3), outputs, options);
  }

  forward<D extends DType>(x: Tensor<D>): Tensor<Weighed<D>> {
    return convTranspose3d<Unknown, Unknown>(x, this.weight, this.bias, this.options);
  }
}
