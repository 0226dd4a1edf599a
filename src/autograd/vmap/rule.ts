// What a batching rule is: one op on a whole batch at once. A mapped value has the batch as its
// leading axis; one that is the same for every example stays as it is.

import { broadcast, permute, reshape } from '../../ir/build.ts';
import { dims, type GraphBuilder, type Node, type NodeOf } from '../../ir/graph.ts';
import type { Op } from '../../ir/ops.ts';
import type { FixedShape } from '../../ir/shape.ts';

export interface BatchedOperand {
  readonly node: Node;
  /** The batch is the leading axis of the node; else all examples share it. */
  readonly isMapped: boolean;
}

/** What is being mapped. */
export interface Batch {
  readonly b: GraphBuilder;
  /** How many examples there are. */
  readonly size: number;
  /** Where examples are processes: what they do together. */
  readonly together?: Together | undefined;
}

/** What examples compute of each other's values, where they are processes of a mesh (test/support/ranks/on-mesh.ts). */
export interface Together {
  /** Tells it from others. */
  readonly key: string;
  /** The node for all examples; undefined where each computes it by itself. */
  onAll(batch: Batch, node: Node, operands: readonly BatchedOperand[]): Node | undefined;
}

/** Makes nodes of one example nodes of all (vmap.ts); undefined of those that are the same for all. */
export type Batching = (
  b: GraphBuilder,
  nodes: readonly Node[],
  tracers: ReadonlyMap<Node, Node>,
  size: number,
) => (Node | undefined)[];

/**
 * The result for all examples, the batch leading, from operands of which at least one is mapped.
 * `node` is the op on one example.
 */
export type BatchRule<K extends Op = Op> = (
  batch: Batch,
  node: NodeOf<K>,
  operands: readonly BatchedOperand[],
) => Node;

/** A rule of its own, or what it is made of. */
export type VmapRow<K extends Op = Op> =
  | BatchRule<K>
  /** Nothing goes in, so nothing is mapped. */
  | 'source'
  /** The op as it is, on operands that have the batch in front. */
  | 'elementwise'
  /** The op one axis further, on operands that have the batch in front. */
  | 'axis'
  /** The op on stacks whose first axis counts lines: the batch is folded into it. */
  | 'lines'
  /** Its derivative is a rule of its own, which is batched when it is asked for (custom.ts). */
  | 'custom'
  /** A region, batched as a graph of its own (loop.ts). */
  | 'loop';

/** The operand with the batch in front: one that is shared is repeated, which is a view. */
export function lead({ b, size }: Batch, { node, isMapped }: BatchedOperand): Node {
  return isMapped ? node : broadcast(b, node, [size, ...dims(node)]);
}

/** The shape of a mapped operand's one example. */
export function exampleShape({ node, isMapped }: BatchedOperand): FixedShape {
  return isMapped ? dims(node).slice(1) : dims(node);
}

/** Axis `from` moved to stand at `to`. */
export function moveAxis(b: GraphBuilder, x: Node, from: number, to: number): Node {
  const rest = [...dims(x).keys()].filter((axis) => axis !== from);
  return permute(b, x, rest.toSpliced(to, 0, from));
}

/** The leading axis folded into axis `axis` of one example, before its own elements. */
export function foldInto(b: GraphBuilder, x: Node, axis: number): Node {
  const [size, ...example] = dims(x) as [number, ...number[]];
  return reshape(b, moveAxis(b, x, 0, axis), example.with(axis, size * example[axis]!));
}

/** What `foldInto` folded, in front again; the axis has the length that it has in the result `of` one example. */
export function unfoldFrom(b: GraphBuilder, x: Node, axis: number, size: number, of: Node): Node {
  const apart = dims(x).toSpliced(axis, 1, size, dims(of)[axis]!);
  return moveAxis(b, reshape(b, x, apart), axis, 0);
}
