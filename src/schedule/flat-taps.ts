// Convolutions whose taps all look along one flat axis of places: for every output, the element that a tap
// looks at stands a fixed number of elements further in memory, or beyond the picture. So a device can copy
// neighbouring places of many channels for one tap at a time, and only the ends of lines need a look.

import { dims, type Node, type NodeOf } from '../ir/graph.ts';
import { sizeOf } from '../ir/shape.ts';

/** How far along a line the first and the last tap look. */
export function reachOf({ attrs, inputs }: NodeOf<'conv'>): readonly [first: number, last: number] {
  const low = -attrs.padLow.at(-1)!;
  return [low, low + (dims(inputs[1] as Node).at(-1)! - 1) * attrs.rhsDilation.at(-1)!];
}

/**
 * Whether it is such a convolution, of one or two spatial axes: lines of the result are as long as those of
 * the input, and no tap looks further than a line.
 */
export function hasFlatTaps(node: NodeOf<'conv'>): boolean {
  const { groups, strides, lhsDilation } = node.attrs;
  const places = dims(node as Node).slice(2);
  const [lines, taps] = node.inputs.map((input) => dims(input as Node).slice(2)) as [number[], number[]];
  const isDense = [strides, lhsDilation].every((each) => each.every((one) => one === 1));
  if (groups !== 1 || !isDense || sizeOf(taps) === 1) return false;
  const width = lines.at(-1)!;
  // What leaves the only line on one side leaves the picture.
  if (places.length === 1) return true;
  return places.length === 2 && places[1] === width && reachOf(node).every((to) => Math.abs(to) <= width);
}

/** The order of axes of a weight [outputs, channels, …taps] that is laid out taps first. */
export function tapsFirst(rank: number): readonly number[] {
  return [...Array.from({ length: rank - 2 }, (_, i) => i + 2), 0, 1];
}

/** And the order that gives it back. */
export function tapsLast(rank: number): readonly number[] {
  return [rank - 2, rank - 1, ...Array.from({ length: rank - 2 }, (_, i) => i)];
}

/** Whether a weight is a view of itself laid out taps first. No simplification leaves such a pair. */
export function isLaidTapsFirst(weight: Node): boolean {
  const rank = dims(weight).length;
  const [view, laid] = [weight, weight.inputs[0]];
  return isOrdered(view, tapsLast(rank)) && isOrdered(laid, tapsFirst(rank));
}

function isOrdered(node: Node | undefined, order: readonly number[]): boolean {
  return node?.op === 'permute' && order.every((axis, i) => axis === node.attrs.order[i]);
}
