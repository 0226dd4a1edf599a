// Moves elementwise operations from a concatenation to its parts: f(concat(x, y)) = concat(f(x),
// f(y)). Where the parts are results of kernels with loops of their own, f becomes an epilogue of
// each, and each kernel writes its part into the buffer of the whole. No kernel then reads the
// whole only to write it again.

import { dtypeBytes } from '../../ir/dtype.ts';
import { dims, rewrite, topological, usersOf, type Graph, type Node } from '../../ir/graph.ts';
import { isElementwise, type Op } from '../../ir/ops.ts';
import { scalarOf, spread } from '../../ir/passes/pattern.ts';
import { isThroughView } from '../fusion/place.ts';

/** Operations that run in loops of their own, to which elementwise ones are an epilogue. */
const loops: ReadonlySet<Op> = new Set<Op>(['conv', 'dot', 'reduce']);

/** The most elementwise operations and views between a part and the loops that compute it. */
const reach = 64;

/**
 * Moves the only computation that reads a concatenation to its parts, if these are results of loops
 * without other readers.
 */
export function spreadOverParts(graph: Graph): Graph {
  const order = topological(graph.outputs);
  const users = usersOf(order);
  const outputs = new Set(graph.outputs);
  const moved = new Set<Node>();
  for (const node of order) {
    if (node.op !== 'concat' || dtypeBytes(node.dtype) < 4) continue;
    const areOwn = node.inputs.every(
      (part) => users.get(part)!.length === 1 && !outputs.has(part) && comesFromLoops(part),
    );
    if (areOwn) for (const each of computedOf(node as Node, users, outputs)) moved.add(each);
  }
  if (moved.size === 0) return graph;
  return rewrite(graph, (node, inputs, b) => {
    if (!moved.has(node)) return undefined;
    const whole = inputs.find((input) => input.op === 'concat');
    if (whole?.op !== 'concat') return undefined;
    const parts = whole.inputs.map((part, i) => {
      const own = inputs.map((input) =>
        input.op === 'concat' ? input.inputs[i]! : spread(b, scalarOf(input)!, dims(part)),
      );
      return b.copy(node, own);
    });
    return b.add('concat', parts, whole.attrs) as Node;
  });
}

/** Whether the value is computed element by element from the result of a loop. */
function comesFromLoops(part: Node): boolean {
  const seen = new Set([part]);
  for (const node of seen) {
    if (loops.has(node.op)) return true;
    if (seen.size > reach) return false;
    if (isElementwise(node.op) || isThroughView(node)) for (const input of node.inputs) seen.add(input);
  }
  return false;
}

/** All nodes computed only from the whole and scalars, if other nodes read just one of them. */
function computedOf(
  whole: Node,
  users: ReadonlyMap<Node, readonly Node[]>,
  outputs: ReadonlySet<Node>,
): readonly Node[] {
  const inside = new Set([whole]);
  const follows = (user: Node): boolean =>
    isElementwise(user.op) &&
    user.inputs.every((input) => inside.has(input) || scalarOf(input) !== undefined);
  const readersOf = (node: Node): readonly Node[] => users.get(node) ?? [];
  for (const node of inside) for (const user of readersOf(node)) if (follows(user)) inside.add(user);
  const read = [...inside].filter(
    (node) => outputs.has(node) || readersOf(node).some((user) => !inside.has(user)),
  );
  const [result] = read;
  const isResult = read.length === 1 && result !== whole && dtypeBytes(result!.dtype) >= 4;
  return isResult ? [...inside].slice(1) : [];
}
