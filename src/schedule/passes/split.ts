// Long folds become two or three short ones before kernels are formed, by a rule that looks at
// sizes only, so that the tree is fixed and results do not depend on timing. A reduction over few,
// long rows: partial results of equal chunks, then their combination.

import { reduce, reshape } from '../../ir/build.ts';
import { dims, rewrite, type Graph, type GraphBuilder, type Node, type NodeOf } from '../../ir/graph.ts';
import type { Monoid, Op } from '../../ir/ops.ts';
import { combineMonoid } from '../../ir/interpret/scalar.ts';
import { sizeOf } from '../../ir/shape.ts';
import { Slot } from '../../slot.ts';
import { splitDot } from './split-contraction.ts';
import { invocationsToFill, invocationsToLoad, sharesWork } from '../machine.ts';
import type { Target } from '../target.ts';

/** The node as several; undefined where it is better left as it is. */
type Splitter<K extends Op> = (
  node: NodeOf<K>,
  inputs: readonly Node[],
  b: GraphBuilder,
  target: Target,
) => Node | undefined;

/** What chunks bring. */
export const splitters: { readonly conv: Slot<Splitter<'conv'>>; readonly scan: Slot<Splitter<'scan'>> } = {
  conv: new Slot('the splitting of convolutions'),
  scan: new Slot('the splitting of scans'),
};

/** Splits reductions and contractions that leave most of the machine idle, and long scans. */
export function splitFolds(graph: Graph, target: Target): Graph {
  return rewrite(graph, (node, inputs, b) => {
    if (node.op === 'reduce') return splitReduce(node, inputs[0]!, b, target);
    if (node.op === 'scan') return splitters.scan.value(node, inputs, b, target);
    if (node.op === 'dot') return splitDot(node, inputs, b, target);
    if (node.op === 'conv') return splitters.conv.value(node, inputs, b, target);
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
