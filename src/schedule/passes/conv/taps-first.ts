// A convolution of 16-bit operands on matrix units of warp groups: the device copies its operands by tiles, for
// one tap and a run of channels at a time, if the weight has its channels beside each other. So the weight is
// stored taps first, which takes a kernel. The input stays as it is, but for pictures whose places are no multiple
// of 8: these are stored with a few lines of padding more.

import { permute } from '../../../ir/build.ts';
import { dims, nodeBytes, type GraphBuilder, type Node, type NodeOf } from '../../../ir/graph.ts';
import { gcd } from '../../../ir/index-algebra/simplify.ts';
import { facts } from '../../../ir/ops.ts';
import { sizeOf } from '../../../ir/shape.ts';
import { nodeFlops } from '../../cost.ts';
import { hasFlatTaps, tapsFirst, tapsLast } from '../../flat-taps.ts';
import type { Target } from '../../target.ts';

/** Sizes of a tile along each axis are multiples of it, and strides between channels of this many elements. */
const line = 64;
const aligned = 8;
/** Arithmetic of warp groups in a µs, of one multiprocessor: 2048 products and sums a clock. */
const arithmetic = 2 * 2048 * 1750;
/** Shares of it that are reached: where tiles are copied, and where invocations look for each element. */
const copied = 0.75;
const searched = 0.25;

/** The convolution with its weight laid out; undefined where it is better left as it is. */
export function convTapsFirst(
  node: NodeOf<'conv'>,
  inputs: readonly Node[],
  b: GraphBuilder,
  target: Target,
): Node | undefined {
  const [input, weight] = [inputs[0]!, inputs[1]!];
  const { dtype } = weight;
  const isHalf = (dtype === 'f16' || dtype === 'bf16') && input.dtype === dtype;
  if (target.warpgroups !== true || !isHalf || !hasFlatTaps(node) || isView(input)) return undefined;
  const [outputs, channels] = dims(weight) as [number, number];
  const places = sizeOf(dims(node as Node).slice(2));
  if (channels % aligned !== 0) return undefined;
  const filled = [outputs, channels, places].reduce(
    (share, size) => (share * size) / (line * Math.ceil(size / line)),
    1,
  );
  const [whole, lines] = ofWholePieces(input, b);
  const best = nodeFlops(node as Node) / (arithmetic * target.cores.count);
  const copying = (from: Node, to: Node): number =>
    target.launch + (nodeBytes(from) + nodeBytes(to)) / target.bandwidth;
  const laying = copying(weight, weight) + (lines === 0 ? 0 : copying(input, whole));
  if (best / (copied * filled) + laying >= best / searched) return undefined;
  const rank = dims(weight).length;
  const laid = permute(b, permute(b, weight, tapsFirst(rank)), tapsLast(rank));
  const padHigh = node.attrs.padHigh.map((high, i) => (i === 0 ? high - lines : high));
  return b.add('conv', [whole, laid], { ...node.attrs, padHigh }) as Node;
}

/** The input with as many lines of zeros behind the others as make its places a multiple of 8. */
function ofWholePieces(input: Node, b: GraphBuilder): readonly [input: Node, lines: number] {
  const [first, ...rest] = dims(input).slice(2) as [number, ...number[]];
  const unit = aligned / gcd(aligned, sizeOf(rest));
  const lines = unit * Math.ceil(first / unit) - first;
  if (lines === 0) return [input, 0];
  const none = dims(input).map(() => 0);
  const padded = b.add('pad', [input], { low: none, high: none.with(2, lines), interior: none, value: 0 });
  return [padded as Node, lines];
}

/** Whether an input is another view of what is stored than its elements in their order. */
function isView({ op, inputs }: Node): boolean {
  if (op === 'reshape') return isView(inputs[0] as Node);
  return facts(op).class === 'view';
}
