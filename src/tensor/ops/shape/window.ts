// Windows of the last axes of a tensor: sizes, strides, dilations and what lies around the ends.
// They are views, so that what is done with them is one reduction.

import { TensorError } from '../../../errors.ts';
import { add, binary, div, mul, sub } from '../../../ir/build.ts';
import * as arg from '../../../ir/arguments.ts';
import { checkList } from '../../../ir/shape.ts';
import { dims, type GraphBuilder, type Node } from '../../../ir/graph.ts';
import type { Tensor } from '../../tensor.ts';
import * as formula from '../../formula/elementwise.ts';
import { padConstant } from '../../formula/layout.ts';
import { perAxis, show, type PerAxis } from '../operand.ts';

/** Elements around each axis: one number for both ends, or a pair [before, after] for each axis. */
export type Padding = PerAxis | readonly (readonly [number, number])[];

/** @internal */
export interface WindowOptions {
  /** The kernel's size by default. */
  readonly stride?: PerAxis;
  /** At both ends of each axis, at most half the kernel; or pairs [before, after]. 0 by default. */
  readonly padding?: Padding;
  /** Distance of a window's elements, 1 by default. */
  readonly dilation?: PerAxis;
  /** Keeps a last window that reaches beyond the end, if it begins before it; false by default. */
  readonly ceilMode?: boolean;
}

const pairs = arg.listOf(arg.tupleOf<readonly [number, number]>(arg.count(0), arg.count(0)));

/** One size for both ends of all axes, one an axis, or pairs. @internal */
export const paddings: arg.Kind<Padding> = {
  accepts: (value) => arg.sizes(0).accepts(value) || pairs.accepts(value),
  refuse: (op, what, value) =>
    Array.isArray(value) && Array.isArray(value[0])
      ? pairs.refuse(op, what, value)
      : arg.sizes(0).refuse(op, what, value),
};

/** @internal */
export const windowOptions: arg.Table<WindowOptions> = {
  stride: arg.sizes(1),
  padding: paddings,
  dilation: arg.sizes(1),
  ceilMode: arg.flag,
};

/** @internal */
export interface Windows {
  readonly axes: number[];
  readonly kernel: number[];
  readonly stride: number[];
  /** Padding in front of each axis and behind it. */
  readonly low: number[];
  readonly high: number[];
  readonly dilation: number[];
  /** Windows per axis. */
  readonly counts: number[];
}

/** Both ends of every axis. @internal */
export function padPairs(op: string, padding: Padding, spatial: number): [low: number[], high: number[]] {
  if (typeof padding !== 'number') checkList(op, 'padding', padding);
  if (typeof padding === 'number' || ![...padding].every((item) => Array.isArray(item))) {
    const both = perAxis(op, 'padding', padding as PerAxis, spatial, 0);
    return [both, both];
  }
  const ends = ([0, 1] as const).map((side) =>
    (padding as readonly (readonly [number, number])[]).map((pair) => pair[side]),
  );
  return [perAxis(op, 'padding', ends[0]!, spatial, 0), perAxis(op, 'padding', ends[1]!, spatial, 0)];
}

/** The windows of the last `spatial` axes. Throws E_SHAPE where none fits. @internal */
export function windowsOf(
  op: string,
  spatial: number,
  x: Tensor,
  kernelSize: PerAxis,
  options: WindowOptions,
): Windows {
  if (x.rank !== spatial + 1 && x.rank !== spatial + 2) {
    throw new TensorError('E_SHAPE', op, `expects rank ${spatial + 2} (or ${spatial + 1}): ${show(x)}`);
  }
  const kernel = perAxis(op, 'kernelSize', kernelSize, spatial, 1);
  const stride = perAxis(op, 'stride', options.stride ?? kernel, spatial, 1);
  const [low, high] = padPairs(op, options.padding ?? 0, spatial);
  const dilation = perAxis(op, 'dilation', options.dilation ?? 1, spatial, 1);
  if (low === high && low.some((n, i) => 2 * n > kernel[i]!)) {
    throw new TensorError(
      'E_VALUE',
      op,
      `padding [${low.join(',')}] exceeds half of the kernel [${kernel.join(',')}]`,
    );
  }
  const axes = kernel.map((_, i) => x.rank - spatial + i);
  const counts = axes.map((axis, i) => {
    const free = x.shape[axis]! + low[i]! + high[i]! - (dilation[i]! * (kernel[i]! - 1) + 1);
    if (free < 0) return 0;
    const count = (options.ceilMode === true ? Math.ceil : Math.floor)(free / stride[i]!) + 1;
    // The last one must begin in the axis or in front of it.
    return (count - 1) * stride[i]! >= x.shape[axis]! + low[i]! && options.ceilMode === true
      ? count - 1
      : count;
  });
  if (counts.includes(0))
    throw new TensorError('E_SHAPE', op, `the kernel [${kernel.join(',')}] is larger than ${show(x)}`);
  return { axes, kernel, stride, low, high, dilation, counts };
}

/** [.., windows.., kernel..]: padded, one window view per axis. @internal */
export function unfolded(b: GraphBuilder, x: Node, windows: Windows, padValue: number): Node {
  const { axes, kernel, stride, low, dilation, counts } = windows;
  const ends = (side: (i: number) => number): number[] =>
    dims(x).map((_, axis) => (axes.includes(axis) ? side(axes.indexOf(axis)) : 0));
  const behind = (i: number): number => {
    const reach = (counts[i]! - 1) * stride[i]! + dilation[i]! * (kernel[i]! - 1) + 1;
    return Math.max(windows.high[i]!, reach - low[i]! - dims(x)[axes[i]!]!);
  };
  const open = axes.reduce<Node>(
    (out, axis, i) =>
      b.add('window', [out], { axis, size: kernel[i]!, stride: stride[i]!, dilation: dilation[i]! }),
    padConstant(
      b,
      x,
      ends((i) => low[i]!),
      ends(behind),
      padValue,
    ),
  );
  return open;
}

/** The place in its axis where each window begins, in i32, in the shape of the windows. @internal */
export function startOf(b: GraphBuilder, shape: readonly number[], windows: Windows, i: number): Node {
  return sub(b, mul(b, formula.iota(b, shape, windows.axes[i]!), windows.stride[i]!), windows.low[i]!);
}

/** How many elements of each window lie from `from` up to `to` of its axis. @internal */
export function tapsBetween(
  b: GraphBuilder,
  shape: readonly number[],
  windows: Windows,
  i: number,
  from: number,
  to: number,
): Node {
  const [kernel, dilation] = [windows.kernel[i]!, windows.dilation[i]!];
  const start = startOf(b, shape, windows, i);
  // Of the window's elements k, those with from ≤ start + k·dilation < to.
  const first = div(b, add(b, binary(b, 'max', sub(b, from, start), 0), dilation - 1), dilation);
  const until = div(b, add(b, binary(b, 'max', sub(b, to, start), 0), dilation - 1), dilation);
  return sub(b, binary(b, 'min', until, kernel), first);
}
