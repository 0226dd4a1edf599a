// A scan over a long axis becomes three: chunk totals, an exclusive scan of them, then each chunk scanned from
// its start (Blelloch's three phases).

import { broadcast, reduce, reshape } from '../../ir/build.ts';
import { dims, type GraphBuilder, type Node, type NodeOf } from '../../ir/graph.ts';
import { combining, type Monoid } from '../../ir/ops.ts';
import { sizeOf } from '../../ir/shape.ts';
import { sharesWork, walkersToFill } from '../machine.ts';
import type { Target } from '../target.ts';
import { padEnd } from './split.ts';

/**
 * Elements of a chunk of a scan; undefined where whole lines keep the machine busy. A workgroup
 * that shares a line takes a few thousand elements; invocations that walk chunks alone need at
 * least one chunk each, and short ones.
 */
function scanChunk(
  { length, lines, inner }: { length: number; lines: number; inner: boolean },
  target: Target,
): number | undefined {
  const shared = sharesWork(target) && inner;
  if (shared && (length <= 4096 || lines >= 256)) return undefined;
  const wanted = shared ? 2048 : Math.floor(walkersToFill(target) / lines);
  const long = length > longestWalk;
  if (!shared && !long && (wanted < 4 || length < (sharesWork(target) ? 512 : 2048))) return undefined;
  const [least, most] = shared ? [1024, Infinity] : [64, 4096];
  const chunk = Math.min(most, Math.max(least, 2 ** Math.ceil(Math.log2(length / Math.max(1, wanted)))));
  // A length that divides needs no padding.
  for (let near = chunk; near > chunk / 2; near -= 4) if (length % near === 0) return near;
  return chunk;
}

/** Elements an invocation may walk alone: a sum of more loses digits. */
const longestWalk = 16_384;

/** Splits a scan that leaves most of the machine idle, or is too long for one walk. */
export function splitScan(
  node: NodeOf<'scan'>,
  inputs: readonly Node[],
  b: GraphBuilder,
  target: Target,
): Node | undefined {
  const { monoid, axis, reverse, exclusive } = node.attrs;
  const input = inputs[0]!;
  const shape = dims(input);
  const length = shape[axis]!;
  if (sizeOf(shape) === 0) return undefined;
  const lines = sizeOf(shape) / length;
  const chunk = scanChunk({ length, lines, inner: axis === shape.length - 1 }, target);
  if (chunk === undefined) return undefined;
  const chunks = Math.ceil(length / chunk);
  const extra = chunks * chunk - length;
  const padded = reverse ? padStart(b, input, axis, extra, monoid) : padEnd(b, input, axis, extra, monoid);
  const split = [...shape.slice(0, axis), chunks, chunk, ...shape.slice(axis + 1)];
  const blocks = reshape(b, padded, split);
  const totals = reduce(b, monoid, blocks, [axis + 1]);
  const before = scanNode(b, totals, { monoid, axis, reverse, exclusive: true }, target);
  const inner = b.add('scan', [blocks], { monoid, axis: axis + 1, reverse, exclusive }) as Node;
  const one = dims(before).toSpliced(axis + 1, 0, 1);
  const offset = broadcast(b, reshape(b, before, one), split);
  const joined = b.add(combining[monoid], [inner, offset], {}) as Node;
  const whole = reshape(b, joined, shape.with(axis, chunks * chunk));
  if (extra === 0) return whole;
  const start = shape.map(() => 0).with(axis, reverse ? extra : 0);
  return b.add('slice', [whole], { start, size: shape, step: shape.map(() => 1) }) as Node;
}

/** The scan of chunk totals, split again when there are many. */
function scanNode(b: GraphBuilder, input: Node, attrs: NodeOf<'scan'>['attrs'], target: Target): Node {
  const node = b.add('scan', [input], attrs);
  return splitScan(node, [input], b, target) ?? (node as Node);
}

function padStart(b: GraphBuilder, x: Node, axis: number, count: number, monoid: Monoid): Node {
  if (count === 0) return x;
  const end = padEnd(b, x, axis, count, monoid);
  const pad = end as NodeOf<'pad'>;
  return b.add('pad', [x], { ...pad.attrs, low: pad.attrs.high, high: pad.attrs.low }) as Node;
}
