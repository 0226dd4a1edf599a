// Pooling: windows of the last axes, reduced. Windows are views (shape/window.ts), so a pool is one
// reduction.

import type { DType } from '../../../ir/dtype.ts';
import { TensorError } from '../../../errors.ts';
import { add, binary, cast, div, fullLike, mul, reduce, reshape, where } from '../../../ir/build.ts';
import * as arg from '../../../ir/arguments.ts';
import { dtypeBytes, integerRange, isFloat } from '../../../ir/dtype.ts';
import { dims, type GraphBuilder, type Node } from '../../../ir/graph.ts';
import { aTensor } from '../../expect.ts';
import { recordMany } from '../../record.ts';
import type { Tensor } from '../../tensor.ts';
import * as formula from '../../formula/elementwise.ts';
import { apply, checkFloat, checkReal, operandType, show, takesOne, type PerAxis } from '../operand.ts';
import {
  startOf,
  tapsBetween,
  unfolded,
  windowOptions,
  windowsOf,
  type WindowOptions,
  type Windows,
} from '../shape/window.ts';

export type PoolOptions = WindowOptions;
export type MaxPoolOptions = WindowOptions;

export interface AvgPoolOptions extends WindowOptions {
  /** Counts padding in the divisor; true by default. */
  readonly countIncludePad?: boolean;
  /**
   * What every sum is divided by, in place of how many elements its window has; by default that
   * number.
   */
  readonly divisorOverride?: number;
}

const divisor: arg.Kind<number> = arg.kind(
  'an integer other than 0',
  (value) => Number.isSafeInteger(value) && value !== 0,
);

/** @internal */
export const avgPoolOptions: arg.Table<AvgPoolOptions> = {
  ...windowOptions,
  countIncludePad: arg.flag,
  divisorOverride: divisor,
};

export interface LpPoolOptions extends WindowOptions {
  /** The exponent, 2 by default. */
  readonly p?: number;
}

/**
 * The first maximum of each window and its place in the window. The value is read back through its
 * place, so that the whole gradient goes to that one element.
 */
function firstMaximum(b: GraphBuilder, x: Node, windows: Windows): [value: Node, place: Node] {
  if (!isFloat(x.dtype) && dtypeBytes(x.dtype) < 4) {
    // Padding is less than the least of what it pads, so that no place of it is found.
    const below = Number(integerRange(x.dtype)[0]) - 1;
    const [value, place] = firstOf(b, cast(b, x, 'i32'), windows, below);
    return [cast(b, value, x.dtype), place];
  }
  return firstOf(b, x, windows, isFloat(x.dtype) ? -Infinity : Number(integerRange(x.dtype)[0]));
}

function firstOf(b: GraphBuilder, x: Node, windows: Windows, padding: number): [value: Node, place: Node] {
  const open = unfolded(b, x, windows, padding);
  const shape = dims(open);
  const taps = windows.kernel.reduce((product, n) => product * n, 1);
  const flat = reshape(b, open, [...shape.slice(0, -windows.kernel.length), taps]);
  const last = dims(flat).length - 1;
  const place = b.add('argReduce', [formula.stopGradient(b, flat)], { monoid: 'max', axis: last });
  const chosen = where(b, formula.pointedAt(b, flat, place, last), flat, fullLike(b, flat, 0));
  return [reduce(b, 'sum', chosen, [last]), place];
}

function maxPool(
  op: string,
  spatial: number,
  x: Tensor,
  kernelSize: PerAxis,
  options: MaxPoolOptions,
): Tensor {
  checkReal(op, x);
  const windows = windowsOf(op, spatial, x, kernelSize, options);
  return apply([x], (b, node) => firstMaximum(b, node, windows)[0]);
}

const takesMaxPool1d = arg.takes<typeof maxPool1d>(
  ['x', aTensor],
  ['kernelSize', arg.sizes(1)],
  ['options', arg.options<WindowOptions>(windowOptions)],
);

/**
 * The largest element of each window of the last axis; NaN wins, padding never.
 *
 * @jax lax.reduce_window
 * @example
 * const line = sn.tensor([[[1, 3, 2, 4]]]);
 * sn.maxPool1d(line, 2);
 */
export function maxPool1d<D extends DType>(
  x: Tensor<D>,
  kernelSize: PerAxis,
  options: MaxPoolOptions = {},
): Tensor<D> {
  takesMaxPool1d('maxPool1d', x, kernelSize, options);
  return maxPool('maxPool1d', 1, x, kernelSize, options);
}

/**
 * The largest element of each window of the last two axes; NaN wins, padding never.
 *
 * @jax lax.reduce_window
 * @example
 * const image = sn.linspace(0, 15, 16).reshape([1, 1, 4, 4]);
 * sn.maxPool2d(image, 2);
 */
export function maxPool2d<D extends DType>(
  x: Tensor<D>,
  kernelSize: PerAxis,
  options: MaxPoolOptions = {},
): Tensor<D> {
  takesMaxPool1d('maxPool2d', x, kernelSize, options);
  return maxPool('maxPool2d', 2, x, kernelSize, options);
}

/**
 * The largest element of each window of the last three axes; NaN wins, padding never.
 *
 * @jax lax.reduce_window
 * @example
 * const volume = sn.linspace(0, 7, 8).reshape([1, 1, 2, 2, 2]);
 * sn.maxPool3d(volume, 2);
 */
export function maxPool3d<D extends DType>(
  x: Tensor<D>,
  kernelSize: PerAxis,
  options: MaxPoolOptions = {},
): Tensor<D> {
  takesMaxPool1d('maxPool3d', x, kernelSize, options);
  return maxPool('maxPool3d', 3, x, kernelSize, options);
}

/** The maxima and their i32 places in the flattened spatial axes. */
function maxPoolWithIndices(
  op: string,
  spatial: number,
  x: Tensor,
  kernelSize: PerAxis,
  options: MaxPoolOptions,
): [values: Tensor, indices: Tensor] {
  checkReal(op, x);
  const windows = windowsOf(op, spatial, x, kernelSize, options);
  const [values, indices] = recordMany([x], (b, [node]) => {
    const [value, place] = firstMaximum(b, node!, windows);
    // The place in the window, taken apart from its last axis on.
    let rest = place;
    let flat = fullLike(b, place, 0);
    let stride = 1;
    for (let i = spatial - 1; i >= 0; i--) {
      const size = fullLike(b, place, windows.kernel[i]!);
      const tap = mul(b, binary(b, 'mod', rest, size), windows.dilation[i]!);
      flat = add(b, flat, mul(b, add(b, startOf(b, dims(place), windows, i), tap), stride));
      rest = div(b, rest, size);
      stride *= x.shape[windows.axes[i]!]!;
    }
    return [value, flat];
  });
  return [values!, indices!];
}

/**
 * `maxPool1d`, and the i32 place of each maximum in its line.
 *
 * @example
 * const line = sn.tensor([[[1, 3, 2, 4]]]);
 * sn.maxPool1dWithIndices(line, 2);
 */
export function maxPool1dWithIndices(
  x: Tensor,
  kernelSize: PerAxis,
  options: MaxPoolOptions = {},
): [values: Tensor, indices: Tensor] {
  takesMaxPool1d('maxPool1dWithIndices', x, kernelSize, options);
  return maxPoolWithIndices('maxPool1dWithIndices', 1, x, kernelSize, options);
}

/**
 * `maxPool2d`, and the i32 place of each maximum in its flattened plane.
 *
 * @example
 * const image = sn.linspace(0, 15, 16).reshape([1, 1, 4, 4]);
 * sn.maxPool2dWithIndices(image, 2);
 */
export function maxPool2dWithIndices(
  x: Tensor,
  kernelSize: PerAxis,
  options: MaxPoolOptions = {},
): [values: Tensor, indices: Tensor] {
  takesMaxPool1d('maxPool2dWithIndices', x, kernelSize, options);
  return maxPoolWithIndices('maxPool2dWithIndices', 2, x, kernelSize, options);
}

/**
 * `maxPool3d`, and the i32 place of each maximum in its flattened volume.
 *
 * @example
 * const volume = sn.linspace(0, 7, 8).reshape([1, 1, 2, 2, 2]);
 * sn.maxPool3dWithIndices(volume, 2);
 */
export function maxPool3dWithIndices(
  x: Tensor,
  kernelSize: PerAxis,
  options: MaxPoolOptions = {},
): [values: Tensor, indices: Tensor] {
  takesMaxPool1d('maxPool3dWithIndices', x, kernelSize, options);
  return maxPoolWithIndices('maxPool3dWithIndices', 3, x, kernelSize, options);
}

function avgPool(
  op: string,
  spatial: number,
  x: Tensor,
  kernelSize: PerAxis,
  options: AvgPoolOptions,
): Tensor {
  operandType(op, [x], 'number');
  const windows = windowsOf(op, spatial, x, kernelSize, options);
  const { axes, kernel, stride, low, high, dilation, counts } = windows;
  const padded = options.countIncludePad !== false;
  // Every window is full where none reaches past what is counted.
  const isFull = axes.every((axis, i) => {
    const end = (counts[i]! - 1) * stride[i]! - low[i]! + dilation[i]! * (kernel[i]! - 1) + 1;
    return padded ? end <= x.shape[axis]! + high[i]! : low[i] === 0 && end <= x.shape[axis]!;
  });
  const taken = kernel.reduce((product, n) => product * n, 1);
  return apply([x], (b, node) => {
    const averaged = (wide: Node): Node => {
      const inWindow = axes.map((_, i) => x.rank + i);
      const sum = reduce(b, 'sum', unfolded(b, wide, windows, 0), inWindow);
      if (options.divisorOverride !== undefined) return div(b, sum, options.divisorOverride);
      if (isFull) return div(b, sum, taken);
      const taps = axes.map((axis, i) => {
        const size = x.shape[axis]!;
        const [from, to] = padded ? [-low[i]!, size + high[i]!] : [0, size];
        return tapsBetween(b, dims(sum), windows, i, from, to);
      });
      const count = taps.reduce((p, q) => mul(b, p, q));
      return div(b, sum, cast(b, count, wide.dtype));
    };
    return cast(b, averaged(cast(b, node, formula.meanType(x.dtype, taken))), x.dtype);
  });
}

const takesAvgPool1d = arg.takes<typeof avgPool1d>(
  ['x', aTensor],
  ['kernelSize', arg.sizes(1)],
  ['options', arg.options<AvgPoolOptions>(avgPoolOptions)],
);

/**
 * The mean of each window of the last axis; of integers without fractions.
 *
 * @jax lax.reduce_window
 * @example
 * const line = sn.tensor([[[1, 3, 2, 4]]]);
 * sn.avgPool1d(line, 2);
 */
export function avgPool1d<D extends DType>(
  x: Tensor<D>,
  kernelSize: PerAxis,
  options: AvgPoolOptions = {},
): Tensor<D> {
  takesAvgPool1d('avgPool1d', x, kernelSize, options);
  return avgPool('avgPool1d', 1, x, kernelSize, options);
}

/**
 * The mean of each window of the last two axes; of integers without fractions.
 *
 * @jax lax.reduce_window
 * @example
 * const image = sn.linspace(0, 15, 16).reshape([1, 1, 4, 4]);
 * sn.avgPool2d(image, 2);
 */
export function avgPool2d<D extends DType>(
  x: Tensor<D>,
  kernelSize: PerAxis,
  options: AvgPoolOptions = {},
): Tensor<D> {
  takesAvgPool1d('avgPool2d', x, kernelSize, options);
  return avgPool('avgPool2d', 2, x, kernelSize, options);
}

/**
 * The mean of each window of the last three axes; of integers without fractions.
 *
 * @jax lax.reduce_window
 * @example
 * const volume = sn.linspace(0, 7, 8).reshape([1, 1, 2, 2, 2]);
 * sn.avgPool3d(volume, 2);
 */
export function avgPool3d<D extends DType>(
  x: Tensor<D>,
  kernelSize: PerAxis,
  options: AvgPoolOptions = {},
): Tensor<D> {
  takesAvgPool1d('avgPool3d', x, kernelSize, options);
  return avgPool('avgPool3d', 3, x, kernelSize, options);
}

function lpPool(op: string, spatial: number, x: Tensor, kernelSize: PerAxis, options: LpPoolOptions): Tensor {
  checkFloat(op, x);
  const windows = windowsOf(op, spatial, x, kernelSize, options);
  return apply([x], (b, node) =>
    formula.widened(b, node, (wide) => {
      const open = unfolded(b, wide, windows, 0);
      const inWindow = windows.axes.map((_, i) => x.rank + i);
      return reshape(b, formula.normOf(b, open, options.p ?? 2, inWindow), dims(open).slice(0, x.rank));
    }),
  );
}

/** @internal */
export const lpPoolOptions: arg.Table<LpPoolOptions> = { ...windowOptions, p: arg.number };
const takesLpPool1d = arg.takes<typeof lpPool1d>(
  ['x', aTensor],
  ['kernelSize', arg.sizes(1)],
  ['options', arg.options<LpPoolOptions>(lpPoolOptions)],
);

/**
 * (Σ |x|ᵖ)^(1/p), the p-norm, over each window of the last axis.
 *
 * @example
 * const line = sn.tensor([[[1, 3, 2, 4]]]);
 * sn.lpPool1d(line, 2);
 */
export function lpPool1d<D extends DType>(
  x: Tensor<D>,
  kernelSize: PerAxis,
  options: LpPoolOptions = {},
): Tensor<D> {
  takesLpPool1d('lpPool1d', x, kernelSize, options);
  return lpPool('lpPool1d', 1, x, kernelSize, options);
}

/**
 * (Σ |x|ᵖ)^(1/p), the p-norm, over each window of the last two axes.
 *
 * @example
 * const image = sn.linspace(0, 15, 16).reshape([1, 1, 4, 4]);
 * sn.lpPool2d(image, 2);
 */
export function lpPool2d<D extends DType>(
  x: Tensor<D>,
  kernelSize: PerAxis,
  options: LpPoolOptions = {},
): Tensor<D> {
  takesLpPool1d('lpPool2d', x, kernelSize, options);
  return lpPool('lpPool2d', 2, x, kernelSize, options);
}

/**
 * (Σ |x|ᵖ)^(1/p), the p-norm, over each window of the last three axes.
 *
 * @example
 * const volume = sn.linspace(0, 7, 8).reshape([1, 1, 2, 2, 2]);
 * sn.lpPool3d(volume, 2);
 */
export function lpPool3d<D extends DType>(
  x: Tensor<D>,
  kernelSize: PerAxis,
  options: LpPoolOptions = {},
): Tensor<D> {
  takesLpPool1d('lpPool3d', x, kernelSize, options);
  return lpPool('lpPool3d', 3, x, kernelSize, options);
}

/**
 * The mean over all spatial axes of [N,C,S…], kept with size 1.
 *
 * @example
 * const image = sn.linspace(0, 15, 16).reshape([1, 1, 4, 4]);
 * sn.globalAvgPool(image);
 */
export function globalAvgPool<D extends DType>(x: Tensor<D>): Tensor<D> {
  takesOne('globalAvgPool', x);
  checkFloat('globalAvgPool', x);
  if (x.rank < 3) throw new TensorError('E_SHAPE', 'globalAvgPool', `expects [N,C,S…]: ${show(x)}`);
  const axes = x.shape.map((_, axis) => axis).slice(2);
  return apply([x], (b, node) => formula.widened(b, node, (wide) => formula.mean(b, wide, axes)));
}
