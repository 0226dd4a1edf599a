// Batches a loop that ends for each example by itself. The loop continues as long as any example does, and
// finished examples keep their values. In the batch each example has a guard of its own; one more carry
// says whether any example is left, and guards the whole loop.

import { broadcast, cast, fullLike, reduce, reshape, where } from '../../ir/build.ts';
import { Parameters } from '../../ir/control/parameters.ts';
import { dims, GraphBuilder, rewrite, type Graph, type Node } from '../../ir/graph.ts';

/** Whether any of these guards (i32 [batch]) is not 0, as i32. */
export function anyGuard(b: GraphBuilder, guards: Node): Node {
  return reduce(b, 'max', cast(b, flags(b, guards), 'i32'), [0]);
}

function flags(b: GraphBuilder, guards: Node): Node {
  return cast(b, guards, 'bool');
}

/**
 * The region of a loop whose carries all lead with the batch, with the common guard as its first
 * carry; `guard` is the place of the guards of examples. Slices of examples that are finished are
 * zeros.
 */
export function guardedRegion({ parameters, outputs }: Graph, carries: number, guard: number): Graph {
  const b = new GraphBuilder();
  const own = new Parameters(b);
  const [count, ...rest] = parameters as readonly Node[];
  const inside = new Map<Node, Node>([[count!, own.like(count!, 'count')]]);
  own.add('any', 'i32', []);
  for (const node of rest) inside.set(node, own.like(node, `p${own.list.length}`));
  const made = rewrite({ parameters: [], outputs }, (node) => inside.get(node), b).outputs;
  const before = rest.slice(0, carries).map((node) => inside.get(node)!);
  const going = flags(b, before[guard]!);
  const next = made.map((node, i) => {
    const shape = dims(node);
    const column = reshape(b, going, [shape[0]!, ...shape.slice(1).map(() => 1)]);
    const old = i === guard || i >= carries ? fullLike(b, node, 0) : before[i]!;
    return where(b, broadcast(b, column, shape), node, old);
  });
  return { parameters: own.list, outputs: [anyGuard(b, next[guard]!), ...next] };
}
