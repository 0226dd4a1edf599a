// Convolutional layers over one, two or three spatial axes: one factory makes the class of each.
// Weights and biases start as U(±1/√fanIn).

import type { DType } from '../ir/dtype.ts';
import type { Weighed } from '../tensor/inferred.ts';
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
import { Module, outputAxis } from './module.ts';
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

/** A convolution: `O` are the options of its operation. */
interface Convolution<O> extends Module {
  weight: Tensor;
  bias: Tensor | undefined;
  readonly options: O;
  forward<D extends DType>(x: Tensor<D>): Tensor<Weighed<D>>;
}

/** The class of convolutions over some number of axes. */
type ConvolutionClass<O, L extends O & Common> = new (
  inputs: number,
  outputs: number,
  kernelSize: PerAxis,
  options?: L,
) => Convolution<O>;

/** What convolutions of one kind have in common, whatever their rank. */
interface Kind<O, L extends O & Common> {
  /** Checks what the constructor takes. */
  readonly takes: (op: string, inputs: number, outputs: number, kernel: PerAxis, options?: L) => void;
  /** The weight's first two sizes. */
  readonly lead: (op: string, inputs: number, outputs: number, groups: number | undefined) => number[];
  /** Which of these counts the outputs. */
  readonly outputs: number;
}

/** `channels / groups`. Throws E_VALUE when they do not split. */
function perGroup(op: string, channels: number, groups: number): number {
  if (channels % groups !== 0) {
    throw new TensorError('E_VALUE', op, `${channels} channels do not split into ${groups} groups`);
  }
  return channels / groups;
}

/** The class of convolutions of a kind over `axes` axes, which `apply` computes. */
/* @__NO_SIDE_EFFECTS__ */
function convolution<O extends { readonly groups?: number }, L extends O & Common>(
  { takes, lead, outputs: axisOfOutputs }: Kind<O, L>,
  name: string,
  axes: number,
  apply: (x: Tensor, weight: Tensor, bias: Tensor | undefined, options: O) => Tensor,
): ConvolutionClass<O, L> {
  return class extends Module {
    weight: Tensor;
    bias: Tensor | undefined;
    readonly options: O;

    constructor(inputs: number, outputs: number, kernelSize: PerAxis, given: L = {} as L) {
      takes(name, inputs, outputs, kernelSize, given);
      const { bias = true, dtype, ...options } = given;
      const first = lead(name, inputs, outputs, given.groups);
      const shape = [...first, ...perAxis(name, 'the kernel size', kernelSize, axes, 1)];
      super();
      const init = dtype === undefined ? {} : { dtype };
      const bound = 1 / Math.sqrt(fans(shape).fanIn);
      this.options = options as unknown as O;
      this.weight = parameter(symmetric(shape, bound, init));
      this.bias = bias ? parameter(symmetric([outputs], bound, init)) : undefined;
    }

    get [outputAxis](): number {
      return axisOfOutputs;
    }

    forward<D extends DType>(x: Tensor<D>): Tensor<Weighed<D>> {
      return apply(x, this.weight, this.bias, this.options);
    }
  };
}

const forward: Kind<ConvOptions, ConvLayerOptions> = {
  takes: arg.takes<ConvolutionClass<ConvOptions, ConvLayerOptions>>(
    ['the number of inputs', channels],
    ['the number of outputs', channels],
    ['the kernel size', kernel],
    ['options', arg.options<ConvLayerOptions>({ ...convOptions, ...layerOptions })],
  ),
  lead: (op, inputs, outputs, groups = 1) => {
    perGroup(op, outputs, groups);
    return [outputs, perGroup(op, inputs, groups)];
  },
  outputs: 0,
};

const transposed: Kind<ConvTransposeOptions, ConvTransposeLayerOptions> = {
  takes: arg.takes<ConvolutionClass<ConvTransposeOptions, ConvTransposeLayerOptions>>(
    ['the number of inputs', channels],
    ['the number of outputs', channels],
    ['the kernel size', kernel],
    ['options', arg.options<ConvTransposeLayerOptions>({ ...convTransposeOptions, ...layerOptions })],
  ),
  lead: (op, inputs, outputs, groups = 1) => {
    perGroup(op, inputs, groups);
    return [inputs, perGroup(op, outputs, groups)];
  },
  outputs: 1,
};

const ConvOf1: ConvolutionClass<ConvOptions, ConvLayerOptions> = convolution(forward, 'Conv1d', 1, conv1d);
const ConvOf2: ConvolutionClass<ConvOptions, ConvLayerOptions> = convolution(forward, 'Conv2d', 2, conv2d);
const ConvOf3: ConvolutionClass<ConvOptions, ConvLayerOptions> = convolution(forward, 'Conv3d', 3, conv3d);

/** Cross-correlation of [N, inputs, L] with a window. */
export class Conv1d extends ConvOf1 {}

/** Cross-correlation of [N, inputs, H, W] with a window. */
export class Conv2d extends ConvOf2 {}

/** Cross-correlation of [N, inputs, D, H, W] with a window. */
export class Conv3d extends ConvOf3 {}

const ConvTransposeOf1: ConvolutionClass<ConvTransposeOptions, ConvTransposeLayerOptions> = convolution(
  transposed,
  'ConvTranspose1d',
  1,
  convTranspose1d,
);
const ConvTransposeOf2: ConvolutionClass<ConvTransposeOptions, ConvTransposeLayerOptions> = convolution(
  transposed,
  'ConvTranspose2d',
  2,
  convTranspose2d,
);
const ConvTransposeOf3: ConvolutionClass<ConvTransposeOptions, ConvTransposeLayerOptions> = convolution(
  transposed,
  'ConvTranspose3d',
  3,
  convTranspose3d,
);

/** The transpose of `Conv1d` as a linear map: [N, inputs, L] grows by the stride. */
export class ConvTranspose1d extends ConvTransposeOf1 {}

/** The transpose of `Conv2d` as a linear map: [N, inputs, H, W] grows by the stride. */
export class ConvTranspose2d extends ConvTransposeOf2 {}

/** The transpose of `Conv3d` as a linear map: [N, inputs, D, H, W] grows by the stride. */
export class ConvTranspose3d extends ConvTransposeOf3 {}
