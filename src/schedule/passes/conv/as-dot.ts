// A convolution of few positions over many taps becomes a matrix product: each position is a window of the
// input that is as large as the kernel, so the taps of all channels are one long sum. Gradients of
// convolutions with respect to their weights have the same form, with images as channels and taps as
// positions. In blocks of such a product, the many images and channels run along memory, and not the few
// positions.

import { permute, slice } from '../../../ir/build.ts';
import { isWide } from '../../../ir/dtype.ts';
import { dims, type GraphBuilder, type Node, type NodeOf } from '../../../ir/graph.ts';
import { sizeOf } from '../../../ir/shape.ts';
import { packsOperands } from '../../machine.ts';
import type { Target } from '../../target.ts';
import { staysWeightGradient } from '../../weight-gradient.ts';

/** Taps for each place, at least: with fewer a block of neighbouring places reads less. */
const leastRatio = 4;
/** Rows of the product, at least: with fewer, packing its columns is what takes the time. */
const leastRows = 64;
/** Where taps lie apart, reading them one by one takes longer than packing. */
const leastRowsApart = 16;

/** The convolution as a product; undefined where it is better left as it is. */
export function convAsDot(
  node: NodeOf<'conv'>,
  inputs: readonly Node[],
  b: GraphBuilder,
  target: Target,
): Node | undefined {
  const { strides, lhsDilation, rhsDilation, groups } = node.attrs;
  const [input, weight] = [inputs[0]!, inputs[1]!];
  const places = dims(node as Node).slice(2);
  const taps = dims(weight).slice(2);
  const isDense = groups === 1 && lhsDilation.every((gap) => gap === 1);
  if (!packsOperands(target) || isWide(node.dtype) || !isDense) return undefined;
  if (staysWeightGradient(node, target)) return undefined;
  const count = sizeOf(dims(node as Node)) * sizeOf(dims(weight));
  const rows = dims(input)[0]! * sizeOf(places);
  const least = rhsDilation.some((gap) => gap > 1) ? leastRowsApart : leastRows;
  if (count === 0 || rows < least || sizeOf(taps) < leastRatio * sizeOf(places)) return undefined;
  const rank = places.length;
  const axes = (from: number): number[] => Array.from({ length: rank }, (_, i) => from + i);
  const inside = [1, ...axes(2), 0];
  // [N, …places, A, …taps]: each place with what its window sees.
  const windows = places.reduce<Node>(
    (x, _, i) =>
      b.add('window', [x], {
        axis: i + 1,
        size: taps[i]!,
        stride: strides[i]!,
        dilation: rhsDilation[i]!,
      }) as Node,
    places.reduce<Node>(
      (x, size, i) => covered(b, x, i + 1, reachOf(node, i, size, taps[i]!), node.attrs.padLow[i]!),
      permute(b, input, inside),
    ),
  );
  const attrs = {
    lhsBatch: [],
    rhsBatch: [],
    lhsContract: [0, ...axes(2 + rank)],
    rhsContract: [0, ...axes(1)],
    dtype: node.dtype,
  };
  // [N, …taps, B] and [A, B, …places] of [places, A, B].
  const product = b.add('dot', [windows, permute(b, weight, inside)], attrs as never) as Node;
  return permute(b, product, [rank, rank + 1, ...axes(0)]);
}

/** How many elements of the padded input all windows along an axis see. */
export function reachOf({ attrs }: NodeOf<'conv'>, i: number, places: number, taps: number): number {
  return (places - 1) * attrs.strides[i]! + (taps - 1) * attrs.rhsDilation[i]! + 1;
}

/** The padded input along an axis, as far as windows see it. */
export function covered(b: GraphBuilder, x: Node, axis: number, reach: number, low: number): Node {
  const shape = dims(x);
  const only = (value: number): number[] => shape.map((_, i) => (i === axis ? value : 0));
  const first = Math.max(0, -low);
  const last = Math.min(shape[axis]!, reach - low);
  const part = slice(b, x, only(first), shape.with(axis, Math.max(0, last - first)));
  const before = Math.min(Math.max(0, low), reach);
  const high = reach - before - dims(part)[axis]!;
  if (before === 0 && high === 0) return part;
  return b.add('pad', [part], { low: only(before), high: only(high), interior: only(0), value: 0 }) as Node;
}
