// What a sharding rule is: how the axes of an op's operands and of its result belong together, as in einsum
// notation. An axis is made of factors. A factor that a mesh axis splits is split in every operand and in the result that
// has it, and each process then does the op on its own part. This is the form of rules of Shardy (OpenXLA).

import type { GraphBuilder, Node, NodeOf } from '../ir/graph.ts';
import type { Mesh } from '../ir/mesh/mesh.ts';
import type { Monoid, Op } from '../ir/ops.ts';

/** What is walked together along axes of several values. */
export interface ShardFactor {
  /** How many steps there are: the axis's size, or a divisor of it. */
  readonly size: number;
  /**
   * How results of processes that each have a part of the steps become one, where the result does not have the factor: by
   * this monoid. A factor that only operands have says it, unless the result is the same whichever part a process has:
   * of operands that are not read.
   */
  readonly fold?: Monoid;
}

/**
 * The factors that an axis consists of, by their number, major before minor. A mesh axis can split the first only (or
 * one behind factors of size 1). An empty list: the axis cannot be split, and operands are gathered along it.
 */
export type AxisFactors = readonly number[];

export interface ShardingRule {
  readonly factors: readonly ShardFactor[];
  /** For each operand, for each of its axes. */
  readonly operands: readonly (readonly AxisFactors[])[];
  /** For each axis of the result. */
  readonly result: readonly AxisFactors[];
}

/** The mesh axes that split each factor, in order, the first splits coarsest; a mesh axis splits one factor at most. */
export type ShardAssignment = readonly (readonly string[])[];

/** What a row may ask of the place where a part of an op is made. */
export interface ShardPlace {
  readonly b: GraphBuilder;
  readonly mesh: Mesh;
  readonly assignment: ShardAssignment;
  /** Into how many parts a factor is split. */
  parts(factor: number): number;
  /** Which of these parts is this process's: i32, rank 0. Not for factors in one part. */
  part(factor: number): Node;
}

/** In which operands an op is linear; the others have to be equal on all processes. */
export interface ShardLinear {
  /** All these operands at once (`add`), or any one of them while the others are equal on all processes (`mul`). */
  readonly kind: 'together' | 'one';
  readonly operands: readonly number[];
}

/** A rule of its own. */
export interface OwnRow<K extends Op = Op> {
  rule(node: NodeOf<K>): ShardingRule;
  /**
   * The op on this process's parts of the operands; where it is left out, the op with the attributes it has. Rows whose
   * attributes speak of sizes need it.
   */
  local?(node: NodeOf<K>, operands: readonly Node[], place: ShardPlace): Node;
  /**
   * Which operands may be parts of a sum that the processes have yet to add up, so that the result is one, too. Left
   * out: none may.
   */
  readonly linear?: (node: NodeOf<K>) => ShardLinear | undefined;
}

/** A rule of its own, or what it is made of. */
export type ShardingRow<K extends Op = Op> =
  | OwnRow<K>
  /** Nothing goes in: every process makes its part of it. */
  | 'source'
  /** Operands and result have one shape, or rank 0, and one factor an axis. */
  | 'elementwise'
  /** No axis can be split: every process does all of it. */
  | 'whole'
  /** Written for parts already. */
  | 'collective'
  /** Where what is written for parts begins and ends. */
  | 'edge';
