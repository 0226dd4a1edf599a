// Chooses how a scatter runs, by the numbers of updates and slots. No way needs atomics, and all fold in a
// fixed order. A modelled time decides, from sizes and target alone.
//
// - direct: one kernel, whose invocations read all updates of a line for a range of slots. Best for few
// updates.
//
// - chunked: the updates of a line are cut into chunks, each is scattered into slots of its own, and the
// chunks are folded in order. Best for many updates of few slots. The tree depends on sizes only.
//
// - sorted: updates are sorted by slot (stable), so each slot has its updates in one run and folds them in
// their order. One sort serves all columns of an embedding.

import { binary, broadcast, cast, full, permute, reduce, reshape } from '../../ir/build.ts';
import { dtypeBytes } from '../../ir/dtype.ts';
import { dims, rewrite, type Graph, type GraphBuilder, type Node, type NodeOf } from '../../ir/graph.ts';
import type { Monoid, ScatterMode } from '../../ir/ops.ts';
import { combineMonoid } from '../../ir/interpret/scalar.ts';
import { sameShape, sizeOf } from '../../ir/shape.ts';
import { spreadAlong } from '../fusion/domain.ts';
import { orderOfKeys, sortKernels } from './sort.ts';
import { invocationsToFill } from '../machine.ts';
import type { Target } from '../target.ts';

/** Splits scatters, except those that are fast in one kernel. */
export function splitScatters(graph: Graph, target: Target): Graph {
  return rewrite(graph, (node, inputs, b) => {
    if (node.op === 'scatterAddAtomic') return orderedWhereCheap(node, inputs, b, target);
    if (node.op !== 'scatter' || sizeOf(dims(node as Node)) === 0) return undefined;
    const { mode } = node.attrs;
    const sizes = sizesOf(node);
    const chunks = mode === 'set' ? 0 : chunkCount(sizes, target);
    const direct = directTime(sizes, target);
    const chunked = chunks < 2 ? Infinity : chunkedTime(sizes, chunks, target);
    // One update a line: in place, it is all that is moved.
    if (sizes.updates <= 1) return undefined;
    const sorted = sortedTime(sizes, target);
    if (direct <= worthwhile * Math.min(chunked, sorted)) return undefined;
    return chunked <= worthwhile * sorted
      ? chunkedScatter(node, inputs, chunks, mode as Exclude<ScatterMode, 'set'>, b)
      : sortedScatter(node, inputs, b, target);
  });
}

/**
 * An atomic scatter-add with so few updates that one ordered kernel, which needs no zeroed result,
 * is cheaper.
 */
function orderedWhereCheap(
  node: NodeOf<'scatterAddAtomic'>,
  inputs: readonly Node[],
  b: GraphBuilder,
  target: Target,
): Node | undefined {
  const { axis } = node.attrs;
  const none = full(b, dims(node as Node), 0, node.dtype);
  const scatter = b.add('scatter', [none, ...inputs], { axis, mode: 'add' });
  const { slots, updates, lines, bytes } = sizesOf(scatter);
  const moved = slots * lines * bytes + scattered * updates * lines * (4 + 2 * bytes);
  const unordered = 2 * target.launch + moved / target.bandwidth;
  return directTime(sizesOf(scatter), target) <= unordered ? (scatter as Node) : undefined;
}

/**
 * Slots and updates of a line, lines (all other elements of an index), and how many of those have
 * their own indices.
 */
interface Sizes {
  readonly slots: number;
  readonly updates: number;
  readonly lines: number;
  readonly sorts: number;
  readonly bytes: number;
}

function sizesOf(node: NodeOf<'scatter'>): Sizes {
  const { axis } = node.attrs;
  const [operand, indices] = node.inputs as readonly [Node, Node, Node];
  const rest = dims(operand).filter((_, i) => i !== axis);
  const own = dims(operand).filter((_, i) => i !== axis && !spreadAlong(indices, i));
  return {
    slots: dims(operand)[axis]!,
    updates: dims(indices)[axis]!,
    lines: sizeOf(rest),
    sorts: sizeOf(own),
    bytes: dtypeBytes(node.dtype),
  };
}

/** Ranges that the slots of a line are cut into, so that there is work for the machine. */
export function slotRanges(slots: number, lines: number, target: Target): number {
  return Math.max(
    1,
    Math.min(slots, 256, Math.ceil(Math.min(invocationsToFill(target), mostWalkers) / lines)),
  );
}

/** Several kernels must be modelled as this many times faster, because the model is rough. */
const worthwhile = 2;
/** Invocations that walk lines at a time, at most: each reads all updates of its line. */
const mostWalkers = 4096;
/** Elements touched one by one cost this many times their bytes. */
const scattered = 3;

function directTime({ slots, updates, lines, bytes }: Sizes, target: Target): number {
  const ranges = slotRanges(slots, lines, target);
  const touched = 2 * slots * lines * bytes + updates * lines * (4 * ranges + 3 * bytes);
  const steps = slots / ranges + updates;
  return target.launch + Math.max((scattered * touched) / target.bandwidth, steps * target.step);
}

function chunkCount({ slots, updates, lines }: Sizes, target: Target): number {
  // Partial results stay below the updates in number.
  return Math.min(
    Math.ceil(Math.min(invocationsToFill(target), mostWalkers) / lines),
    Math.floor(updates / slots),
  );
}

function chunkedTime(sizes: Sizes, chunks: number, target: Target): number {
  const { slots, updates, lines, bytes } = sizes;
  const partial = { ...sizes, lines: lines * chunks, updates: updates / chunks };
  return (
    directTime(partial, target) + 2 * target.launch + (slots * lines * chunks * bytes) / target.bandwidth
  );
}

function sortedTime({ slots, updates, lines, sorts, bytes }: Sizes, target: Target): number {
  const bits = bitsFor(slots);
  const { kernels, traffic } = sortKernels(sorts, updates, bits, target);
  const search = sorts * slots * Math.log2(updates + 1) * 4;
  const fold = lines * (2 * slots * bytes + updates * (4 + scattered * bytes));
  const steps = (updates / slots) * target.step;
  return (kernels + 3) * target.launch + (traffic + search + fold) / target.bandwidth + steps;
}

/** Bits of a slot's number, and of the number after the last, which means a place outside. */
function bitsFor(slots: number): number {
  return Math.max(1, Math.ceil(Math.log2(slots + 1)));
}

const monoids: Readonly<Record<Exclude<ScatterMode, 'set'>, Monoid>> = {
  add: 'sum',
  mul: 'prod',
  min: 'min',
  max: 'max',
};

function chunkedScatter(
  node: NodeOf<'scatter'>,
  inputs: readonly Node[],
  chunks: number,
  mode: Exclude<ScatterMode, 'set'>,
  b: GraphBuilder,
): Node {
  const [operand, indices, updates] = inputs as readonly [Node, Node, Node];
  const { axis } = node.attrs;
  const length = Math.ceil(dims(indices)[axis]! / chunks);
  const split = (x: Node, outside: number): Node => {
    const shape = dims(x);
    const padded = padEnd(b, x, axis, chunks * length - shape[axis]!, outside);
    return reshape(b, padded, shape.toSpliced(axis, 1, chunks, length));
  };
  const monoid = monoids[mode];
  const { identity } = combineMonoid(monoid, node.dtype);
  const shape = dims(indices).with(axis, dims(operand)[axis]!).toSpliced(axis, 0, chunks);
  const none = full(b, shape, identity, node.dtype);
  const parts = b.add('scatter', [none, split(indices, dims(operand)[axis]!), split(updates, 0)], {
    axis: axis + 1,
    mode,
  }) as Node;
  const total = reduce(b, monoid, parts, [axis]);
  return binary(b, mode, operand, growTo(b, total, dims(operand), Number(identity)));
}

function sortedScatter(
  node: NodeOf<'scatter'>,
  inputs: readonly Node[],
  b: GraphBuilder,
  target: Target,
): Node {
  const [operand, indices, updates] = inputs as readonly [Node, Node, Node];
  const { axis, mode } = node.attrs;
  const shape = dims(operand);
  const slots = shape[axis]!;
  // Columns that share their indices are sorted once.
  const own = dims(indices).map((dim, i) => (i !== axis && spreadAlong(indices, i) ? 1 : dim));
  const core = sameShape(own, indices.shape) ? indices : unspread(b, indices, own);
  const others = own.flatMap((_, i) => (i === axis ? [] : [i]));
  const lines = sizeOf(others.map((i) => own[i]!));
  const lined = reshape(b, permute(b, core, [...others, axis]), [lines, own[axis]!]);
  const unsigned =
    lined.dtype === 'u32' ? lined : (b.add('bitcast', [cast(b, lined, 'i32')], { dtype: 'u32' }) as Node);
  // Places outside, negative ones too, come last.
  const keys = binary(b, 'min', unsigned, slots);
  const order = orderOfKeys(b, keys, bitsFor(slots), target);
  const sorted = b.add('gather', [keys, order], { axis: 1 }) as Node;
  const bounds = b.add('iota', [], { shape: [lines, slots + 1], axis: 1, dtype: 'u32' }) as Node;
  const starts = b.add('searchSorted', [sorted, bounds], { right: false }) as Node;
  const back = (x: Node): Node => {
    const length = dims(x)[1]!;
    const moved = reshape(b, x, [...others.map((i) => own[i]!), length]);
    return permute(
      b,
      moved,
      own.map((_, i) => (i === axis ? others.length : others.indexOf(i))),
    );
  };
  // Lines of the operand that no index covers have empty segments.
  const spread = dims(indices).with(axis, slots + 1);
  const everywhere = growTo(b, broadcast(b, back(starts), spread), shape.with(axis, slots + 1), 0);
  return b.add('segmentReduce', [operand, everywhere, broadcast(b, back(order), dims(indices)), updates], {
    axis,
    mode,
  }) as Node;
}

/** A broadcast node's input, spread to fewer sizes than the node's. */
function unspread(b: GraphBuilder, node: Node, shape: readonly number[]): Node {
  const input = node.inputs[0]!;
  const from = dims(input);
  const aligned = shape.map((_, i) => from[i - (shape.length - from.length)] ?? 1);
  return broadcast(b, reshape(b, input, aligned), shape);
}

function padEnd(b: GraphBuilder, x: Node, axis: number, count: number, value: number): Node {
  return growTo(b, x, dims(x).with(axis, dims(x)[axis]! + count), value);
}

/** x with `value` after its ends, up to a shape. */
function growTo(b: GraphBuilder, x: Node, shape: readonly number[], value: number): Node {
  if (sameShape(x.shape, shape)) return x;
  const none = shape.map(() => 0);
  const high = shape.map((dim, i) => dim - dims(x)[i]!);
  return b.add('pad', [x], { low: none, high, interior: none, value }) as Node;
}
