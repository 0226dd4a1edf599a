// Long folds become two or three short ones before kernels are formed, by a rule that looks at
// sizes only, so that the tree is fixed and results do not depend on timing. A reduction over few,
// long rows: partial results of equal chunks, then their combination. A scan over a long axis:
// chunk totals, an exclusive scan of them, then each chunk scanned from its start (Blelloch's three
// phases).

import { broadcast, reduce, reshape } from '../../ir/build.ts';
import { dims, rewrite, type Graph, type GraphBuilder, type Node, type NodeOf } from '../../ir/graph.ts';
import { combining, type Monoid } from '../../ir/ops.ts';
import { combineMonoid } from '../../ir/interpret/scalar.ts';
import { sizeOf } from '../../ir/shape.ts';
import { convAsDot } from './conv/as-dot.ts';
import { convByPhases } from './conv/phases.ts';
import { convTapsFirst } from './conv/taps-first.ts';
import { splitConv, splitDot } from './split-contraction.ts';
import { invocationsToFill, invocationsToLoad, sharesWork, walkersToFill } from '../machine.ts';
import type { Target } from '../target.ts';

/** Splits reductions and contractions that leave most of the machine idle, and long scans. */
export function splitFolds(graph: Graph, target: Target): Graph {
  return rewrite(graph, (node, inputs, b) => {
    if (node.op === 'reduce') return splitReduce(node, inputs[0]!, b, target);
    if (node.op === 'scan') return splitScan(node, inputs[0]!, b, target);
    if (node.op === 'dot') return splitDot(node, inputs, b, target);
    if (node.op === 'conv') {
      return (
        convAsDot(node, inputs, b, target) ??
        convByPhases(node, inputs, b, target) ??
        splitConv(node, inputs, b, target) ??
        convTapsFirst(node, inputs, b, target)
      );
    }
    return undefined;
  });
}

function splitReduce(node: NodeOf<'reduce'>, input: Node, b: GraphBuilder, target: Target): Node | undefined {
  const { monoid, axes } = node.attrs;
  const shape = dims(input);
  const row = sizeOf(axes.map((axis) => shape[axis]!));
  const rows = sizeOf(dims(node as Node));
  // Where the last axis stays, neighbours in memory are different rows, and four of them share an
  // invocation.
  const along = axes.includes(shape.length - 1);
  const sharing = sharesWork(target) ? target.limits.workgroupInvocations / (along ? 1 : 4) : 1;
  const invocations = (along ? rows : Math.ceil(rows / 4)) * sharing;
  const trips = row / (along ? 4 : 1) / sharing;
  if (rows === 0 || trips <= target.rows.split || invocations >= invocationsToLoad(target)) return undefined;
  const chunks = chunkCount(row, Math.ceil(invocationsToFill(target) / invocations));
  const length = Math.ceil(row / chunks);
  const kept = shape.map((_, axis) => axis).filter((axis) => !axes.includes(axis));
  const missing = chunks * length - row;
  // [rows, chunks, length], or [chunks, length, rows], padded with the identity where chunks do not
  // divide a row.
  const order = along ? [...kept, ...axes] : [...axes, ...kept];
  const flat = reshape(b, permuted(b, input, order), along ? [rows, row] : [row, rows]);
  const padded = padEnd(b, flat, along ? 1 : 0, missing, monoid);
  const split = reshape(b, padded, along ? [rows, chunks, length] : [chunks, length, rows]);
  const partial = reduce(b, monoid, split, [along ? 2 : 1]);
  return reshape(b, reduce(b, monoid, partial, [along ? 1 : 0]), dims(node as Node));
}

/** At most `mostChunks`, and about `goal`, by default √row: preferring a count that divides the row. */
export function chunkCount(
  row: number,
  mostChunks: number,
  goal: number = 2 ** Math.ceil(Math.log2(Math.sqrt(row))),
): number {
  const wanted = Math.max(2, Math.min(mostChunks, goal));
  for (let count = wanted; count >= wanted / 2; count--)
    if (row % count === 0 && (row / count) % 4 === 0) return count;
  return wanted;
}

function permuted(b: GraphBuilder, x: Node, order: readonly number[]): Node {
  return order.every((axis, i) => axis === i) ? x : (b.add('permute', [x], { order }) as Node);
}

/** Elements behind those of an axis, which the monoid does not see. */
export function padEnd(b: GraphBuilder, x: Node, axis: number, count: number, monoid: Monoid): Node {
  if (count === 0) return x;
  const none = dims(x).map(() => 0);
  const high = none.with(axis, count);
  const value = Number(combineMonoid(monoid, x.dtype).identity);
  return b.add('pad', [x], { low: none, high, interior: none, value }) as Node;
}

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

function splitScan(node: NodeOf<'scan'>, input: Node, b: GraphBuilder, target: Target): Node | undefined {
  const { monoid, axis, reverse, exclusive } = node.attrs;
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
  return splitScan(node, input, b, target) ?? (node as Node);
}

function padStart(b: GraphBuilder, x: Node, axis: number, count: number, monoid: Monoid): Node {
  if (count === 0) return x;
  const end = padEnd(b, x, axis, count, monoid);
  const pad = end as NodeOf<'pad'>;
  return b.add('pad', [x], { ...pad.attrs, low: pad.attrs.high, high: pad.attrs.low }) as Node;
}
