// Iteration domains: the axes a kernel runs over, and the indices of its fusion root's result at their
// current point.

import type { FusionRootOp, Op } from '../../ir/ops.ts';
import { CompilerBug } from '../../errors.ts';
import { dims, type Node, type NodeOf } from '../../ir/graph.ts';
import {
  axisIndex,
  constantIndex,
  delinearize,
  linearize,
  type IndexExpr,
} from '../../ir/index-algebra/expr.ts';
import { sizeOf } from '../../ir/shape.ts';
import { Slot } from '../../slot.ts';
import type { Indices } from '../expression/evaluate.ts';
import type { Axis } from '../kernel.ts';
import type { FusionRootKind } from './place.ts';

export interface IterationDomain {
  readonly axes: Readonly<Record<string, Axis>>;
  /** Indices of the fusion root at the current point. */
  readonly at: Indices;
}

export function makeAxis(name: string, extent: number): Axis {
  return { name, extent, atom: extent <= 1 ? constantIndex(0) : axisIndex(name, extent) };
}

export function reducedAxes(node: Node): readonly number[] {
  return node.op === 'reduce' ? node.attrs.axes : node.op === 'argReduce' ? [node.attrs.axis] : [];
}

/**
 * Rows (the kept axes) and columns (the reduced ones) of a reduction, and the index in the input.
 */
export function rowDomain(node: Node): IterationDomain & {
  readonly full: {
    readonly shape: readonly number[];
    readonly axes: readonly number[];
    readonly at: Indices;
  };
} {
  const shape = dims(node.inputs[0]!);
  const axes = reducedAxes(node);
  const kept = shape.filter((_, axis) => !axes.includes(axis));
  const folded = axes.map((axis) => shape[axis]!);
  const row = makeAxis('row', sizeOf(kept));
  const column = makeAxis('col', sizeOf(folded));
  const outer = delinearize(row.atom, kept);
  const at = reducedIndices(node, outer, column.atom);
  return { axes: { row, column }, at: outer, full: { shape, axes, at } };
}

/** Where a reduction looks at its input: for its result at `at`, at `column` along what it reduces. */
export function reducedIndices(node: Node, at: Indices, column: IndexExpr): Indices {
  const shape = dims(node.inputs[0]!);
  const axes = reducedAxes(node);
  const inner = delinearize(
    column,
    axes.map((axis) => shape[axis]!),
  );
  let [o, i] = [0, 0];
  return shape.map((_, axis) => (axes.includes(axis) ? inner[i++]! : at[o++]!));
}

/** Where a dot looks at its operands: for its result at `at`, at `k` along what it contracts. */
export function dotIndices(
  { inputs: [left, right], attrs }: NodeOf<'dot'>,
  at: Indices,
  k: IndexExpr,
): readonly [left: Indices, right: Indices] {
  const { lhsBatch, rhsBatch, lhsContract, rhsContract } = attrs;
  const contracted = delinearize(
    k,
    lhsContract.map((axis) => dims(left!)[axis]!),
  );
  let free = lhsBatch.length;
  const indicesOf = (operand: Node, batch: readonly number[], contract: readonly number[]): Indices =>
    dims(operand).map((_, axis) => {
      const b = batch.indexOf(axis);
      if (b >= 0) return at[b]!;
      const c = contract.indexOf(axis);
      return c >= 0 ? contracted[c]! : at[free++]!;
    });
  const first = indicesOf(left!, lhsBatch, lhsContract);
  return [first, indicesOf(right!, rhsBatch, rhsContract)];
}

/** Sizes of a contraction as a batch of m×k by k×n products. */
export interface Extents {
  readonly batch: number;
  readonly m: number;
  readonly n: number;
  readonly k: number;
}

/**
 * conv [N,O,S…]: batch = (N, group), m = output channel in its group, n = position, k = (channel,
 * window).
 */
export function contractExtents(node: Node): Extents {
  const shape = dims(node);
  if (node.op === 'conv') {
    const { groups } = node.attrs;
    const k = sizeOf(dims(node.inputs[1]!).slice(1));
    return { batch: shape[0]! * groups, m: shape[1]! / groups, n: sizeOf(shape.slice(2)), k };
  }
  if (node.op !== 'dot') throw new CompilerBug('domain', `${node.op} is no contraction`);
  const [batchRank, mRank] = dotRanks(node);
  return {
    batch: sizeOf(shape.slice(0, batchRank)),
    m: sizeOf(shape.slice(batchRank, batchRank + mRank)),
    n: sizeOf(shape.slice(batchRank + mRank)),
    k: sizeOf(node.attrs.lhsContract.map((axis) => dims(node.inputs[0]!)[axis]!)),
  };
}

function dotRanks(node: Extract<Node, { op: 'dot' }>): [batch: number, m: number] {
  const { lhsBatch, lhsContract } = node.attrs;
  return [lhsBatch.length, node.inputs[0]!.shape.length - lhsBatch.length - lhsContract.length];
}

function contractDomain(node: Node): IterationDomain {
  const shape = dims(node);
  const extents = contractExtents(node);
  const batch = makeAxis('batch', extents.batch);
  const m = makeAxis('m', extents.m);
  const n = makeAxis('n', extents.n);
  const axes = { batch, m, n, k: makeAxis('k', extents.k) };
  if (node.op === 'dot') {
    const [batchRank, mRank] = dotRanks(node);
    const at = [
      ...delinearize(batch.atom, shape.slice(0, batchRank)),
      ...delinearize(m.atom, shape.slice(batchRank, batchRank + mRank)),
      ...delinearize(n.atom, shape.slice(batchRank + mRank)),
    ];
    return { axes, at };
  }
  const groups = node.op === 'conv' ? node.attrs.groups : 1;
  const [image, group] = delinearize(batch.atom, [shape[0]!, groups]);
  const channel = linearize([group!, m.atom], [groups, extents.m]);
  return { axes, at: [image!, channel, ...delinearize(n.atom, shape.slice(2))] };
}

/** All values that are scattered, by flat index; `at` is their index in the source. */
export function permuteScatterDomain(node: Node): IterationDomain {
  const axis = makeAxis('i', sizeOf(dims(node)));
  return { axes: { axis }, at: delinearize(axis.atom, dims(node)) };
}

/** Whether a node is broadcast along an axis. */
export function spreadAlong(node: Node, axis: number): boolean {
  if (node.shape[axis] === 1) return true;
  if (node.op !== 'broadcast') return false;
  const from = dims(node.inputs[0]!);
  const at = axis - (node.shape.length - from.length);
  return at < 0 || from[at] === 1;
}

/**
 * Fusion roots that share loops with others, or that are computed inside of others' loops; `fft` is taken
 * apart before.
 */
type WithoutOwn = 'fft' | 'reduce' | 'argReduce' | 'gather' | 'dequantize' | 'permuteScatter' | 'iterate';

/** The loops that a fusion root opens. */
export interface OwnLoops {
  readonly kind: FusionRootKind;
  readonly domain: IterationDomain;
}

/** Fusion roots of whose loops a chunk knows. */
export type RareRoot = Extract<
  Node,
  {
    readonly op:
      | 'scan'
      | 'fftPart'
      | 'argSort'
      | 'radixRank'
      | 'scatter'
      | 'scatterAddAtomic'
      | 'jacobiRows'
      | 'completeRows'
      | 'searchSorted'
      | 'segmentReduce'
      | 'factor';
  }
>;

export const rareLoops: Slot<(node: RareRoot) => OwnLoops> = new Slot('loops of rare operations');

/** The loops of a node that none but itself can open, and that it always opens. */
export function ownLoops(node: Node): OwnLoops | undefined {
  switch (node.op) {
    case 'dot':
    case 'conv':
      return { kind: node.op, domain: contractDomain(node) };
    case 'scan':
    case 'fftPart':
    case 'argSort':
    case 'radixRank':
    case 'scatter':
    case 'scatterAddAtomic':
    case 'jacobiRows':
    case 'completeRows':
    case 'searchSorted':
    case 'segmentReduce':
    case 'factor':
      return rareLoops.value(node);
    default:
      // Another fusion root without a case is a type error here.
      node.op satisfies Exclude<Op, FusionRootOp> | WithoutOwn;
      return undefined;
  }
}

/** How many of the latest row fusion groups over one shape and axes a new reduction may join. */
export const siblings: number = 4;

/** Equal for reductions over one shape and axes. */
export function rowKey(shape: readonly number[], axes: readonly number[]): string {
  return `${shape.join(',')}/${axes.join(',')}`;
}
