// Small sums are added up together: allReduces of the same processes, monoid and dtype that do not depend on each other become
// one, of their values behind each other. It takes one start instead of many, and each element is added up as before. PyTorch's
// DistributedDataParallel calls such groups buckets (Li et al., PyTorch Distributed, 2020).

import { CompilerBug } from '../errors.ts';
import { reshape, slice } from '../ir/build.ts';
import { dtypeBytes } from '../ir/dtype.ts';
import {
  dims,
  GraphBuilder,
  nodeBytes,
  topological,
  type Graph,
  type Node,
  type NodeOf,
} from '../ir/graph.ts';
import { isCollective } from '../ir/ops.ts';
import { onBehalf } from '../ir/origin/origin.ts';
import { sizeOf } from '../ir/shape.ts';
import { bytesSent, planningMachine } from './cost.ts';
import type { CollectiveUse } from './use.ts';

/** Of a larger bucket a start is less than a fiftieth of the time, which is that of twice its bytes. */
const mostBytes = 25 * planningMachine.link.start * planningMachine.link.bandwidth;

/** Values of more bytes take longer to be read and written twice than a start. */
const mostOfOne = (planningMachine.link.start * planningMachine.memory) / 4;

/** A graph whose small sums are added up together. */
export interface BucketedGraph {
  readonly graph: Graph;
  /** The allReduces of the graph before that became one, by bucket. */
  readonly buckets: readonly (readonly Node[])[];
  /** What became of nodes of the graph before; they stayed where it has none. */
  readonly made: ReadonlyMap<Node, Node>;
}

/** The graph with its small sums in buckets, where the model says that it pays. */
export function bucketSums(graph: Graph): BucketedGraph {
  const order = topological(graph.outputs);
  const buckets = bucketsOf(order);
  if (buckets.length === 0) return { graph, buckets, made: new Map() };
  const bucketOf = new Map(buckets.flatMap((bucket) => bucket.map((node) => [node, bucket] as const)));
  const b = new GraphBuilder();
  const made = new Map<Node, Node>();
  for (const node of graph.parameters as readonly Node[])
    onBehalf('rewrite', node, () => made.set(node, b.copy(node, [])));
  for (const node of inOrder(graph.outputs, bucketOf)) {
    if (made.has(node)) continue;
    const bucket = (bucketOf.get(node) ?? []) as readonly NodeOf<'allReduce'>[];
    onBehalf('rewrite', node, () => {
      if (bucket.length === 0) {
        const inputs = node.inputs.map((input) => made.get(input)!);
        made.set(node, b.copy(node, inputs));
      } else {
        const values = bucket.map(({ inputs }) => made.get(inputs[0]!)!);
        together(b, bucket[0]!.attrs, values).forEach((sum, i) => made.set(bucket[i] as Node, sum));
      }
    });
  }
  return {
    graph: {
      ...graph,
      parameters: graph.parameters.map((node) => made.get(node as Node)! as NodeOf<'parameter'>),
      outputs: graph.outputs.map((node) => made.get(node)!),
    },
    buckets,
    made,
  };
}

/** Buckets of two sums and more, filled in the order of the nodes. */
function bucketsOf(order: readonly Node[]): readonly (readonly Node[])[] {
  /** Collectives on the longest path up to and with a node: those of equal depth cannot depend on each other, whatever is joined. */
  const depths = new Map<Node, number>();
  const open = new Map<string, { readonly nodes: Node[]; bytes: number }>();
  const all: Node[][] = [];
  for (const node of order) {
    const before = node.inputs.reduce((most, input) => Math.max(most, depths.get(input)!), 0);
    const isMeeting = isCollective(node.op);
    depths.set(node, before + (isMeeting ? 1 : 0));
    const bytes = nodeBytes(node);
    if (node.op !== 'allReduce' || bytes === 0 || bytes > mostOfOne) continue;
    const { mesh, over, monoid } = (node as NodeOf<'allReduce'>).attrs;
    const key = [mesh, over, monoid, node.dtype, before].join(' ');
    const bucket = open.get(key);
    if (bucket !== undefined && bucket.bytes + bytes <= mostBytes) {
      bucket.nodes.push(node);
      bucket.bytes += bytes;
    } else {
      const nodes = [node];
      all.push(nodes);
      open.set(key, { nodes, bytes });
    }
  }
  return all.filter(({ length }) => length > 1);
}

/** What outputs need, with all inputs of a bucket before its first sum. */
function inOrder(outputs: readonly Node[], bucketOf: ReadonlyMap<Node, readonly Node[]>): readonly Node[] {
  const order: Node[] = [];
  const states = new Map<Node, 'open' | 'done'>();
  const stack = outputs.toReversed();
  while (stack.length > 0) {
    const node = stack.at(-1)!;
    const state = states.get(node);
    if (state === 'done') {
      stack.pop();
      continue;
    }
    const needed = bucketOf.get(node)?.flatMap(({ inputs }) => inputs) ?? node.inputs;
    const missing = needed.filter((input) => states.get(input) !== 'done');
    if (missing.length === 0) {
      states.set(node, 'done');
      order.push(node);
      stack.pop();
    } else if (state === 'open') {
      throw new CompilerBug('bucketSums', `sums that are joined wait for each other at ${node.op}`);
    } else {
      states.set(node, 'open');
      stack.push(...missing.toReversed());
    }
  }
  return order;
}

/** The sums of values, as parts of one. */
function together(
  b: GraphBuilder,
  attrs: NodeOf<'allReduce'>['attrs'],
  values: readonly Node[],
): readonly Node[] {
  const flat = values.map((value) => reshape(b, value, [sizeOf(dims(value))]));
  const joined = b.add('concat', flat, { axis: 0 }) as Node;
  const sum = b.add('allReduce', [joined], attrs) as Node;
  let start = 0;
  return values.map((value) => {
    const size = sizeOf(dims(value));
    const part = slice(b, sum, [start], [size]);
    start += size;
    return reshape(b, part, dims(value));
  });
}

/** What is told of a collective, with the node that it leads to: of a sum its own. */
export interface NodeUse {
  readonly node: Node;
  readonly use: CollectiveUse;
}

/** The uses of a graph's collectives after some have become one, with nodes of the graph that has them. */
export function bucketedUses(
  uses: readonly NodeUse[],
  { buckets, made }: Pick<BucketedGraph, 'buckets' | 'made'>,
): readonly NodeUse[] {
  const bucketOf = new Map(buckets.flatMap((bucket) => bucket.map((node) => [node, bucket] as const)));
  const told = new Set<readonly Node[]>();
  return uses.flatMap(({ node, use }): readonly NodeUse[] => {
    const bucket = bucketOf.get(node);
    const own = made.get(node) ?? node;
    if (bucket === undefined) return [{ node: own, use }];
    if (told.has(bucket)) return [];
    told.add(bucket);
    const elements = bucket.reduce((sum, one) => sum + sizeOf(dims(one)), 0);
    const whole = elements * dtypeBytes(node.dtype);
    const bytes = bytesSent('allReduce', use.ranks, whole);
    const why = `${bucket.length} sums together, the first: ${use.why}`;
    return [{ node: own, use: { ...use, value: `${node.dtype}[${elements}]`, whole, bytes, why } }];
  });
}
