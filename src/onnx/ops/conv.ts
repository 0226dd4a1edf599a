// Convolutions, poolings and what goes with them. Padding comes as a list of all the fronts and
// then all the ends, or as a rule that is worked out from the sizes.

import { SinterError } from '../../errors.ts';
import * as sn from '../../operations/index.ts';
import type { Tensor } from '../../tensor/tensor.ts';
import { sameShape, sizeOf } from '../../ir/shape.ts';
import { currentBudget } from '../budget.ts';
import type { Call, Rows } from '../call.ts';
import { hostType } from '../element.ts';
import { Value } from '../value.ts';
import { hosted, row } from './row.ts';

type Pairs = readonly (readonly [number, number])[];

interface Geometry {
  readonly kernel: readonly number[];
  readonly stride: readonly number[];
  readonly dilation: readonly number[];
  readonly padding: Pairs;
}

/** Sizes, strides, dilations and paddings of windows over the spatial axes of x. */
function geometryOf(call: Call, x: Tensor, kernel: readonly number[]): Geometry {
  const { attributes } = call;
  const spatial = x.shape.slice(2);
  const list = (name: string, length: number, otherwise: number): readonly number[] => {
    const given = attributes.ints(name) ?? new Array<number>(length).fill(otherwise);
    if (given.length !== length) call.fail(`${name} has ${given.length} numbers: expected ${length}`);
    return given;
  };
  if (kernel.length !== spatial.length)
    call.fail(`a kernel of ${kernel.length} axes for ${spatial.length} of x`);
  const stride = list('strides', spatial.length, 1);
  const dilation = list('dilations', spatial.length, 1);
  // Optimisers write an empty rule.
  const rule = attributes.string('auto_pad', 'NOTSET') || 'NOTSET';
  const pads = list('pads', 2 * spatial.length, 0);
  const padding = spatial.map((size, i): [number, number] => {
    if (rule === 'VALID') return [0, 0];
    if (rule === 'NOTSET') return [pads[i]!, pads[i + spatial.length]!];
    const count = Math.ceil(size / stride[i]!);
    const total = Math.max(0, (count - 1) * stride[i]! + dilation[i]! * (kernel[i]! - 1) + 1 - size);
    const small = Math.floor(total / 2);
    return rule === 'SAME_UPPER' ? [small, total - small] : [total - small, small];
  });
  const places = spatial.map((size, i) => {
    const [before, after] = padding[i]!;
    return Math.max(0, size + before + after - dilation[i]! * (kernel[i]! - 1)) / stride[i]!;
  });
  currentBudget().reads(sizeOf([...x.shape.slice(0, 2), ...places, ...kernel]), call.op);
  return { kernel, stride, dilation, padding };
}

const convolutions = [sn.conv1d, sn.conv2d, sn.conv3d] as const;
const transposes = [sn.convTranspose1d, sn.convTranspose2d, sn.convTranspose3d] as const;

/** The function for as many spatial axes as x has. */
function forRank<T>(functions: readonly T[], x: Tensor): T {
  const found = functions[x.rank - 3];
  if (found === undefined)
    throw new SinterError('E_UNSUPPORTED', `${x.rank - 2} spatial axes are not supported`);
  return found;
}

/** The sizes of a kernel, which an attribute may repeat. */
function kernelOf(call: Call, weight: Tensor): readonly number[] {
  const kernel = weight.shape.slice(2);
  const told = call.attributes.ints('kernel_shape') ?? kernel;
  if (!sameShape(told, kernel))
    call.fail(`kernel_shape [${told.join()}] does not fit the weight [${weight.shape.join()}]`);
  return kernel;
}

export function convolve(call: Call, x: Tensor, weight: Tensor, bias?: Tensor): Tensor {
  const kernel = kernelOf(call, weight);
  const { stride, dilation, padding } = geometryOf(call, x, kernel);
  const groups = call.attributes.int('group', 1);
  return overAxes(x, weight, bias, { stride, dilation, padding, groups });
}

interface Windows extends Omit<Geometry, 'kernel'> {
  readonly groups: number;
}

/**
 * A convolution over more axes than there are functions for: the taps of the first become channels
 * of one over the rest.
 */
function overAxes(x: Tensor, weight: Tensor, bias: Tensor | undefined, windows: Windows): Tensor {
  if (x.rank <= 5) return forRank(convolutions, x)(x, weight, bias, windows);
  const { stride, dilation, padding, groups } = windows;
  const [outputs, inputs, taps] = weight.shape as readonly [number, number, number];
  const padded = sn.pad(
    x,
    x.shape.map((_, axis) => (axis === 2 ? padding[0]! : [0, 0])),
  );
  const reach = dilation[0]! * (taps - 1) + 1;
  const opened = sn.slice(sn.unfold(padded, 2, reach, stride[0]!), -1, 0, reach, dilation[0]!);
  const [batch, channels, count, ...rest] = opened.shape.slice(0, -1) as [
    number,
    number,
    number,
    ...number[],
  ];
  const order = [0, 2, 1, opened.rank - 1, ...rest.map((_, i) => i + 3)];
  const flat = sn.reshape(sn.permute(opened, order), [batch * count, channels * taps, ...rest]);
  const kernel = sn.reshape(weight, [outputs, inputs * taps, ...weight.shape.slice(3)]);
  const inner = { stride: stride.slice(1), dilation: dilation.slice(1), padding: padding.slice(1), groups };
  const out = overAxes(flat, kernel, bias, inner);
  return sn.moveaxis(sn.reshape(out, [batch, count, ...out.shape.slice(1)]), 1, 2);
}

function convTranspose(call: Call): Tensor {
  const { attributes } = call;
  const [x, weight] = [call.tensor(0), call.tensor(1)];
  const kernel = kernelOf(call, weight);
  const stride = attributes.ints('strides') ?? kernel.map(() => 1);
  const dilation = attributes.ints('dilations') ?? kernel.map(() => 1);
  const outputPadding = attributes.ints('output_padding') ?? kernel.map(() => 0);
  const rule = attributes.string('auto_pad', 'NOTSET') || 'NOTSET';
  const wanted = attributes.ints('output_shape')?.slice(-kernel.length);
  const pads = attributes.ints('pads') ?? kernel.flatMap(() => [0, 0]);
  const padding = kernel.map((size, i): [number, number] => {
    if (rule === 'NOTSET' && wanted === undefined) return [pads[i]!, pads[i + kernel.length]!];
    if (rule === 'VALID' && wanted === undefined) return [0, 0];
    const full = stride[i]! * (x.shape[i + 2]! - 1) + outputPadding[i]! + dilation[i]! * (size - 1) + 1;
    const total = full - (wanted?.[i] ?? x.shape[i + 2]! * stride[i]!);
    const small = Math.floor(total / 2);
    return rule === 'SAME_UPPER' ? [small, total - small] : [total - small, small];
  });
  // Where more is wanted than there is, the rest lies behind: zeros, and what the bias adds.
  const missing = padding.map(([before, after]) => [Math.max(0, -before), Math.max(0, -after)] as const);
  const options = {
    stride,
    dilation,
    groups: attributes.int('group', 1),
    outputPadding: outputPadding.map((n, i) => Math.min(n, Math.max(stride[i]!, dilation[i]!) - 1)),
    padding: padding.map(([before, after]) => [Math.max(0, before), Math.max(0, after)] as const),
  };
  const isShort = missing.some(([before, after]) => before + after > 0);
  const run = forRank(transposes, x);
  if (!isShort) return run(x, weight, call.optional(2), options);
  const out = sn.pad(run(x, weight, undefined, options), missing);
  const bias = call.optional(2);
  return bias === undefined ? out : sn.add(out, sn.reshape(bias, [bias.size, ...kernel.map(() => 1)]));
}

function poolOptions(call: Call, x: Tensor): Geometry & { readonly ceilMode: boolean } {
  const kernel = call.attributes.ints('kernel_shape');
  if (kernel === undefined) throw new SinterError('E_FORMAT', 'kernel_shape is missing');
  return { ...geometryOf(call, x, kernel), ceilMode: call.attributes.int('ceil_mode', 0) === 1 };
}

type PoolOptions = Omit<ReturnType<typeof poolOptions>, 'kernel'>;

/**
 * A pooling by its function for each number of axes. More axes than these are pooled one by one
 * first, which comes to the same.
 */
function pooled(
  functions: readonly ((x: Tensor, kernel: readonly number[], options: PoolOptions) => Tensor)[],
  x: Tensor,
  { kernel, ...options }: ReturnType<typeof poolOptions>,
): Tensor {
  if (x.rank <= 5) return forRank(functions, x)(x, kernel, options);
  const part = (from: number, to?: number): ReturnType<typeof poolOptions> => ({
    kernel: kernel.slice(from, to),
    stride: options.stride.slice(from, to),
    dilation: options.dilation.slice(from, to),
    padding: options.padding.slice(from, to),
    ceilMode: options.ceilMode,
  });
  const line = sn.moveaxis(x, 2, -1);
  const flat = sn.reshape(line, [line.size / line.shape.at(-1)!, 1, line.shape.at(-1)!]);
  const first = pooled(functions, flat, part(0, 1));
  const open = sn.reshape(first, [...line.shape.slice(0, -1), first.shape[2]!]);
  const [batch, channels, ...rest] = open.shape as [number, number, ...number[]];
  const many = sn.moveaxis(open, -1, 1);
  const folded = sn.reshape(many, [batch * rest.at(-1)!, channels, ...rest.slice(0, -1)]);
  const out = pooled(functions, folded, part(1));
  return sn.moveaxis(sn.reshape(out, [batch, rest.at(-1)!, ...out.shape.slice(1)]), 1, 2);
}

export function pooledMax(call: Call, x: Tensor): Tensor {
  return pooled([sn.maxPool1d, sn.maxPool2d, sn.maxPool3d], x, poolOptions(call, x));
}

export function pooledMean(call: Call, x: Tensor): Tensor {
  const countIncludePad = call.attributes.int('count_include_pad', 0) === 1;
  const functions = [sn.avgPool1d, sn.avgPool2d, sn.avgPool3d].map(
    (run) => (t: Tensor, kernel: readonly number[], options: PoolOptions) =>
      run(t, kernel, { ...options, countIncludePad }),
  );
  return pooled(functions, x, poolOptions(call, x));
}

/** Opset 1 has the power as a float. */
function powerOf({ opset, attributes }: Call): number {
  return opset < 2 ? attributes.float('p', 2) : attributes.int('p', 2);
}

function lpPool(call: Call): Tensor {
  const x = call.tensor(0);
  const p = powerOf(call);
  const functions = [sn.lpPool1d, sn.lpPool2d, sn.lpPool3d].map(
    (run) => (t: Tensor, kernel: readonly number[], options: PoolOptions) =>
      run(t, kernel, { ...options, p }),
  );
  return pooled(functions, x, poolOptions(call, x));
}

/**
 * Places count through the whole tensor; with storage_order 1 the first spatial axis runs fastest.
 */
function maxPool(call: Call): (Tensor | Value)[] {
  const x = call.tensor(0);
  if (!call.wants(1)) return [pooledMax(call, x)];
  const { kernel, ...options } = poolOptions(call, x);
  const run = forRank([sn.maxPool1dWithIndices, sn.maxPool2dWithIndices, sn.maxPool3dWithIndices], x);
  const [values, inPlane] = run(x, kernel, options);
  const spatial = x.shape.slice(2);
  const plane = spatial.reduce((size, dim) => size * dim, 1);
  let places = inPlane;
  if (call.attributes.int('storage_order', 0) === 1) {
    let [rest, stride] = [inPlane, plane];
    places = sn.zerosLike(inPlane);
    for (let i = spatial.length - 1; i >= 0; i--) {
      stride /= spatial[i]!;
      places = sn.add(places, sn.mul(sn.remainder(rest, spatial[i]!), stride));
      rest = sn.div(rest, spatial[i]!, { rounding: 'trunc' });
    }
  }
  const [n, c] = x.shape as [number, number];
  const planes = sn.reshape(sn.mul(sn.arange(n * c), plane), [n, c, ...spatial.map(() => 1)]);
  return [values, Value.of(sn.cast(sn.add(places, planes), hostType('int64')), 'int64')];
}

/** Values put back at the places that a pool took them from, zeros elsewhere. */
function maxUnpool(call: Call): Tensor {
  const { attributes } = call;
  const x = call.tensor(0);
  const kernel = attributes.ints('kernel_shape') ?? [];
  const strides = attributes.ints('strides') ?? kernel.map(() => 1);
  const pads = attributes.ints('pads') ?? kernel.flatMap(() => [0, 0]);
  const natural = [
    ...x.shape.slice(0, 2),
    ...kernel.map(
      (size, i) => (x.shape[i + 2]! - 1) * strides[i]! - pads[i]! - pads[i + kernel.length]! + size,
    ),
  ];
  const shape = call.numbers(2) ?? natural;
  const size = natural.reduce((product, dim) => product * dim, 1);
  const places = sn.reshape(call.tensor(1), [x.size]);
  const flat = sn.scatter(sn.zeros([size], { dtype: x.dtype }), 0, places, sn.reshape(x, [x.size]));
  const ends = shape.map((dim, axis): [number, number] => [0, dim - natural[axis]!]);
  return sn.pad(sn.reshape(flat, natural), ends);
}

function globalPool(
  run: (x: Tensor, axes: number[], options: { keepdim: true }) => Tensor,
): (call: Call) => Tensor {
  return (call) => {
    const x = call.tensor(0);
    return run(x, x.shape.map((_, axis) => axis).slice(2), { keepdim: true });
  };
}

/** Columns of patches added up where they overlap: the adjoint of taking patches. */
function col2Im(call: Call): Tensor {
  const { attributes } = call;
  const x = call.tensor(0);
  const [image, block] = [call.numbers(1)!, call.numbers(2)!];
  const ones = block.map(() => 1);
  const [strides, dilations] = [attributes.ints('strides') ?? ones, attributes.ints('dilations') ?? ones];
  const pads = attributes.ints('pads') ?? block.flatMap(() => [0, 0]);
  const counts = image.map((size, i) => {
    const free = size + pads[i]! + pads[i + block.length]! - dilations[i]! * (block[i]! - 1) - 1;
    return Math.floor(free / strides[i]!) + 1;
  });
  const batch = x.shape[0]!;
  const taps = block.reduce((product, n) => product * n, 1);
  const channels = x.shape[1]! / taps;
  if (!Number.isInteger(channels)) call.fail(`${x.shape[1]} channels are no multiple of the block's ${taps}`);
  // A transposed convolution by unit kernels: each tap of the block is a channel that is put in its
  // place.
  const unit = sn.reshape(sn.eye(taps, taps, { dtype: x.dtype }), [taps, 1, ...block]);
  const patches = sn.reshape(x, [batch * channels, taps, ...counts]);
  const out = forRank(transposes, patches)(patches, unit, undefined, {
    stride: strides,
    dilation: dilations,
  });
  // The padded image may end behind the last patch; what lies in its padding is cut off.
  const edges = image.map((size, i) => [-pads[i]!, size + pads[i]! - out.shape[i + 2]!] as const);
  return sn.reshape(sn.pad(out, edges), [batch, channels, ...image]);
}

export const conv: Rows = {
  AveragePool: row([1, 7, 10, 11, 19, 22], (call) => pooledMean(call, call.tensor(0))),
  Col2Im: hosted([18], [1, 2], col2Im),
  Conv: row([1, 11, 22], (call) => convolve(call, call.tensor(0), call.tensor(1), call.optional(2))),
  ConvTranspose: row([1, 11, 22], convTranspose),
  GlobalAveragePool: row([1, 22], globalPool(sn.mean)),
  GlobalLpPool: row([1, 2, 22], (call) =>
    globalPool((x, axes, options) => sn.norm(x, powerOf(call), axes, options))(call),
  ),
  GlobalMaxPool: row([1, 22], globalPool(sn.amax)),
  LpPool: row([1, 2, 11, 18, 22], lpPool),
  MaxPool: row([1, 8, 10, 11, 12, 22], maxPool),
  MaxUnpool: hosted([9, 11, 22], [2], maxUnpool),
};
