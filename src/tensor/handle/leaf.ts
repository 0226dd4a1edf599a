// Leaves of recorded graphs: parameter nodes that stand for values from outside, and which nodes
// some evaluation has computed.

import type { DType } from '../../ir/dtype.ts';
import { GraphBuilder, type Node, type NodeOf } from '../../ir/graph.ts';
import type { FixedShape } from '../../ir/shape.ts';
import type { StoredValue } from '../storage/storage.ts';

const storages = new WeakMap<Node, StoredValue>();
let parameterCount = 0;

interface Typed {
  readonly dtype: DType;
  readonly shape: FixedShape;
}

/**
 * A parameter node that no other value shares, of this type; `storage` is what it stands for, where
 * that is computed.
 */
export function freshParameter({ dtype, shape }: Typed, storage?: StoredValue): Node {
  const index = parameterCount++;
  const attrs = { index, name: `t${index}`, dtype, shape };
  const node = new GraphBuilder().add('parameter', [], attrs) as NodeOf<'parameter'> as Node;
  if (storage !== undefined) bindStorage(node, storage);
  return node;
}

const examples = new WeakSet<Node>();

/** A parameter node that stands for one example of what `vmap` maps over, and never has a value. */
export function exampleParameter(type: Typed): Node {
  const node = freshParameter(type);
  examples.add(node);
  return node;
}

/** Whether the node stands for one example of what `vmap` maps over. */
export function isExample(node: Node): boolean {
  return examples.has(node);
}

/** The computed value of a node, if some evaluation materialised it. */
export function storageOf(node: Node): StoredValue | undefined {
  return storages.get(node);
}

/** Records that `node` has been computed. */
export function bindStorage(node: Node, storage: StoredValue): void {
  storages.set(node, storage);
}
