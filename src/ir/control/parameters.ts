// The parameters of a graph that is being made, such as the region of a loop.

import type { DType } from '../dtype.ts';
import { dims, type GraphBuilder, type Node, type NodeOf } from '../graph.ts';
import type { FixedShape } from '../shape.ts';

/** Parameters in the order in which they are added, which is that of their indices. */
export class Parameters {
  readonly list: NodeOf<'parameter'>[] = [];
  readonly #b: GraphBuilder;

  constructor(b: GraphBuilder) {
    this.#b = b;
  }

  add(name: string, dtype: DType, shape: FixedShape): Node {
    const node = this.#b.add('parameter', [], { index: this.list.length, name, dtype, shape });
    this.list.push(node);
    return node as Node;
  }

  like(node: Node, name: string): Node {
    return this.add(name, node.dtype, dims(node));
  }
}
