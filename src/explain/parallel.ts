// What an explanation tells of a program that processes share: how its values are laid out, and where its collectives stand among
// its kernels. The layouts are those that `partition` has given the values; nodes that passes made have that of what they stand for.

import type { CompiledGraph, Inside } from '../compile/compile.ts';
import { dims, type Node } from '../ir/graph.ts';
import { showSplit } from '../ir/mesh/split.ts';
import { isElementwise, isView } from '../ir/ops.ts';
import type { ShardLayout } from '../sharding/layout.ts';
import { communicationOf, shardingOf, type PartitionedCall, type Sharding } from '../sharding/report.ts';
import type { Origins } from './origins.ts';
import type { ExplainedAccess, ExplainedParallel } from './types.ts';

/** A call that processes share, seen from one of them. */
export interface SharedSubject {
  readonly call: PartitionedCall;
  readonly rank: number;
}

/**
 * How processes hold the values of the scheduled graph, whose nodes are given in their order. A node that a pass made for another has the layout of
 * that one where it is the same op over the same shape. Others have what follows from their inputs, or are left out.
 */
export function shardingsOf(
  { call }: SharedSubject,
  order: readonly Node[],
  origins: Origins,
): ReadonlyMap<Node, Sharding> {
  const known = new Map<Node, ShardLayout>();
  const standsFor = (node: Node): Node | undefined => origins.of(node, (at) => call.layouts.has(at)).recorded;
  for (const node of order) {
    const layout = givenLayout(node, standsFor, call.layouts) ?? layoutFrom(node, known);
    if (layout !== undefined) known.set(node, layout);
  }
  return new Map([...known].map(([node, layout]) => [node, shardingOf(call.mesh, node, layout)]));
}

/** The layout of a node that was not changed, or that stands for one by the same op. */
function givenLayout(
  node: Node,
  standsFor: (node: Node) => Node | undefined,
  layouts: PartitionedCall['layouts'],
): ShardLayout | undefined {
  const other = standsFor(node);
  if (other === undefined || other === node) return other && layouts.get(other);
  const layout = layouts.get(other)!;
  const [shape, { split }] = [dims(node), layout];
  if (other.op !== node.op || shape.join() !== dims(other).join()) return undefined;
  // A pass may have exchanged axes, which tells where they are as long or as split.
  const isClear = shape.every((size, i) =>
    shape.every((length, k) => size !== length || split[i]!.join() === split[k]!.join()),
  );
  const isAlike = node.inputs.every((input, i) => standsFor(input) === other.inputs[i]);
  return isClear || isAlike ? layout : undefined;
}

/** The layout of a node that follows from those of its inputs. */
function layoutFrom(node: Node, known: ReadonlyMap<Node, ShardLayout>): ShardLayout | undefined {
  const varying = node.inputs.filter((input) => !isConstant(input));
  const [first] = varying;
  const layout = first && known.get(first);
  if (layout === undefined) return undefined;
  const { split, pending } = layout;
  if (node.op === 'permute') return { split: node.attrs.order.map((axis) => split[axis]!), pending };
  const isLinear = node.op === 'mul' && varying.length === 1;
  if (!isElementwise(node.op) || (pending !== undefined && !isLinear)) return undefined;
  const isOne = varying.every((input) => {
    const other = known.get(input);
    return other !== undefined && other.pending === pending && showSplit(other.split) === showSplit(split);
  });
  return isOne ? layout : undefined;
}

/** A number at all places, the same on all processes. */
function isConstant(node: Node): boolean {
  return node.op === 'constant' || (isView(node.op) && node.inputs.every(isConstant));
}

/** What processes hold and send, with the steps of this one's program. */
export function describeParallel(
  { call, rank }: SharedSubject,
  { kernels }: CompiledGraph,
  inside: Inside | undefined,
  origins: Origins,
  accessOf: (node: Node) => ExplainedAccess,
): ExplainedParallel {
  const steps = (inside?.schedule.kernels ?? []).flatMap(({ body }, place) => {
    if (body.kind !== 'collective') return [];
    const node = body.node as Node;
    const { recorded } = origins.of(node, (at) => call.useOf.has(at));
    return {
      kind: body.node.op,
      ...(recorded && { collective: call.useOf.get(recorded)! }),
      after: kernels.filter((kernel) => kernel.place !== undefined && kernel.place < place).length,
      reads: accessOf(body.operand),
      writes: accessOf(node),
    };
  });
  return { ...communicationOf(call), rank, steps };
}
