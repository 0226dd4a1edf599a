// Programs over several processes. All processes have to meet in their collectives in one order, whatever target each of them
// runs, and whatever a schedule would gain by another. So every collective, and every loop that has some, gets the one before it
// as an input: an event that it waits for and does not read. The place of a process becomes a number.

import { TensorError } from '../../errors.ts';
import { partType } from '../../ir/dtype.ts';
import { broadcast, cast, constant, full, reduce, reshape, slice } from '../../ir/build.ts';
import { siblingKey } from '../../ir/control/iterate.ts';
import type { Region } from '../../ir/region.ts';
import { isCarried } from '../../ir/typing/control.ts';
import { graphOf, regionOf } from '../../ir/text/region.ts';
import {
  collectiveOf,
  dims,
  GraphBuilder,
  rewrite,
  topological,
  type Graph,
  type Node,
  type NodeOf,
} from '../../ir/graph.ts';
import { axesNamed, coordinatesOf, groupSize, parseMesh } from '../../ir/mesh/mesh.ts';
import { foldRules } from '../../ir/passes/fold.ts';
import { constantOf } from '../../ir/passes/pattern.ts';
import { rule, rulePass, type RewriteRule } from '../../ir/passes/rules.ts';
import { sizeOf, type FixedShape } from '../../ir/shape.ts';
import { combinesOnStream } from '../../runtime/program.ts';
import type { Target } from '../target.ts';

/** Whether processes meet in a node: in a collective, or in the iterations of a loop. */
export function meets(node: Node): boolean {
  if (collectiveOf(node) !== undefined) return sizeOf(dims(node)) > 0;
  return node.op === 'iterate' && iterationsMeet(node.attrs.body);
}

/** What was found of regions, which do not change: every result of a loop asks, in several passes. */
const meeting = new WeakMap<Region, boolean>();
function iterationsMeet(body: Region): boolean {
  const found = meeting.get(body) ?? topological(graphOf(body).outputs).some(meets);
  meeting.set(body, found);
  return found;
}

/** Whether elements are combined by a kernel, since the device's library does not combine them as they have to be. */
export function isCombinedByKernel(
  { op, attrs, dtype }: Node,
  { combining }: Pick<Target, 'combining'>,
): boolean {
  if (combining !== 'stream' || (op !== 'allReduce' && op !== 'reduceScatter')) return false;
  return !combinesOnStream((attrs as NodeOf<'allReduce'>['attrs']).monoid, partType(dtype));
}

/** Elements from which on each process combines a part of them, not all. */
const manyElements = 4096;

/**
 * The graph with exchanges and folds in place of collectives whose elements kernels combine. Sums go over the wire as often as by
 * rings, add up in the order of the group, and are rounded once.
 */
export function combineInKernels(graph: Graph, target: Target): Graph {
  return rewrite(graph, (node, inputs, b) => {
    if (!isCombinedByKernel(node, target) || !meets(node)) return undefined;
    const combined = node as NodeOf<'allReduce'> | NodeOf<'reduceScatter'>;
    const { monoid, mesh, over } = combined.attrs;
    const [x] = inputs as readonly [Node];
    const own = dims(combined as Node);
    const count = groupSize(axesNamed(parseMesh(mesh)!, over)!);
    /** Parts of all processes, combined. */
    const folded = (parts: Node, shape: FixedShape): Node =>
      reduce(b, monoid, reshape(b, parts, [count, ...shape]), [0]);
    const exchange = (value: Node): Node => b.add('allToAll', [value], { mesh, over }) as Node;
    if (combined.op === 'reduceScatter') return folded(exchange(x), own);
    const size = sizeOf(own);
    const flat = reshape(b, x, [size]);
    const gathered = (value: Node): Node => b.add('allGather', [value], { mesh, over }) as Node;
    if (size < manyElements) return reshape(b, folded(gathered(flat), [size]), own);
    const part = Math.ceil(size / count);
    const rest = count * part - size;
    const filled =
      rest === 0 ? flat : (b.add('concat', [flat, full(b, [rest], 0, x.dtype)], { axis: 0 }) as Node);
    const all = gathered(folded(exchange(filled), [part]));
    return reshape(b, rest === 0 ? all : slice(b, all, [0], [size]), own);
  });
}

/** The graph with an order among its collectives, which is that in which they were recorded. */
export function orderCollectives(graph: Graph): Graph {
  if (!topological(graph.outputs).some(meets)) return graph;
  let last: Node | undefined;
  /** What results of one loop wait for. */
  const events = new Map<string, Node | undefined>();
  return rewrite(graph, (node, inputs, b) => {
    if (!meets(node)) return undefined;
    if (node.op !== 'iterate') return (last = behind(b, node, inputs, last));
    const key = siblingKey(node);
    if (!events.has(key)) events.set(key, last);
    return (last = loopBehind(b, node, inputs, events.get(key)));
  });
}

function behind(b: GraphBuilder, node: Node, [x]: readonly Node[], event: Node | undefined): Node {
  const operand = isNumber(x!) ? (b.add('barrier', [x!, x!], {}) as Node) : x!;
  const inputs = event === undefined ? [operand] : [operand, event];
  return b.add(node.op as 'allGather', inputs, node.attrs as NodeOf<'allGather'>['attrs']) as Node;
}

/** Numbers of a run lie in no memory that a collective could read: a kernel writes them. */
function isNumber(x: Node): boolean {
  return x.op === 'parameter' && x.shape.length === 0;
}

/** The loop, with an invariant more that its iterations do not read. */
function loopBehind(
  b: GraphBuilder,
  node: NodeOf<'iterate'>,
  inputs: readonly Node[],
  event: Node | undefined,
): Node {
  if (event === undefined) return b.copy(node as Node, inputs);
  const held = isCarried(event.dtype) ? event : cast(b, event, 'i32');
  const inside = new GraphBuilder();
  const { parameters, outputs } = rewrite(graphOf(node.attrs.body), () => undefined, inside);
  const attrs = { index: parameters.length, name: 'event', dtype: held.dtype, shape: dims(held) };
  const body = regionOf({ parameters: [...parameters, inside.add('parameter', [], attrs)], outputs });
  return b.add('iterate', [...inputs, held], { ...node.attrs, body }) as Node;
}

/** What follows from the place of a process at once. */
const placed: readonly RewriteRule[] = [
  ...foldRules.filter(({ name }) => name === 'elementwise'),
  rule('gather-one', 'gather(x, spread c) = slice c of x', 'gather', (node, b) => {
    const [x, indices] = [node.inputs[0]!, node.inputs[1]!];
    const [at, { axis }] = [Number(constantOf(indices)), node.attrs];
    const whole = dims(x);
    if (!(at >= 0 && at < whole[axis]!)) return undefined;
    const start = whole.map(() => 0).with(axis, at);
    return broadcast(b, slice(b, x, start, dims(node as Node).with(axis, 1)), dims(node as Node));
  }),
];

/**
 * Places of processes as numbers, and parts of values that are at such places as slices. It comes last: what was found of
 * the graph before holds for all processes, so that all of them have the same collectives. Throws E_STATE where it is not
 * said whose the program is.
 */
export function placeRank(graph: Graph, { rank }: Pick<Target, 'rank'>): Graph {
  const numbered = rewrite(graph, (node, _, b) =>
    node.op === 'rankIndex' ? constant(b, placeOf(node, rank), 'i32') : undefined,
  );
  return rulePass('placeRank', placed)(numbered);
}

function placeOf({ attrs }: NodeOf<'rankIndex'>, rank: number | undefined): number {
  const mesh = parseMesh(attrs.mesh)!;
  if (rank === undefined) {
    const problem = `the place on the mesh ${mesh.text} is asked for, and the device has joined no processes`;
    throw new TensorError('E_STATE', 'rankIndex', problem, 'join of sinter/distributed');
  }
  if (!(Number.isInteger(rank) && rank >= 0 && rank < mesh.size))
    throw new TensorError('E_VALUE', 'rankIndex', `the mesh ${mesh.text} has no process ${rank}`);
  const own = coordinatesOf(mesh, rank);
  return axesNamed(mesh, attrs.over)!.reduce((place, { name, size }) => place * size + own.get(name)!, 0);
}
