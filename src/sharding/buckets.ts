// The collectives of a program of one process, joined and put in order. Small ones of the same processes that do not depend on each
// other become one, of their values behind each other: it takes one start instead of many, and each element is combined as before.
// PyTorch's DistributedDataParallel calls such groups of sums buckets (Li et al., PyTorch Distributed, 2020), and its FSDP
// joins the gathers of a layer (Zhao et al., PyTorch FSDP, 2023). Sums come as soon as they can. Weights are gathered one bucket
// ahead of the arithmetic that reads them, so that they take memory late, and can be on their way meanwhile.

import { CompilerBug } from '../errors.ts';
import { reshape, slice } from '../ir/build.ts';
import {
  collectiveOf,
  dims,
  GraphBuilder,
  nodeBytes,
  topological,
  type CollectiveNode,
  type Graph,
  type Node,
  type NodeOf,
} from '../ir/graph.ts';
import { axesNamed, groupSize, parseMesh, type Mesh } from '../ir/mesh/mesh.ts';
import { isView } from '../ir/ops.ts';
import { onBehalf } from '../ir/origin/origin.ts';
import { sizeOf } from '../ir/shape.ts';
import { bytesSent, clusters, planningMachine, timeOverAxes, type ClusterModel } from './cost.ts';
import { meetingBehind } from './meetings.ts';
import { arithmeticOf, nodeTimes, type NodeTimes } from './time.ts';
import type { CollectiveUse } from './use.ts';

/** A program of one process whose collectives are joined and in order. */
export interface BucketedGraph {
  readonly graph: Graph;
  /** The collectives of the graph before; those of one entry are one now. */
  readonly buckets: readonly (readonly Node[])[];
  /** What became of nodes of the graph before, recorded in the order of the program; they stayed where it has none. */
  readonly made: ReadonlyMap<Node, Node>;
}

/** Collectives that can be one. */
type Joined = NodeOf<'allReduce'> | NodeOf<'allGather'> | NodeOf<'reduceScatter'>;

/** Collectives that are one, or one alone. */
interface Bucket {
  readonly nodes: CollectiveNode[];
  bytes: number;
  /** When it is to begin, of a gather that would otherwise begin with the program. */
  start?: number;
}

/**
 * The graph with its collectives joined where the model of the cluster says that it pays, and recorded in a good order. They are
 * timed as those of `mesh`, which has the axes of theirs; of their own mesh by default.
 */
export function bucketCollectives(
  graph: Graph,
  cluster: ClusterModel = clusters.h100,
  mesh?: Mesh,
): BucketedGraph {
  const order = topological(graph.outputs);
  if (!order.some((node) => collectiveOf(node) !== undefined)) return { graph, buckets: [], made: new Map() };
  const times = nodeTimes(order);
  const limits = (node: Joined): BucketLimits => limitsOf(node, cluster, mesh);
  const buckets = bucketsOf(order, times, limits);
  delay(buckets, times);
  return recorded(graph, order, buckets);
}

/** Buckets of all collectives, filled in the order in which their values can be had, or are needed. */
function bucketsOf(
  order: readonly Node[],
  times: ReadonlyMap<Node, NodeTimes>,
  limits: (node: Joined) => BucketLimits,
): readonly Bucket[] {
  const depths = depthsOf(order);
  const open = new Map<string, Bucket>();
  const all: Bucket[] = [];
  const meetings = order.map(collectiveOf).filter((node) => node !== undefined);
  const timeOf = (node: CollectiveNode): number => {
    const { ready, latest } = times.get(node as Node)!;
    return gathersWeights(node) ? latest : ready;
  };
  for (const node of meetings.toSorted((a, b) => timeOf(a) - timeOf(b))) {
    const bytes = wholeOf(node);
    const bucket = { nodes: [node], bytes };
    if (!isJoined(node) || bytes === 0) {
      all.push(bucket);
      continue;
    }
    const { most, mostOfOne } = limits(node);
    const monoid = node.op === 'allGather' ? '' : node.attrs.monoid;
    const before = depths.get(node as Node)! - 1;
    const key = [node.op, node.attrs.mesh, node.attrs.over, monoid, node.dtype, before].join(' ');
    const known = open.get(key);
    if (bytes <= mostOfOne && known !== undefined && known.bytes + bytes <= most) {
      known.nodes.push(node);
      known.bytes += bytes;
    } else {
      all.push(bucket);
      if (bytes <= mostOfOne) open.set(key, bucket);
    }
  }
  return all;
}

function isJoined(node: CollectiveNode): node is Joined {
  return node.op === 'allReduce' || node.op === 'allGather' || node.op === 'reduceScatter';
}

/** Bytes of the whole that a collective moves. */
function wholeOf(node: CollectiveNode): number {
  return Math.max(nodeBytes(node), nodeBytes(node.inputs[0]!));
}

/** Collectives on the longest path up to and with a node: those of equal depth cannot depend on each other, whatever is joined. */
function depthsOf(order: readonly Node[]): ReadonlyMap<Node, number> {
  const depths = new Map<Node, number>();
  for (const node of order) {
    const before = node.inputs.reduce((most, input) => Math.max(most, depths.get(input)!), 0);
    depths.set(node, before + (collectiveOf(node) === undefined ? 0 : 1));
  }
  return depths;
}

/** Bytes of a bucket at most, and of one that joins it. */
interface BucketLimits {
  readonly most: number;
  readonly mostOfOne: number;
}

/**
 * Collectives wait so long for messages as one of no bytes. A value that takes longer to be read and written twice than that stays
 * alone, and a bucket ends where the wait is a fifth of its time.
 */
function limitsOf({ op, attrs }: Joined, cluster: ClusterModel, timed?: Mesh): BucketLimits {
  const own = parseMesh(attrs.mesh)!;
  const mesh = timed ?? own;
  const over = axesNamed(own, attrs.over)!.map(({ name }) => name);
  const wait = timeOverAxes(op, mesh, over, 0, cluster);
  const many = 2 ** 30;
  const byte = (timeOverAxes(op, mesh, over, many, cluster) - wait) / many;
  return { most: (4 * wait) / byte, mostOfOne: (wait * planningMachine.memory) / 4 };
}

/** Whether a value is what the program was given, in another form: it is there from the beginning. */
export function isOfWeights(value: Node): boolean {
  let from = value;
  while (
    isView(from.op) ||
    from.op === 'cast' ||
    (from.op === 'barrier' && from.inputs[0] === from.inputs[1])
  )
    from = from.inputs[0]!;
  return from.op === 'parameter';
}

/** Whether a collective gathers such a value: it could begin with the program. */
function gathersWeights({ op, inputs }: CollectiveNode): boolean {
  return op === 'allGather' && isOfWeights(inputs[0]!);
}

/** Lets gathers of weights begin when what reads those of the bucket before begins, and just before that. */
function delay(buckets: readonly Bucket[], times: ReadonlyMap<Node, NodeTimes>): void {
  const needed = (bucket: Bucket): number =>
    bucket.nodes.reduce((first, node) => Math.min(first, times.get(node as Node)!.latest), Infinity);
  const gathers = buckets
    .filter(({ nodes }) => nodes.every(gathersWeights))
    .toSorted((a, b) => needed(a) - needed(b));
  const moment = gathers.length === 0 ? 0 : 1e-6 * needed(gathers.at(-1)!);
  gathers.forEach((bucket, i) => {
    bucket.start = i === 0 ? 0 : Math.max(0, needed(gathers[i - 1]!) - moment);
  });
}

/** Records the graph in the order of its modelled times, each bucket as one collective. */
function recorded(graph: Graph, order: readonly Node[], buckets: readonly Bucket[]): BucketedGraph {
  const bucketOf = new Map(
    buckets.flatMap((bucket) => bucket.nodes.map((node) => [node as Node, bucket] as const)),
  );
  const b = new GraphBuilder();
  const made = new Map<Node, Node>();
  /** The last node that takes time: gathers wait for it that are to come later than they could. */
  let work: Node | undefined;
  for (const node of graph.parameters as readonly Node[])
    onBehalf('rewrite', node, () => made.set(node, b.copy(node, [])));
  const steps = inOrder(graph.outputs, byStart(order, bucketOf), bucketOf);
  for (const node of steps) {
    if (made.has(node)) continue;
    const bucket = bucketOf.get(node);
    onBehalf('rewrite', node, () => {
      if (bucket === undefined) {
        const inputs = node.inputs.map((input) => made.get(input)!);
        made.set(node, b.copy(node, inputs));
        if (arithmeticOf(node) > 0) work = made.get(node);
        return;
      }
      const values = bucket.nodes.map(({ inputs }) => {
        const value = made.get(inputs[0]!)!;
        const isLate = bucket.start !== undefined && bucket.start > 0 && work !== undefined;
        return isLate ? (b.add('barrier', [value, work!], {}) as Node) : value;
      });
      const results = combined(b, bucket.nodes, values);
      results.forEach((result, i) => made.set(bucket.nodes[i] as Node, result));
    });
  }
  return {
    graph: {
      ...graph,
      parameters: graph.parameters.map((node) => made.get(node as Node)! as NodeOf<'parameter'>),
      outputs: graph.outputs.map((node) => made.get(node)!),
    },
    buckets: buckets.map(({ nodes }) => nodes as readonly Node[]),
    made,
  };
}

/** The nodes by when they begin, with gathers where they are to, and collectives before what else begins then. */
function byStart(order: readonly Node[], bucketOf: ReadonlyMap<Node, Bucket>): readonly Node[] {
  const starts = new Map<Node, number>();
  const ends = new Map<Node, number>();
  for (const node of order) {
    const ready = node.inputs.reduce((last, input) => Math.max(last, ends.get(input)!), 0);
    const start = Math.max(ready, bucketOf.get(node)?.start ?? 0);
    starts.set(node, start);
    ends.set(node, start + arithmeticOf(node));
  }
  const turn = (node: Node): number => (bucketOf.has(node) ? 0 : 1);
  return order.toSorted((a, c) => starts.get(a)! - starts.get(c)! || turn(a) - turn(c));
}

/** What outputs need, in this order as far as inputs allow, with all inputs of a bucket before its first collective. */
function inOrder(
  outputs: readonly Node[],
  wanted: readonly Node[],
  bucketOf: ReadonlyMap<Node, Bucket>,
): readonly Node[] {
  const order: Node[] = [];
  const states = new Map<Node, 'open' | 'done'>();
  const stack = [...wanted, ...outputs].toReversed();
  while (stack.length > 0) {
    const node = stack.at(-1)!;
    const state = states.get(node);
    if (state === 'done') {
      stack.pop();
      continue;
    }
    const needed = bucketOf.get(node)?.nodes.flatMap(({ inputs }) => inputs) ?? node.inputs;
    const missing = needed.filter((input) => states.get(input) !== 'done');
    if (missing.length === 0) {
      states.set(node, 'done');
      order.push(node);
      stack.pop();
    } else if (state === 'open') {
      throw new CompilerBug(
        'bucketCollectives',
        `collectives that are joined wait for each other at ${node.op}`,
      );
    } else {
      states.set(node, 'open');
      stack.push(...missing.toReversed());
    }
  }
  return order;
}

/** The results of collectives of these values, as parts of one collective. */
function combined(
  b: GraphBuilder,
  nodes: readonly CollectiveNode[],
  values: readonly Node[],
): readonly Node[] {
  const [first] = nodes as readonly [CollectiveNode];
  if (nodes.length === 1) return [b.copy(first as Node, values)];
  const { op, attrs } = first as Joined;
  const count = groupSize(axesNamed(parseMesh(attrs.mesh)!, attrs.over)!);
  // What is gathered lies in rows, one for each process, and so does what is to be scattered.
  const rows = op === 'reduceScatter' ? count : 1;
  const widths = values.map((value) => sizeOf(dims(value)) / rows);
  const width = widths.reduce((sum, one) => sum + one, 0);
  const flat = values.map((value, i) => reshape(b, value, [rows, widths[i]!]));
  const joined = reshape(b, b.add('concat', flat, { axis: 1 }) as Node, [rows * width]);
  const all = b.add(op, [joined], attrs as NodeOf<'allGather'>['attrs']) as Node;
  const after = sizeOf(dims(all)) / width;
  let start = 0;
  return nodes.map((node, i) => {
    const part = slice(b, reshape(b, all, [after, width]), [0, start], [after, widths[i]!]);
    start += widths[i]!;
    return reshape(b, part, dims(node as Node));
  });
}

/** What is told of a collective: `node` is the collective, views of it, or the loop that it is in. */
export interface NodeUse {
  readonly node: Node;
  readonly use: CollectiveUse;
}

/** The uses of a graph's collectives after some have become one: in the order of the program, with its nodes. */
export function bucketedUses(
  uses: readonly NodeUse[],
  { buckets, made }: Pick<BucketedGraph, 'buckets' | 'made'>,
): readonly NodeUse[] {
  const bucketOf = new Map(buckets.flatMap((nodes) => nodes.map((node) => [node, nodes] as const)));
  const told = new Set<readonly Node[]>();
  return uses
    .flatMap(({ node, use }): readonly NodeUse[] => {
      const meeting = meetingBehind(node);
      const own = meetingBehind(made.get(meeting) ?? meeting);
      const bucket = bucketOf.get(meeting);
      if (bucket === undefined || bucket.length === 1) return [{ node: own, use }];
      if (told.has(bucket)) return [];
      told.add(bucket);
      const elements = bucket.reduce((sum, one) => sum + sizeOf(dims(one.inputs[0]!)), 0);
      const whole = bucket.reduce((sum, one) => sum + wholeOf(one as CollectiveNode), 0);
      const bytes = bytesSent(use.kind, use.ranks, whole);
      const why = `${bucket.length} together, the first: ${use.why}`;
      return [{ node: own, use: { ...use, value: `${node.dtype}[${elements}]`, whole, bytes, why } }];
    })
    .toSorted((a, b) => a.node.id - b.node.id);
}
