// The location of each node once kernels are formed: in memory, in a fusion group, which shares a kernel, or
// inline.

import type { Node, NodeOf } from '../../ir/graph.ts';
import type { Indices } from '../expression/evaluate.ts';
import type { Axis, KernelKind } from '../kernel.ts';

/** Kinds of kernels that form around one node. */
export type FusionRootKind = Exclude<KernelKind, 'batched-dispatch' | 'map'>;

/** A dot over the keys: which of its inputs holds the weights, and its other free axes. */
export interface OuterDot {
  readonly node: NodeOf<'dot'>;
  readonly side: 0 | 1;
  readonly column: Axis;
}

export interface AttentionGroup {
  readonly batch: Axis;
  readonly row: Axis;
  readonly key: Axis;
  readonly outers: readonly OuterDot[];
  /** Dots that give scores at (batch, row, key), in order. */
  readonly inners: readonly NodeOf<'dot'>[];
  /** Reductions of scores over the keys, in order. */
  readonly stages: readonly NodeOf<'reduce'>[];
  /** Products of two rows that statistics are made of, in order: one number a row, known before any key. */
  readonly rowProducts: readonly NodeOf<'dot'>[];
  /** Everything from the inner dots to the outer ones, with its indices. */
  readonly members: ReadonlyMap<Node, Indices>;
}

/** Nodes that share one kernel. */
export interface FusionGroup {
  readonly level: number;
  readonly kind: FusionRootKind;
  /** The fusion roots, in order: several reductions of rows, several products of one operand, else one. */
  readonly fusionRoots: Node[];
  readonly axes: Readonly<Record<string, Axis>>;
  /** Indices of each member node at the current point of the domain. */
  readonly members: Map<Node, Indices>;
  /** Row fusion groups: the reduced shape, the reduced axes, and the index in that shape. */
  readonly full?: {
    readonly shape: readonly number[];
    readonly axes: readonly number[];
    readonly at: Indices;
  };
  /** Attention fusion groups: the chain of operations they were opened for. */
  readonly group?: AttentionGroup;
  /**
   * Free nodes that are stored by this kernel, because it computes them at every one of their
   * elements anyway.
   */
  readonly hosted: Set<Node>;
  /** Stored nodes that members read from outside. */
  readonly reads: Set<Node>;
  /** Divisions that reading a member goes through, where it is a view that readers look through. */
  readonly divisions: Map<Node, number>;
}

/**
 * The fusion root that identifies a fusion group when fusion is repeated. For attention it is a product:
 * several attention kernels may share the dots of their scores.
 */
export function keyOf(fusionGroup: FusionGroup): Node {
  return fusionGroup.group?.outers[0]?.node ?? fusionGroup.fusionRoots[0]!;
}

/** A node without a kernel of its own. */
export interface Inline {
  readonly kind: 'free';
  readonly level: number;
  /** Free nodes that are computed with it. */
  readonly closure: ReadonlySet<Node>;
  /** Stored nodes it reads. */
  readonly reads: ReadonlySet<Node>;
  /**
   * Different points a kernel evaluates it at: `x + shift(x)` doubles this, repeated it would grow
   * without bound.
   */
  readonly contexts: number;
  /**
   * What is evaluated at its own point: elementwise nodes, and views with the work of what they
   * view, at other points.
   */
  readonly here: ReadonlyMap<Node, number>;
  /** Expressions that it takes, at all points. */
  readonly work: number;
  /** Divisions in the indices that it reads at. */
  readonly divisions: number;
}

/** Where a node's value is computed or stored. */
export type ComputeLocation =
  /** In memory before the program starts. */
  | { readonly kind: 'leaf' }
  | { readonly kind: 'member'; readonly fusionGroup: FusionGroup }
  /** Computed inline in every kernel that reads it. */
  | Inline
  /**
   * A free node that must be stored: a map kernel of its own computes it. With `pieces`, it is a
   * concatenation without a kernel: the kernels of its parts write into its buffer.
   */
  | {
      readonly kind: 'stored';
      readonly level: number;
      /** What computing it reads. */
      readonly reads: ReadonlySet<Node>;
      readonly pieces?: readonly ConcatPiece[];
    };

/** A part of a concatenation, which its kernel writes into the whole. */
export interface PartOfWhole {
  readonly part: Node;
  readonly whole: Node;
  /** Where the part begins along the axis of the concatenation. */
  readonly start: number;
}

/** A part that the kernel of a fusion group writes. */
export interface ConcatPiece extends PartOfWhole {
  readonly fusionGroup: FusionGroup;
}

/** Views that a reader outside looks through instead of having them stored. */
export function isThroughView(node: Node): boolean {
  return node.op === 'reshape' || node.op === 'permute' || node.op === 'broadcast';
}

/**
 * Kernels that write at indices read from data, or at other indices than their point: no node is
 * aligned with their results.
 */
export function movesElements(kind: FusionRootKind): boolean {
  return (
    kind === 'scatter' ||
    kind === 'radix-rank' ||
    kind === 'jacobi-rows' ||
    kind === 'complete-rows' ||
    kind === 'permute-scatter' ||
    kind === 'scatter-add-atomic' ||
    kind === 'factor' ||
    kind === 'collective' ||
    kind === 'iterate'
  );
}

/** Kernels that have no loops of their own over what they read and write. */
export function readsWhole(kind: FusionRootKind): boolean {
  return kind === 'iterate' || kind === 'collective';
}

/** Keys and payload of a sort go to the same places; parts of a transform have the same operands. */
export type Companion = NodeOf<'permuteScatter'> | NodeOf<'fftPart'>;

/** Equal for nodes that share a fusion group. */
export function companionKey(node: Companion): string {
  if (node.op === 'permuteScatter') return `${node.op} ${node.inputs[1]!.id} ${node.attrs.axis}`;
  return `${node.op} ${node.inputs.map(({ id }) => id).join()}`;
}
