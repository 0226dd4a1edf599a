// Which part of a train step a node belongs to. The derivative says of every node it makes what it
// carries a gradient through (ir/origin/origin.ts), and rewrites hand that on; the rest follows from the
// graph: what is computed from gradients is the update, and so is what only the update needs, e.g.
// the decay of an optimizer's state.

import { topological, type Node } from '../ir/graph.ts';
import type { ExplainedKernel, TrainStage } from './types.ts';

/** The stages of these nodes' graph; `isGradient` says which nodes carry a gradient. */
export function stagesOf(
  outputs: readonly Node[],
  isGradient: (node: Node) => boolean,
): ReadonlyMap<Node, TrainStage> {
  const order = topological(outputs);
  const stages = new Map<Node, TrainStage>();
  for (const node of order) {
    const follows = node.inputs.some((input) => stages.get(input) !== 'forward');
    // A constant has no place of its own: it goes with what needs it.
    const carries = node.op !== 'constant' && node.op !== 'parameter' && isGradient(node);
    stages.set(node, carries ? 'backward' : follows ? 'update' : 'forward');
  }
  const users = new Map<Node, Node[]>();
  for (const node of order) {
    for (const input of node.inputs) {
      const known = users.get(input);
      if (known === undefined) users.set(input, [node]);
      else known.push(node);
    }
  }
  for (const node of order.toReversed()) {
    const readers = users.get(node) ?? [];
    const stage = stages.get(node);
    // Gradients of several uses are added up on the way.
    if (stage === 'update' && readers.some((reader) => stages.get(reader) === 'backward'))
      stages.set(node, 'backward');
    if (stage !== 'forward' || readers.length === 0) continue;
    if (readers.every((reader) => stages.get(reader) === 'update')) stages.set(node, 'update');
  }
  return stages;
}

/**
 * The stage of a kernel: that of the work in its loops, the latest of several; what is computed
 * from their results only (an update after a reduction, say) does not make it another's. Undefined
 * for a kernel of which no nodes are known.
 */
export function stageOf(
  { prologue, body, epilogue }: Pick<ExplainedKernel, 'prologue' | 'body' | 'epilogue'>,
  stageAt: (place: number) => TrainStage | undefined,
): TrainStage | undefined {
  for (const places of [body, prologue, epilogue]) {
    const found = new Set(places.map(stageAt));
    const latest = (['update', 'backward', 'forward'] as const).find((stage) => found.has(stage));
    if (latest !== undefined) return latest;
  }
  return undefined;
}
