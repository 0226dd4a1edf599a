// What a forward rule is: the tangent of a node from the tangents of its inputs.

import type { GraphBuilder, Node, NodeOf } from '../../ir/graph.ts';
import type { Op } from '../../ir/ops.ts';

/** A tangent for each input; undefined where it does not change. At least one is there. */
export type Tangents = readonly (Node | undefined)[];

/**
 * The Jacobian-vector product of one op: the tangent of the node (its dtype and shape) from those
 * of its inputs, or undefined where it does not change. Only primitives are built, so that a rule's
 * result can be differentiated again.
 */
export type JvpRule<K extends Op = Op> = (
  b: GraphBuilder,
  node: NodeOf<K>,
  tangents: Tangents,
) => Node | undefined;

/** A rule of its own, or what it is made of. */
export type JvpRow<K extends Op = Op> =
  | JvpRule<K>
  /** Nothing changes: no inputs, integers, or a derivative of 0. */
  | 'flat'
  /**
   * Element by element, so that the Jacobian is a diagonal and its own transpose: the partial
   * derivatives of the reverse rule, applied to the tangents. Complex ones go by `transposed`.
   */
  | 'partials'
  /** The op itself, of its first input's tangent; the other inputs are no floats, or constants. */
  | 'linear'
  /** For fixed y linear in x, and the other way round: the op itself, of a tangent and the other. */
  | 'bilinear'
  /** The transpose of the reverse rule (transpose.ts). */
  | 'transposed'
  /** A loop, whose body is differentiated (loop.ts). */
  | 'loop'
  /** A function with a rule of the user's (custom.ts). */
  | 'ruled';
