// Convolutions (cross-correlations, as everywhere in deep learning) over any number of spatial
// axes, and their transposes. x is [N,C,S…] or [C,S…]; numbers stand for one value per spatial
// axis.

import type { Promoted } from '../../inferred.ts';
import type { DType } from '../../../ir/dtype.ts';
import { TensorError } from '../../../errors.ts';
import { add, broadcast, cast, permute, reshape } from '../../../ir/build.ts';
import * as arg from '../../../ir/arguments.ts';
import { dims, type GraphBuilder, type Node } from '../../../ir/graph.ts';
import { aTensor } from '../../expect.ts';
import type { Tensor } from '../../tensor.ts';
import { apply, show, perAxis, type PerAxis } from '../operand.ts';
import { productType } from './contract.ts';
import { sliceAxis } from '../../formula/layout.ts';
import { paddings, padPairs, type Padding } from '../shape/window.ts';

export interface ConvOptions {
  /** 1 by default. */
  readonly stride?: PerAxis;
  /**
   * Zeros around the spatial axes, as one number or a pair [before, after] each; `same` keeps sizes
   * (stride 1), `valid` is 0, the default.
   */
  readonly padding?: Padding | 'same' | 'valid';
  /** Distance of the kernel's taps, 1 by default. */
  readonly dilation?: PerAxis;
  /** Groups of channels that do not mix, 1 by default. */
  readonly groups?: number;
}

export interface ConvTransposeOptions {
  /** Steps of the convolution that this turns round, as one number or one per axis; 1 by default. */
  readonly stride?: PerAxis;
  /**
   * What the convolution that this turns round pads: cut off from the result, as one number or a pair
   * [before, after] each; 0 by default.
   */
  readonly padding?: Padding;
  /**
   * Elements added at the end of each axis, to tell apart sizes that a strided convolution maps to
   * one; 0 by default.
   */
  readonly outputPadding?: PerAxis;
  /** Distance between the weight's elements; 1 by default. */
  readonly dilation?: PerAxis;
  /** Groups of channels that do not see each other; 1 by default. */
  readonly groups?: number;
}

/** @internal */
export const convOptions: arg.Table<ConvOptions> = {
  stride: arg.sizes(1),
  padding: arg.either(arg.oneOf('same', 'valid'), paddings),
  dilation: arg.sizes(1),
  groups: arg.count(1),
};
/** @internal */
export const convTransposeOptions: arg.Table<ConvTransposeOptions> = {
  ...convOptions,
  padding: paddings,
  outputPadding: arg.sizes(0),
};

interface Geometry {
  readonly strides: number[];
  readonly padLow: number[];
  readonly padHigh: number[];
  readonly lhsDilation: number[];
  readonly rhsDilation: number[];
  readonly groups: number;
}

function check(
  op: string,
  spatial: number,
  x: Tensor,
  weight: Tensor,
  bias: Tensor | undefined,
  outputs: number,
): void {
  if (weight.rank !== spatial + 2 || (x.rank !== spatial + 2 && x.rank !== spatial + 1)) {
    throw new TensorError(
      'E_SHAPE',
      op,
      `expects x of rank ${spatial + 2} (or ${spatial + 1}) and a weight of rank ${spatial + 2}: x ${show(x)}, weight ${show(weight)}`,
    );
  }
  if (bias !== undefined && (bias.rank !== 1 || bias.size !== outputs)) {
    throw new TensorError('E_SHAPE', op, `the bias must be [${outputs}]: ${show(bias)}`);
  }
}

function record(
  op: string,
  x: Tensor,
  weight: Tensor,
  bias: Tensor | undefined,
  geometry: Geometry,
  turn: (b: GraphBuilder, w: Node) => Node,
): Tensor {
  const common = productType(op, ...(bias === undefined ? [x, weight] : [x, weight, bias]));
  const batched = x.rank === weight.rank;
  return apply([x, weight, bias], (b, node, w, c) => {
    const input = batched ? node : reshape(b, node, [1, ...x.shape]);
    let out: Node = b.add('conv', [cast(b, input, common), turn(b, cast(b, w, common))], geometry);
    const shape = dims(out);
    if (shape.some((dim, axis) => axis > 1 && dim === 0) && x.size > 0) {
      throw new TensorError(
        'E_SHAPE',
        op,
        `the kernel is larger than the padded input: x ${show(x)}, weight ${show(weight)}`,
      );
    }
    if (c !== undefined) {
      const perChannel = reshape(b, cast(b, c, common), [1, shape[1]!, ...shape.slice(2).map(() => 1)]);
      out = add(b, out, broadcast(b, perChannel, shape));
    }
    return batched ? out : reshape(b, out, shape.slice(1));
  });
}

function convolve(
  op: string,
  spatial: number,
  x: Tensor,
  weight: Tensor,
  bias: Tensor | undefined,
  options: ConvOptions,
): Tensor {
  const { groups = 1, padding = 0 } = options;
  check(op, spatial, x, weight, bias, weight.shape[0]!);
  const strides = perAxis(op, 'stride', options.stride ?? 1, spatial, 1);
  const dilation = perAxis(op, 'dilation', options.dilation ?? 1, spatial, 1);
  const channels = x.shape.at(-spatial - 1)!;
  if (channels !== weight.shape[1]! * groups || weight.shape[0]! % groups !== 0) {
    throw new TensorError(
      'E_SHAPE',
      op,
      `${showChannels(spatial, channels, groups)} do not fit the weight: x ${show(x)}, weight ${show(weight)}`,
      x.shape.at(-1) === weight.shape[1]! * groups
        ? `x as ${layouts[spatial]}: channels come before the spatial axes, permute those that come last`
        : `x as ${layouts[spatial]} and a weight [out, in / groups, …]`,
    );
  }
  const [padLow, padHigh] = paddingOf(op, padding, strides, dilation, weight);
  const ones = strides.map(() => 1);
  const geometry = { strides, padLow, padHigh, lhsDilation: ones, rhsDilation: dilation, groups };
  return record(op, x, weight, bias, geometry, (_, w) => w);
}

/** What the axes of x are, by the number of spatial ones. */
const layouts: Readonly<Record<number, string>> = {
  1: '[N,C,L]',
  2: '[N,C,H,W] (NCHW)',
  3: '[N,C,D,H,W] (NCDHW)',
};

function showChannels(spatial: number, channels: number, groups: number): string {
  return `${channels} channels (axis ${-spatial - 1}) in ${groups} group${groups === 1 ? '' : 's'}`;
}

function paddingOf(
  op: string,
  padding: Padding | 'same' | 'valid',
  strides: readonly number[],
  dilation: readonly number[],
  weight: Tensor,
): [low: number[], high: number[]] {
  if (padding === 'same') {
    if (strides.some((stride) => stride !== 1)) {
      throw new TensorError('E_VALUE', op, `padding 'same' needs stride 1: [${strides.join(',')}]`);
    }
    const reach = dilation.map((spread, i) => spread * (weight.shape[i + 2]! - 1));
    return [reach.map((n) => Math.floor(n / 2)), reach.map((n) => Math.ceil(n / 2))];
  }
  return padPairs(op, padding === 'valid' ? 0 : padding, strides.length);
}

const takesConv1d = arg.takes<typeof conv1d>(
  ['x', aTensor],
  ['the weight', aTensor],
  ['the bias', arg.optional(aTensor)],
  ['options', arg.options<ConvOptions>(convOptions)],
);

/**
 * x [N,C,L], weight [O, C/groups, K], bias [O].
 *
 * @jax lax.conv_general_dilated
 * @example
 * const line = sn.tensor([[[1, 3, 2, 4]]]);
 * const k1 = sn.tensor([[[1, -1]]]);
 * sn.conv1d(line, k1);
 */
export function conv1d<A extends DType, B extends DType>(
  x: Tensor<A>,
  weight: Tensor<B>,
  bias?: Tensor,
  options: ConvOptions = {},
): Tensor<Promoted<A, B>> {
  takesConv1d('conv1d', x, weight, bias, options);
  return convolve('conv1d', 1, x, weight, bias, options);
}

/**
 * x [N,C,H,W], weight [O, C/groups, KH, KW], bias [O].
 *
 * @jax lax.conv_general_dilated
 * @example
 * const image = sn.linspace(0, 15, 16).reshape([1, 1, 4, 4]);
 * const k2 = sn.tensor([[[[1, 0], [0, -1]]]]);
 * sn.conv2d(image, k2, undefined, { stride: 2 });
 * @example <caption>groups</caption>
 * const channels = sn.linspace(0, 15, 16).reshape([1, 4, 2, 2]);
 * sn.conv2d(channels, sn.ones([4, 1, 2, 2]), undefined, { groups: 4, dilation: 1 });
 */
export function conv2d<A extends DType, B extends DType>(
  x: Tensor<A>,
  weight: Tensor<B>,
  bias?: Tensor,
  options: ConvOptions = {},
): Tensor<Promoted<A, B>> {
  takesConv1d('conv2d', x, weight, bias, options);
  return convolve('conv2d', 2, x, weight, bias, options);
}

/**
 * x [N,C,D,H,W], weight [O, C/groups, KD, KH, KW], bias [O].
 *
 * @jax lax.conv_general_dilated
 * @example
 * const volume = sn.linspace(0, 7, 8).reshape([1, 1, 2, 2, 2]);
 * const k3 = sn.ones([1, 1, 2, 2, 2]);
 * sn.conv3d(volume, k3);
 */
export function conv3d<A extends DType, B extends DType>(
  x: Tensor<A>,
  weight: Tensor<B>,
  bias?: Tensor,
  options: ConvOptions = {},
): Tensor<Promoted<A, B>> {
  takesConv1d('conv3d', x, weight, bias, options);
  return convolve('conv3d', 3, x, weight, bias, options);
}

/**
 * The adjoint of a convolution: x is dilated by the stride and correlated with the kernel turned
 * around, its channels exchanged within each group.
 */
function convolveBack(
  op: string,
  spatial: number,
  x: Tensor,
  weight: Tensor,
  bias: Tensor | undefined,
  options: ConvTransposeOptions,
): Tensor {
  const { groups = 1 } = options;
  check(op, spatial, x, weight, bias, (weight.shape[1] ?? 0) * groups);
  const stride = perAxis(op, 'stride', options.stride ?? 1, spatial, 1);
  const dilation = perAxis(op, 'dilation', options.dilation ?? 1, spatial, 1);
  const [padLow, padHigh] = padPairs(op, options.padding ?? 0, spatial);
  const extra = perAxis(op, 'outputPadding', options.outputPadding ?? 0, spatial, 0);
  if (x.shape.at(-spatial - 1) !== weight.shape[0] || weight.shape[0]! % groups !== 0) {
    throw new TensorError(
      'E_SHAPE',
      op,
      `${showChannels(spatial, x.shape.at(-spatial - 1)!, groups)} do not fit the weight: x ${show(x)}, weight ${show(weight)}`,
      `x as ${layouts[spatial]} and a weight [in, out / groups, …]`,
    );
  }
  if (extra.some((n, i) => n >= Math.max(stride[i]!, dilation[i]!))) {
    throw new TensorError(
      'E_VALUE',
      op,
      `outputPadding [${extra.join(',')}] must be less than the stride or dilation`,
    );
  }
  const [inputs, outputs] = [weight.shape[0]!, weight.shape[1]!];
  const kernel = weight.shape.slice(2);
  const reach = kernel.map((size, i) => dilation[i]! * (size - 1));
  const geometry = {
    strides: stride.map(() => 1),
    padLow: reach.map((n, i) => n - padLow[i]!),
    padHigh: reach.map((n, i) => n - padHigh[i]! + extra[i]!),
    lhsDilation: stride,
    rhsDilation: dilation,
    groups,
  };
  return record(op, x, weight, bias, geometry, (b, w) => {
    const turned = kernel.reduce((node, size, i) => sliceAxis(b, node, i + 2, size - 1, size, -1), w);
    const grouped = reshape(b, turned, [groups, inputs / groups, outputs, ...kernel]);
    const order = [0, 2, 1, ...kernel.map((_, i) => i + 3)];
    return reshape(b, permute(b, grouped, order), [groups * outputs, inputs / groups, ...kernel]);
  });
}

const takesConvTranspose1d = arg.takes<typeof convTranspose1d>(
  ['x', aTensor],
  ['the weight', aTensor],
  ['the bias', arg.optional(aTensor)],
  ['options', arg.options<ConvTransposeOptions>(convTransposeOptions)],
);

/**
 * x [N,C,L], weight [C, O/groups, K], bias [O].
 *
 * @jax lax.conv_transpose
 * @example
 * const line = sn.tensor([[[1, 3, 2, 4]]]);
 * const k1 = sn.tensor([[[1, -1]]]);
 * sn.convTranspose1d(line, k1);
 */
export function convTranspose1d<A extends DType, B extends DType>(
  x: Tensor<A>,
  weight: Tensor<B>,
  bias?: Tensor,
  options: ConvTransposeOptions = {},
): Tensor<Promoted<A, B>> {
  takesConvTranspose1d('convTranspose1d', x, weight, bias, options);
  return convolveBack('convTranspose1d', 1, x, weight, bias, options);
}

/**
 * x [N,C,H,W], weight [C, O/groups, KH, KW], bias [O].
 *
 * @jax lax.conv_transpose
 * @example
 * const k2 = sn.tensor([[[[1, 0], [0, -1]]]]);
 * sn.convTranspose2d(k2, k2);
 */
export function convTranspose2d<A extends DType, B extends DType>(
  x: Tensor<A>,
  weight: Tensor<B>,
  bias?: Tensor,
  options: ConvTransposeOptions = {},
): Tensor<Promoted<A, B>> {
  takesConvTranspose1d('convTranspose2d', x, weight, bias, options);
  return convolveBack('convTranspose2d', 2, x, weight, bias, options);
}

/**
 * x [N,C,D,H,W], weight [C, O/groups, KD, KH, KW], bias [O].
 *
 * @jax lax.conv_transpose
 * @example
 * const volume = sn.linspace(0, 7, 8).reshape([1, 1, 2, 2, 2]);
 * const k3 = sn.ones([1, 1, 2, 2, 2]);
 * sn.convTranspose3d(sn.narrow(volume, 2, 0, 1), k3);
 */
export function convTranspose3d<A extends DType, B extends DType>(
  x: Tensor<A>,
  weight: Tensor<B>,
  bias?: Tensor,
  options: ConvTransposeOptions = {},
): Tensor<Promoted<A, B>> {
  takesConvTranspose1d('convTranspose3d', x, weight, bias, options);
  return convolveBack('convTranspose3d', 3, x, weight, bias, options);
}
