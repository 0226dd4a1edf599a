// Softmax of few, long rows. A row belongs to one workgroup, and a workgroup alone moves little of what the
// memory of a GPU can: one row of a vocabulary leaves all multiprocessors but one idle. Where the time
// modelled is less, a row becomes chunks. One kernel finds each chunk's maximum m and its sum s of e^(x − m),
// a small one puts them together (Milakov and Gimelshein, 2018), and what uses them is an ordinary map.

import { binary, broadcast, fullLike, reduce, reshape, unary, where } from '../../ir/build.ts';
import {
  dims,
  rewrite,
  topological,
  usersOf,
  type Graph,
  type GraphBuilder,
  type Node,
  type NodeOf,
} from '../../ir/graph.ts';
import { dtypeBytes } from '../../ir/dtype.ts';
import type { Op } from '../../ir/ops.ts';
import { sameShape, sizeOf } from '../../ir/shape.ts';
import type { Target } from '../target.ts';
import { chunkCount, padEnd } from './split.ts';

/** How many times its share of the bandwidth a multiprocessor moves when others are idle. */
const alone = 2;
/** How many times faster the kernels must be. */
const gain = 1.5;
/** Elements that a chunk should have at least. */
const leastChunk = 512;

/** Cuts the rows of softmaxes into chunks where that is faster. */
export function splitSoftmaxes(graph: Graph, target: Target): Graph {
  const order = topological(graph.outputs);
  const users = usersOf(order);
  /** The sum of e^(x − max x) over rows, by the node of the maximum; and by the node of e^(x − max x). */
  const byMaximum = new Map<Node, Node>();
  const byWeights = new Map<Node, Node>();
  for (const node of order) {
    const max = maximumOf(node);
    if (max === undefined || !isFaster(max, target) || isMultiplied(node.inputs[0]!, users)) continue;
    byMaximum.set(max as Node, node);
    byWeights.set(node.inputs[0]!, node);
  }
  if (byMaximum.size === 0) return graph;
  /** Sums of the new graph, by those of the graph; a maximum comes before its sum. */
  const made = new Map<Node, Node>();
  return rewrite(graph, (node, inputs, b) => {
    const sum = byMaximum.get(node);
    if (sum !== undefined) {
      const { top, total } = inChunks(node as NodeOf<'reduce'>, inputs[0]!, b, target);
      made.set(sum, total);
      return top;
    }
    if (byWeights.has(node)) return powerOfTwo(b, inputs[0]!);
    return made.get(node) ?? multiplied(node, inputs, b);
  });
  /** Weights divided by their sum, which is at least 1: multiplied by what the row has in common. */
  function multiplied(node: Node, inputs: readonly Node[], b: GraphBuilder): Node | undefined {
    const sum = node.op === 'div' ? byWeights.get(node.inputs[0]!) : undefined;
    const total = sum && made.get(sum);
    const spread = sum && rowValue(node.inputs[1]!, sum, dims(node));
    if (total === undefined || spread === undefined) return undefined;
    return binary(b, 'mul', inputs[0]!, spread(b, unary(b, 'recip', total)));
  }
}

/** The maximum that a sum of e^(x − max x) over whole rows belongs to. */
function maximumOf(node: Node): NodeOf<'reduce'> | undefined {
  if (node.op !== 'reduce' || node.dtype !== 'f32') return undefined;
  const sum = node as NodeOf<'reduce'>;
  const exp = sum.inputs[0] as Node;
  if (sum.attrs.monoid !== 'sum' || exp.op !== 'exp') return undefined;
  const below = exp.inputs[0]!;
  if (below.op !== 'sub') return undefined;
  const [x, centre] = below.inputs as readonly [Node, Node];
  const { axes } = sum.attrs;
  const rank = x.shape.length;
  if (!axes.every((axis, i) => axis === rank - axes.length + i)) return undefined;
  let max = centre;
  while (max.op === 'broadcast' || max.op === 'reshape') max = max.inputs[0]!;
  if (max.op !== 'reduce' || max.inputs[0] !== x) return undefined;
  const { attrs } = max as NodeOf<'reduce'>;
  if (attrs.monoid !== 'max' || !sameShape(attrs.axes, axes)) return undefined;
  return rowValue(centre, max, dims(x)) === undefined ? undefined : (max as NodeOf<'reduce'>);
}

/** Whether weights go into a product, as those of attention do, which has kernels of its own for long rows. */
function isMultiplied(weights: Node, users: ReadonlyMap<Node, readonly Node[]>): boolean {
  const size = sizeOf(dims(weights));
  const seen = new Set<Node>();
  const visit = (node: Node): boolean => {
    if (seen.has(node)) return false;
    seen.add(node);
    const of = users.get(node) ?? [];
    return of.some((user) => user.op === 'dot' || (sizeOf(dims(user)) === size && visit(user)));
  };
  return visit(weights);
}

/**
 * How `view` spreads the value of each row over the row, in a way that can be repeated with other
 * values of rows; undefined where it does something else. Rows lie along the last axes of `shape`.
 */
function rowValue(
  view: Node,
  value: Node,
  shape: readonly number[],
): ((b: GraphBuilder, other: Node) => Node) | undefined {
  const rows = dims(value);
  const kept = shape.map((size, axis) => (axis < rows.length ? size : 1));
  // One value has one way to be everywhere; several are first each in its row.
  const isOne = sizeOf(rows) === 1;
  const repeating: readonly Op[] = isOne ? ['broadcast', 'reshape'] : ['broadcast'];
  let node = view;
  while (repeating.includes(node.op)) node = node.inputs[0]!;
  const isPlaced = isOne || sameShape(dims(node), kept);
  while (node.op === 'reshape') node = node.inputs[0]!;
  if (!isPlaced || node !== value || !sameShape(dims(view), shape)) return undefined;
  return (b, other) => broadcast(b, reshape(b, other, kept), shape);
}

/**
 * Whether three kernels that use the whole machine are faster than one that has a workgroup for each
 * row. The one reads and writes a row once, the three read it twice.
 */
function isFaster(max: NodeOf<'reduce'>, { bandwidth, cores, launch }: Target): boolean {
  const x = max.inputs[0] as Node;
  const rows = sizeOf(dims(max as Node));
  if (rows === 0) return false;
  const bytes = sizeOf(dims(x)) * dtypeBytes(x.dtype);
  const busy = Math.min(1, (alone * rows) / cores.count);
  const one = launch + (2 * bytes) / (bandwidth * busy);
  const three = 3 * launch + (3 * bytes) / bandwidth;
  return sizeOf(dims(x)) / rows >= 2 * leastChunk && one > gain * three;
}

/** The maximum of each row, and its sum of e^(x − max x), from those of its chunks. */
function inChunks(
  max: NodeOf<'reduce'>,
  x: Node,
  b: GraphBuilder,
  { cores }: Target,
): { readonly top: Node; readonly total: Node } {
  const shape = dims(max as Node);
  const rows = sizeOf(shape);
  const row = sizeOf(dims(x)) / rows;
  const most = Math.min(Math.ceil((2 * cores.count) / rows), Math.floor(row / leastChunk));
  const chunks = chunkCount(row, most, most);
  const length = row % chunks === 0 ? row / chunks : 4 * Math.ceil(row / chunks / 4);
  const padded = padEnd(b, reshape(b, x, [rows, row]), 1, chunks * length - row, 'max');
  const pieces = reshape(b, padded, [rows, chunks, length]);
  const tops = reduce(b, 'max', pieces, [2]);
  // A chunk of −∞ alone adds nothing: exponentials around 0 are 0 there.
  const isNone = binary(b, 'eq', tops, fullLike(b, tops, -Infinity));
  const around = where(b, isNone, fullLike(b, tops, 0), tops);
  const below = binary(b, 'sub', pieces, broadcast(b, reshape(b, around, [rows, chunks, 1]), dims(pieces)));
  const sums = reduce(b, 'sum', powerOfTwo(b, below), [2]);
  const top = reduce(b, 'max', tops, [1]);
  const lower = binary(b, 'sub', tops, broadcast(b, reshape(b, top, [rows, 1]), [rows, chunks]));
  const total = reduce(b, 'sum', binary(b, 'mul', sums, powerOfTwo(b, lower)), [1]);
  return { top: reshape(b, top, shape), total: reshape(b, total, shape) };
}

/** e^x for x ≤ 0 as 2^(x·log₂ e), as row kernels compute it too. */
function powerOfTwo(b: GraphBuilder, x: Node): Node {
  return unary(b, 'exp2', binary(b, 'mul', x, fullLike(b, x, Math.LOG2E)));
}
