// Pooling: windows of the last one or two axes, reduced. Windows are views (`window`), so a pool is one reduction.

import { TensorError } from '../../errors.ts';
import {
  add,
  binary,
  cast,
  div,
  fullLike,
  mul,
  permute,
  reduce,
  reshape,
  sub,
  where,
} from '../../ir/build.ts';
import { dims, type GraphBuilder, type Node } from '../../ir/graph.ts';
import { windowCount } from '../../ir/infer.ts';
import { recordMany } from '../record.ts';
import type { Tensor } from '../tensor.ts';
import * as formula from './formula.ts';
import { apply, checkFloat, show, perAxis, type PerAxis } from './operand.ts';
import { contract } from './contract.ts';
import { padConstant } from './layout.ts';

export interface PoolOptions {
  /** The kernel's size by default. */
  readonly stride?: PerAxis;
  /** At both ends of each axis, at most half the kernel; 0 by default. */
  readonly padding?: PerAxis;
}

export interface MaxPoolOptions extends PoolOptions {
  readonly dilation?: PerAxis;
}

export interface AvgPoolOptions extends PoolOptions {
  /** Counts padding in the divisor; true by default. */
  readonly countIncludePad?: boolean;
}

interface Windows {
  readonly axes: number[];
  readonly kernel: number[];
  readonly stride: number[];
  readonly padding: number[];
  readonly dilation: number[];
  /** Windows per axis. */
  readonly counts: number[];
}

function windowsOf(
  op: string,
  spatial: number,
  x: Tensor,
  kernelSize: PerAxis,
  options: MaxPoolOptions,
): Windows {
  checkFloat(op, x);
  if (x.rank !== spatial + 1 && x.rank !== spatial + 2) {
    throw new TensorError('E_SHAPE', op, `expects rank ${spatial + 2} (or ${spatial + 1}): ${show(x)}`);
  }
  const kernel = perAxis(op, 'kernelSize', kernelSize, spatial, 1);
  const stride = perAxis(op, 'stride', options.stride ?? kernel, spatial, 1);
  const padding = perAxis(op, 'padding', options.padding ?? 0, spatial, 0);
  const dilation = perAxis(op, 'dilation', options.dilation ?? 1, spatial, 1);
  if (padding.some((n, i) => 2 * n > kernel[i]!)) {
    throw new TensorError(
      'E_VALUE',
      op,
      `padding [${padding.join(',')}] exceeds half of the kernel [${kernel.join(',')}]`,
    );
  }
  const axes = kernel.map((_, i) => x.rank - spatial + i);
  const counts = axes.map((axis, i) =>
    windowCount(x.shape[axis]! + 2 * padding[i]!, kernel[i]!, stride[i]!, dilation[i]!),
  );
  if (counts.includes(0))
    throw new TensorError('E_SHAPE', op, `the kernel [${kernel.join(',')}] is larger than ${show(x)}`);
  return { axes, kernel, stride, padding, dilation, counts };
}

/** [.., windows.., kernel..]: padded, one window view per axis. */
function unfolded(b: GraphBuilder, x: Node, windows: Windows, padValue: number): Node {
  const ends = dims(x).map((_, axis) => windows.padding[windows.axes.indexOf(axis)] ?? 0);
  return windows.axes.reduce<Node>(
    (out, axis, i) =>
      b.add('window', [out], {
        axis,
        size: windows.kernel[i]!,
        stride: windows.stride[i]!,
        dilation: windows.dilation[i]!,
      }),
    padConstant(b, x, ends, ends, padValue),
  );
}

/**
 * The first maximum of each window and its place in the window. The value is read back through its place, so that the whole
 * gradient goes to that one element.
 */
function firstMaximum(b: GraphBuilder, x: Node, windows: Windows): [value: Node, place: Node] {
  const open = unfolded(b, x, windows, -Infinity);
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
  const windows = windowsOf(op, spatial, x, kernelSize, options);
  return apply([x], (b, node) => firstMaximum(b, node, windows)[0]);
}

/** The largest element of each window of the last axis; NaN wins, padding never. */
export function maxPool1d(x: Tensor, kernelSize: PerAxis, options: MaxPoolOptions = {}): Tensor {
  return maxPool('maxPool1d', 1, x, kernelSize, options);
}

/** The largest element of each window of the last two axes; NaN wins, padding never. */
export function maxPool2d(x: Tensor, kernelSize: PerAxis, options: MaxPoolOptions = {}): Tensor {
  return maxPool('maxPool2d', 2, x, kernelSize, options);
}

/** `maxPool2d`, and the i32 place of each maximum in its flattened plane. */
export function maxPool2dWithIndices(
  x: Tensor,
  kernelSize: PerAxis,
  options: MaxPoolOptions = {},
): [values: Tensor, indices: Tensor] {
  const windows = windowsOf('maxPool2dWithIndices', 2, x, kernelSize, options);
  const [values, indices] = recordMany([x], (b, [node]) => {
    const [value, place] = firstMaximum(b, node!, windows);
    const taps = fullLike(b, place, windows.kernel[1]!);
    const inWindow = [div(b, place, taps), binary(b, 'mod', place, taps)];
    const [row, column] = inWindow.map((tap, i) => {
      const window = formula.iota(b, dims(place), windows.axes[i]!);
      const start = sub(b, mul(b, window, windows.stride[i]!), windows.padding[i]!);
      return add(b, start, mul(b, tap, windows.dilation[i]!));
    });
    return [value, add(b, mul(b, row!, x.shape.at(-1)!), column!)];
  });
  return [values!, indices!];
}

/** How many real elements each window has, along one axis: what is left of it between the ends. */
function realTaps(
  b: GraphBuilder,
  shape: readonly number[],
  size: number,
  windows: Windows,
  i: number,
): Node {
  const padding = windows.padding[i]!;
  const start = sub(b, mul(b, formula.iota(b, shape, windows.axes[i]!), windows.stride[i]!), padding);
  const end = binary(b, 'min', add(b, start, windows.kernel[i]!), size);
  return sub(b, end, binary(b, 'max', start, 0));
}

function avgPool(
  op: string,
  spatial: number,
  x: Tensor,
  kernelSize: PerAxis,
  options: AvgPoolOptions,
): Tensor {
  const windows = windowsOf(op, spatial, x, kernelSize, options);
  const padded = windows.padding.some((n) => n > 0);
  return apply([x], (b, node) =>
    formula.widened(b, node, (wide) => {
      const open = unfolded(b, wide, windows, 0);
      const sum = reduce(
        b,
        'sum',
        open,
        windows.axes.map((_, i) => x.rank + i),
      );
      if (options.countIncludePad !== false || !padded)
        return div(
          b,
          sum,
          windows.kernel.reduce((product, n) => product * n, 1),
        );
      const taps = windows.axes.map((axis, i) => realTaps(b, dims(sum), x.shape[axis]!, windows, i));
      return div(
        b,
        sum,
        cast(
          b,
          taps.reduce((p, q) => mul(b, p, q)),
          wide.dtype,
        ),
      );
    }),
  );
}

/** The mean of each window of the last axis. */
export function avgPool1d(x: Tensor, kernelSize: PerAxis, options: AvgPoolOptions = {}): Tensor {
  return avgPool('avgPool1d', 1, x, kernelSize, options);
}

/** The mean of each window of the last two axes. */
export function avgPool2d(x: Tensor, kernelSize: PerAxis, options: AvgPoolOptions = {}): Tensor {
  return avgPool('avgPool2d', 2, x, kernelSize, options);
}

/** Rows average the elements ⌊i·size/count⌋ to ⌈(i+1)·size/count⌉ of an axis. */
function averaging(b: GraphBuilder, count: number, size: number, like: Node): Node {
  const shape = [count, size];
  const row = formula.iota(b, shape, 0);
  const column = formula.iota(b, shape, 1);
  const start = div(b, mul(b, row, size), count);
  const end = div(b, add(b, mul(b, add(b, row, 1), size), count - 1), count);
  const inside = binary(b, 'and', binary(b, 'le', start, column), binary(b, 'lt', column, end));
  const weight = div(b, fullLike(b, cast(b, row, like.dtype), 1), cast(b, sub(b, end, start), like.dtype));
  return where(b, inside, weight, fullLike(b, weight, 0));
}

/** Means of the last two axes over an even grid of `outputSize` windows, which overlap where sizes do not divide. */
export function adaptiveAvgPool2d(x: Tensor, outputSize: PerAxis): Tensor {
  const op = 'adaptiveAvgPool2d';
  checkFloat(op, x);
  const sizes = perAxis(op, 'outputSize', outputSize, 2, 1);
  if (x.rank < 3 || x.size === 0) throw new TensorError('E_SHAPE', op, `expects [N,C,H,W]: ${show(x)}`);
  const [height, width] = [x.shape.at(-2)!, x.shape.at(-1)!];
  if ([height % sizes[0]!, width % sizes[1]!].every((rest) => rest === 0)) {
    const [tall, wide] = [height / sizes[0]!, width / sizes[1]!];
    const shape = [...x.shape.slice(0, -2), sizes[0]!, tall, sizes[1]!, wide];
    const axes = [x.rank - 1, x.rank + 1];
    return apply([x], (b, node) =>
      formula.widened(b, node, (full32) =>
        reshape(b, formula.mean(b, reshape(b, full32, shape), axes), [...x.shape.slice(0, -2), ...sizes]),
      ),
    );
  }
  return apply([x], (b, node) =>
    formula.widened(b, node, (wide) => {
      const last = x.rank - 1;
      // [.., H, W] by [w, W] gives [.., H, w]; that by [h, H] gives [.., w, h].
      const across = contract(b, wide, averaging(b, sizes[1]!, width, wide), [], [[last, 1]]);
      const down = contract(b, across, averaging(b, sizes[0]!, height, wide), [], [[last - 1, 1]]);
      const order = x.shape.map((_, axis) => axis);
      return permute(b, down, [...order.slice(0, -2), last, last - 1]);
    }),
  );
}

/** The mean over all spatial axes of [N,C,S…], kept with size 1. */
export function globalAvgPool(x: Tensor): Tensor {
  checkFloat('globalAvgPool', x);
  if (x.rank < 3) throw new TensorError('E_SHAPE', 'globalAvgPool', `expects [N,C,S…]: ${show(x)}`);
  const axes = x.shape.map((_, axis) => axis).slice(2);
  return apply([x], (b, node) => formula.widened(b, node, (wide) => formula.mean(b, wide, axes)));
}
