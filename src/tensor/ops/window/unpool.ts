// Unpooling: maxima written back to the places they came from, zeros elsewhere (Zeiler and Fergus,
// 2014); and pools over windows of random sizes (Graham, 2014).

import { TensorError } from '../../../errors.ts';
import * as arg from '../../../ir/arguments.ts';
import { add, binary, cast, full, mul, reshape, sub, unary } from '../../../ir/build.ts';
import { dims, type GraphBuilder, type Node } from '../../../ir/graph.ts';
import { sizeOf } from '../../../ir/shape.ts';
import { watchRange } from '../../debug.ts';
import { aTensor } from '../../expect.ts';
import { recordMany } from '../../record.ts';
import type { Tensor } from '../../tensor.ts';
import * as formula from '../../formula/elementwise.ts';
import { uniformOf } from '../../formula/noise.ts';
import { apply, checkFloat, checkInteger, perAxis, show, type PerAxis } from '../operand.ts';
import { sliceAxis } from '../../formula/layout.ts';
import { maximaOf, type Starts } from './adaptive.ts';

export interface UnpoolOptions {
  /** The kernel's size by default. */
  readonly stride?: PerAxis;
  /** 0 by default. */
  readonly padding?: PerAxis;
  /** The spatial sizes of the result; by default the least that the pool could have come from. */
  readonly outputSize?: PerAxis;
}

/** @internal */
export const unpoolOptions: arg.Table<UnpoolOptions> = {
  stride: arg.sizes(1),
  padding: arg.sizes(0),
  outputSize: arg.sizes(1),
};
const takesUnpool = arg.takes<typeof maxUnpool1d>(
  ['x', aTensor],
  ['the indices', aTensor],
  ['kernelSize', arg.sizes(1)],
  ['options', arg.options<UnpoolOptions>(unpoolOptions)],
);

function unpool(
  op: string,
  spatial: number,
  x: Tensor,
  indices: Tensor,
  kernelSize: PerAxis,
  options: UnpoolOptions,
): Tensor {
  checkInteger(op, 'the indices', indices);
  if (x.rank !== spatial + 1 && x.rank !== spatial + 2)
    throw new TensorError('E_SHAPE', op, `expects rank ${spatial + 2} (or ${spatial + 1}): ${show(x)}`);
  if (indices.rank !== x.rank || !indices.shape.every((dim, i) => dim === x.shape[i]))
    throw new TensorError('E_SHAPE', op, `expects an index for each element: ${show(x, indices)}`);
  const kernel = perAxis(op, 'kernelSize', kernelSize, spatial, 1);
  const stride = perAxis(op, 'stride', options.stride ?? kernel, spatial, 1);
  const padding = perAxis(op, 'padding', options.padding ?? 0, spatial, 0);
  const from = x.shape.slice(-spatial);
  const least = from.map((size, i) => (size - 1) * stride[i]! - 2 * padding[i]! + kernel[i]!);
  const sizes = perAxis(op, 'outputSize', options.outputSize ?? least, spatial, 1);
  if (sizes.some((size, i) => Math.abs(size - least[i]!) >= stride[i]!)) {
    const [wanted, known] = [sizes.join(','), least.join(',')];
    throw new TensorError('E_SHAPE', op, `outputSize [${wanted}] is not within a stride of [${known}]`);
  }
  const plane = sizeOf(sizes);
  watchRange(op, 'index', indices, 0, plane, `the ${plane} elements of [${sizes.join(',')}]`);
  const lead = x.shape.slice(0, -spatial);
  const flat = [...lead, sizeOf(from)];
  return apply([x, indices], (b, node, places) => {
    const values = reshape(b, node, flat);
    const at = reshape(b, formula.narrowIndex(b, places), flat);
    const zeros = full(b, [...lead, plane], 0, x.dtype);
    const written = b.add('scatter', [zeros, at, values], { axis: lead.length, mode: 'set' }) as Node;
    const whole = [...lead, ...sizes];
    return reshape(b, written, whole);
  });
}

/**
 * The values at their places (as `maxPool1dWithIndices` gives them) of a longer last axis; zeros
 * elsewhere.
 *
 * @example
 * const i1 = sn.tensor([[[1, 3]]], { dtype: 'i32' });
 * const m1 = sn.tensor([[[3, 4]]]);
 * sn.maxUnpool1d(m1, i1, 2);
 */
export function maxUnpool1d(
  x: Tensor,
  indices: Tensor,
  kernelSize: PerAxis,
  options: UnpoolOptions = {},
): Tensor {
  takesUnpool('maxUnpool1d', x, indices, kernelSize, options);
  return unpool('maxUnpool1d', 1, x, indices, kernelSize, options);
}

/**
 * As `maxUnpool1d`, of planes: the inverse of `maxPool2dWithIndices` where windows do not overlap.
 *
 * @example
 * const i2 = sn.tensor([[[[5, 7]]]], { dtype: 'i32' });
 * const m2 = sn.tensor([[[[5, 7]]]]);
 * sn.maxUnpool2d(m2, i2, 2);
 */
export function maxUnpool2d(
  x: Tensor,
  indices: Tensor,
  kernelSize: PerAxis,
  options: UnpoolOptions = {},
): Tensor {
  takesUnpool('maxUnpool2d', x, indices, kernelSize, options);
  return unpool('maxUnpool2d', 2, x, indices, kernelSize, options);
}

/**
 * As `maxUnpool1d`, of volumes.
 *
 * @example
 * const i3 = sn.tensor([[[[[7]]]]], { dtype: 'i32' });
 * const m3 = sn.tensor([[[[[7]]]]]);
 * sn.maxUnpool3d(m3, i3, 2);
 */
export function maxUnpool3d(
  x: Tensor,
  indices: Tensor,
  kernelSize: PerAxis,
  options: UnpoolOptions = {},
): Tensor {
  takesUnpool('maxUnpool3d', x, indices, kernelSize, options);
  return unpool('maxUnpool3d', 3, x, indices, kernelSize, options);
}

export interface FractionalPoolOptions {
  /**
   * The spatial sizes of the result; either this or `outputRatio`; by default `outputRatio` says
   * them.
   */
  readonly outputSize?: PerAxis;
  /** The result's sizes as shares of x's, below 1; by default `outputSize` says them. */
  readonly outputRatio?: number;
  /**
   * Where windows begin: a number in [0, 1) for each sample, channel and axis, [N, C, axes]. By
   * default drawn anew at each call.
   */
  readonly samples?: Tensor;
}

/** @internal */
export const fractionalPoolOptions: arg.Table<FractionalPoolOptions> = {
  outputSize: arg.sizes(1),
  outputRatio: arg.share,
  samples: aTensor,
};
const takesFractional = arg.takes<typeof fractionalMaxPool2d>(
  ['x', aTensor],
  ['kernelSize', arg.sizes(1)],
  ['options', arg.options<FractionalPoolOptions>(fractionalPoolOptions)],
);

/** Window i of `count` begins at ⌊(i + u)·α⌋ − ⌊u·α⌋, the last one at the end of the axis. */
function fractionalStarts(b: GraphBuilder, u: Node, count: number, size: number, taps: number): Node {
  const [lines] = dims(u) as [number];
  const shape = [lines, count];
  if (count === 1) return full(b, shape, size - taps, 'i32');
  const alpha = (size - taps) / (count - 1);
  const index = formula.iota(b, shape, 1);
  const spread = b.add('broadcast', [reshape(b, u, [lines, 1])], { shape }) as Node;
  const at = unary(b, 'floor', mul(b, add(b, cast(b, index, u.dtype), spread), alpha));
  const start = cast(b, sub(b, at, unary(b, 'floor', mul(b, spread, alpha))), 'i32');
  const isLast = binary(b, 'eq', index, count - 1);
  return b.add('where', [isLast, full(b, shape, size - taps, 'i32'), start], {}) as Node;
}

function fractional(
  op: string,
  spatial: number,
  x: Tensor,
  kernelSize: PerAxis,
  options: FractionalPoolOptions,
): [values: Tensor, indices: Tensor] {
  checkFloat(op, x, options.samples);
  if (x.rank !== spatial + 1 && x.rank !== spatial + 2)
    throw new TensorError('E_SHAPE', op, `expects rank ${spatial + 2} (or ${spatial + 1}): ${show(x)}`);
  const kernel = perAxis(op, 'kernelSize', kernelSize, spatial, 1);
  const from = x.shape.slice(-spatial);
  const { outputSize, outputRatio, samples } = options;
  if ((outputSize === undefined) === (outputRatio === undefined))
    throw new TensorError('E_VALUE', op, 'needs either outputSize or outputRatio', '{ outputRatio: 0.5 }');
  const wanted = outputSize ?? from.map((size) => Math.floor(size * (outputRatio ?? 1)));
  const counts = perAxis(op, 'outputSize', wanted, spatial, 1);
  if (counts.some((count, i) => count + kernel[i]! - 1 > from[i]!)) {
    const problem = `${counts.join(' × ')} windows of [${kernel.join(',')}] do not fit ${show(x)}`;
    throw new TensorError('E_SHAPE', op, problem);
  }
  const lead = x.shape.slice(0, -spatial);
  const lines = sizeOf(lead);
  if (samples !== undefined && (samples.rank < 2 || samples.size !== lines * spatial)) {
    throw new TensorError('E_SHAPE', op, `samples must be [N,C,${spatial}]: ${show(samples)}`);
  }
  const given = samples === undefined ? [x] : [x, samples];
  const [values, indices] = recordMany(given, (b, [node, drawn]) => {
    const u =
      drawn === undefined
        ? uniformOf(b, [lines, spatial], 'f32')
        : reshape(b, formula.stopGradient(b, drawn), [lines, spatial]);
    const windows = counts.map((count, i): Starts => {
      // PyTorch's samples come with the last axis first.
      const own = reshape(b, sliceAxis(b, u, 1, spatial - 1 - i, 1), [lines]);
      return { start: fractionalStarts(b, own, count, from[i]!, kernel[i]!), taps: kernel[i]! };
    });
    const [value, place] = maximaOf(b, reshape(b, node!, [lines, ...from]), windows);
    const whole = [...lead, ...counts];
    return [reshape(b, value, whole), reshape(b, place, whole)];
  });
  return [values!, indices!];
}

/**
 * Maxima over windows of random places that fill planes evenly, and their i32 places there.
 *
 * @example
 * const image = sn.linspace(0, 15, 16).reshape([1, 1, 4, 4]);
 * const corners = sn.tensor([[[0.25, 0.5]]]);
 * sn.fractionalMaxPool2dWithIndices(image, 2, { outputSize: 2, samples: corners });
 */
export function fractionalMaxPool2dWithIndices(
  x: Tensor,
  kernelSize: PerAxis,
  options: FractionalPoolOptions = {},
): [values: Tensor, indices: Tensor] {
  takesFractional('fractionalMaxPool2dWithIndices', x, kernelSize, options);
  return fractional('fractionalMaxPool2dWithIndices', 2, x, kernelSize, options);
}

/**
 * Maxima over windows of random places that fill planes evenly.
 *
 * @example
 * const image = sn.linspace(0, 15, 16).reshape([1, 1, 4, 4]);
 * const corners = sn.tensor([[[0.25, 0.5]]]);
 * sn.fractionalMaxPool2d(image, 2, { outputSize: 2, samples: corners });
 */
export function fractionalMaxPool2d(
  x: Tensor,
  kernelSize: PerAxis,
  options: FractionalPoolOptions = {},
): Tensor {
  takesFractional('fractionalMaxPool2d', x, kernelSize, options);
  return fractional('fractionalMaxPool2d', 2, x, kernelSize, options)[0];
}

/**
 * Maxima over windows of random places that fill volumes evenly, and their i32 places there.
 *
 * @example
 * const corners3 = sn.tensor([[[0.25, 0.5, 0.75]]]);
 * const cube = sn.linspace(0, 26, 27).reshape([1, 1, 3, 3, 3]);
 * sn.fractionalMaxPool3dWithIndices(cube, 2, { outputSize: 1, samples: corners3 });
 */
export function fractionalMaxPool3dWithIndices(
  x: Tensor,
  kernelSize: PerAxis,
  options: FractionalPoolOptions = {},
): [values: Tensor, indices: Tensor] {
  takesFractional('fractionalMaxPool3dWithIndices', x, kernelSize, options);
  return fractional('fractionalMaxPool3dWithIndices', 3, x, kernelSize, options);
}

/**
 * Maxima over windows of random places that fill volumes evenly.
 *
 * @example
 * const corners3 = sn.tensor([[[0.25, 0.5, 0.75]]]);
 * const cube = sn.linspace(0, 26, 27).reshape([1, 1, 3, 3, 3]);
 * sn.fractionalMaxPool3d(cube, 2, { outputSize: 1, samples: corners3 });
 */
export function fractionalMaxPool3d(
  x: Tensor,
  kernelSize: PerAxis,
  options: FractionalPoolOptions = {},
): Tensor {
  takesFractional('fractionalMaxPool3d', x, kernelSize, options);
  return fractional('fractionalMaxPool3d', 3, x, kernelSize, options)[0];
}
