// The nodes that must be stored in memory, whichever nodes they share a kernel with.

import { isZero } from '../../ir/build.ts';
import { inputsOf } from '../../ir/control/iterate.ts';
import {
  collectiveOf,
  dims,
  topological,
  type CollectiveNode,
  type Graph,
  type Node,
  type NodeOf,
} from '../../ir/graph.ts';

/** What a loop reads from memory: all of its inputs, but for carries that begin as zeros. */
export function readsOfLoop(node: NodeOf<'iterate'>): Set<Node> {
  const { carries, stacks, invariants } = inputsOf(node);
  return new Set([...carries.filter((carry) => !isZero(carry)), ...stacks, ...invariants]);
}

/** What a collective reads from memory, which has the bytes of its input. */
export function operandOf({ inputs: [x] }: CollectiveNode): Node {
  let operand = x!;
  while (operand.op === 'reshape') operand = operand.inputs[0]!;
  return operand;
}

/** What a collective waits for: the one, or the loop, that was before it. */
export function eventOf({ inputs: [, event] }: CollectiveNode): Node | undefined {
  let at = event;
  // Registers of small integers stand between.
  while (at !== undefined && collectiveOf(at) === undefined && at.op !== 'iterate') at = at.inputs[0];
  return at;
}

/**
 * The values behind a collective's kernel. The part that the one before it has gathered from is held until then, so that kernels that run
 * beside that one do not overwrite it; other operands are larger than what comes.
 */
export function readsOfCollective(node: CollectiveNode): readonly Node[] {
  const event = eventOf(node);
  const before = event?.op === 'allGather' ? [operandOf(event)] : [];
  return [...new Set([operandOf(node), ...(event === undefined ? [] : [event]), ...before])];
}

/**
 * Whether a value is a part of what was gathered with other values. It has a piece in the part of each process, so
 * the way to an element takes divisions, which products that copy tiles cannot follow.
 */
function isFromBucket(node: Node): boolean {
  if (node.op !== 'reshape') return false;
  const [part] = node.inputs;
  if (part?.op !== 'slice' || dims(part).length < 2 || dims(part)[0] === 1) return false;
  let from = part.inputs[0]!;
  while (from.op === 'reshape') from = from.inputs[0]!;
  return from.op === 'allGather';
}

/** What must lie in memory whatever reads it: outputs, what loops and collectives read, and what collectives give. */
export function boundaryOf({ outputs }: Graph, order: readonly Node[] = topological(outputs)): Set<Node> {
  const loops = order.filter((node) => node.op === 'iterate');
  const met = order.flatMap((node) => {
    const found = collectiveOf(node);
    if (found === undefined) return isFromBucket(node) ? [node] : [];
    return [node, operandOf(found)];
  });
  return new Set([...outputs, ...loops.flatMap((node) => [...readsOfLoop(node)]), ...met]);
}
