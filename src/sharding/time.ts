// Modelled time of the ways to split an op, by which they are compared: of the collectives that bring values there, and of
// the arithmetic; and of the values of a program. The figures and the formulas of collectives are those of cost.ts.

import type { Mesh } from '../ir/mesh/mesh.ts';
import type { CollectiveUse } from './use.ts';
import { dims, nodeBytes, type Node } from '../ir/graph.ts';
import { facts, isCollective, isView, type Attrs } from '../ir/ops.ts';
import { sizeOf } from '../ir/shape.ts';
import { planningMachine, timeOfCollective, timeOverAxes, type ClusterModel } from './cost.ts';
import type { PlannedMove } from './reshard.ts';

/** Seconds that moves take, one after the other. */
export function timeOfMoves(moves: readonly PlannedMove[]): number {
  return moves.reduce(
    (sum, { move, ranks, whole }) =>
      sum + (move.kind === 'slice' ? 0 : timeOfCollective(move.kind, ranks, whole, planningMachine.link)),
    0,
  );
}

/** A collective with its modelled time. */
export interface TimedCollective extends CollectiveUse {
  /** Seconds. */
  readonly time: number;
}

/** Collectives over a mesh with the seconds that each takes in a cluster. */
export function timedUses(
  mesh: Mesh,
  uses: readonly CollectiveUse[],
  cluster: ClusterModel,
): readonly TimedCollective[] {
  return uses.map((use) => ({ ...use, time: timeOverAxes(use.kind, mesh, use.over, use.whole, cluster) }));
}

/** Seconds that one process takes for all of an op. */
export function timeOfNode(node: Node): number {
  if (isView(node.op) || facts(node.op).class === 'marker') return 0;
  const bytes = [node, ...node.inputs].reduce((sum, value) => sum + nodeBytes(value), 0);
  return Math.max(flopsOf(node) / planningMachine.arithmetic, bytes / planningMachine.memory);
}

/** Operations of all of an op. */
export function flopsOf(node: Node): number {
  const results = sizeOf(dims(node));
  const [first] = node.inputs;
  switch (node.op) {
    case 'dot': {
      const { lhsContract } = node.attrs as Attrs<'dot'>;
      return 2 * results * lhsContract.reduce((product, axis) => product * dims(first!)[axis]!, 1);
    }
    case 'conv':
      return 2 * results * (sizeOf(dims(node.inputs[1]!)) / Math.max(1, dims(node.inputs[1]!)[0]!));
    case 'reduce':
    case 'argReduce':
      return sizeOf(dims(first!));
    default:
      return results * facts(node.op).flops;
  }
}

/**
 * When a node of one process's program can be computed, and when it has to be: by the modelled times of arithmetic, with collectives beside
 * it. Seconds since the start of the program.
 */
export interface NodeTimes {
  /** All inputs are there. */
  readonly ready: number;
  /** What follows is not later if the node begins then. */
  readonly latest: number;
}

/** Times of the nodes, in an order with inputs before users. */
export function nodeTimes(order: readonly Node[]): ReadonlyMap<Node, NodeTimes> {
  const ready = new Map<Node, number>();
  const ends = new Map<Node, number>();
  for (const node of order) {
    const start = node.inputs.reduce((last, input) => Math.max(last, ends.get(input)!), 0);
    ready.set(node, start);
    ends.set(node, start + arithmeticOf(node));
  }
  const end = Array.from(ends.values()).reduce((last, time) => Math.max(last, time), 0);
  const latest = new Map<Node, number>();
  for (const node of order.toReversed()) {
    // The end of the program, or the earliest that a user has to begin.
    const start = (latest.get(node) ?? end) - arithmeticOf(node);
    latest.set(node, start);
    for (const input of node.inputs) latest.set(input, Math.min(latest.get(input) ?? end, start));
  }
  return new Map(order.map((node) => [node, { ready: ready.get(node)!, latest: latest.get(node)! }]));
}

/** Seconds of a node's arithmetic; none of a collective. */
export function arithmeticOf(node: Node): number {
  return node.op === 'parameter' || isCollective(node.op) ? 0 : timeOfNode(node);
}
