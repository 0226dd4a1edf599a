// Nodes that stand for any value of a type while a rule is applied to it.

import { GraphBuilder, type Node } from '../ir/graph.ts';
import type { TensorType } from '../ir/infer.ts';

/** A node of its own of this type, of which nothing is known. */
export function variable({ dtype, shape }: TensorType): Node {
  return new GraphBuilder().add('parameter', [], { index: 0, name: 'any', dtype, shape }) as Node;
}
