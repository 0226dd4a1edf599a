// What a derivative rule is, and the arithmetic on cotangents that rules are written in. It differs
// from plain node construction in two ways. A seed of ones is never multiplied with. And a
// cotangent masked by a select stays masked: the select is kept outermost, so `0·∞` never arises in
// the branch that was not taken (`where(x > 0, sqrt(x), 0)` at 0).

import {
  add,
  binary,
  cast,
  div,
  full,
  fullLike,
  isDistinct,
  mul,
  neg,
  purposeOf,
  unary,
  where,
} from '../ir/build.ts';
import { isComplex, type DType } from '../ir/dtype.ts';
import { dims, type GraphBuilder, type Node, type NodeOf } from '../ir/graph.ts';
import type { Op } from '../ir/ops.ts';

/**
 * The vector-Jacobian product of one op: from the cotangent `g` of the node, the cotangent of each
 * input (its dtype and shape), or undefined where nothing flows. Inputs that are not `wanted` may
 * be left undefined. Only primitives are built, so a rule's result can be differentiated again.
 */
export type VjpRule<K extends Op = Op> = (
  b: GraphBuilder,
  node: NodeOf<K>,
  g: Node,
  wanted: readonly boolean[],
) => readonly (Node | undefined)[];

/**
 * The value that every element of the node has, when that is plain from its views; undefined
 * otherwise, and at a variable or a number made for one step: it may have this value by chance (a
 * weight that starts as ones), and what is built here must still depend on it.
 */
export function uniform(node: Node): number | undefined {
  let source = node;
  // The bound keeps a walk over a graph of nothing but views linear; cotangents are folded to at
  // most two steps.
  for (let step = 0; step < 4; step++) {
    if (source.op === 'constant')
      return purposeOf(source) === undefined ? Number(source.attrs.value) : undefined;
    const isMade = source.op === 'cast' && isComplex(source.dtype) && !isComplex(source.inputs[0]!.dtype);
    const isView = source.op === 'broadcast' || source.op === 'reshape' || source.op === 'permute';
    if ((!isView && !isMade && source.op !== 'slice') || isDistinct(source)) return undefined;
    source = source.inputs[0]!;
  }
  return undefined;
}

/** A view of a constant as one broadcast constant; other nodes unchanged. */
export function foldUniform(b: GraphBuilder, node: Node): Node {
  if (node.op === 'constant') return node;
  const value = uniform(node);
  return value === undefined ? node : full(b, dims(node), value, node.dtype);
}

interface Masked {
  readonly when: Node;
  /** The value of `when` at which the cotangent is kept; it is 0 elsewhere. */
  readonly kept: boolean;
  readonly value: Node;
}

function masked(g: Node): Masked | undefined {
  if (g.op !== 'where') return undefined;
  const [when, yes, no] = [g.inputs[0]!, g.inputs[1]!, g.inputs[2]!];
  if (uniform(no) === 0) return { when, kept: true, value: yes };
  if (uniform(yes) === 0) return { when, kept: false, value: no };
  return undefined;
}

function mask(b: GraphBuilder, when: Node, kept: boolean, g: Node): Node {
  const inner = masked(g);
  if (inner !== undefined) {
    // Two masks become one, so that pushing the mask outwards costs no more nodes than leaving it.
    const same = inner.kept === kept ? inner.when : unary(b, 'not', inner.when);
    const both = same === when ? when : binary(b, kept ? 'and' : 'or', when, same);
    return mask(b, both, kept, inner.value);
  }
  const zero = fullLike(b, g, 0);
  return kept ? where(b, when, g, zero) : where(b, when, zero, g);
}

/** `g` where `when` holds, 0 elsewhere: by selection, so an infinite or NaN `g` does not leak. */
export function keepWhere(b: GraphBuilder, when: Node, g: Node): Node {
  return mask(b, when, true, g);
}

/** 0 where `when` holds, `g` elsewhere. */
export function dropWhere(b: GraphBuilder, when: Node, g: Node): Node {
  return mask(b, when, false, g);
}

/** Applies a linear elementwise map below the mask of `g`, if it has one. */
function mapMasked(b: GraphBuilder, g: Node, map: (value: Node) => Node): Node {
  const m = masked(g);
  return m === undefined ? map(g) : mask(b, m.when, m.kept, map(m.value));
}

/** g·d. */
export function times(b: GraphBuilder, g: Node, d: Node | number): Node {
  const factor = typeof d === 'number' ? d : uniform(d);
  if (factor === 1) return g;
  return mapMasked(b, g, (value) => {
    if (uniform(value) !== 1) return mul(b, value, d);
    return typeof d === 'number' ? fullLike(b, value, d) : d;
  });
}

/** g/d. */
export function over(b: GraphBuilder, g: Node, d: Node): Node {
  return uniform(d) === 1 ? g : mapMasked(b, g, (value) => div(b, value, d));
}

/** −g. */
export function negate(b: GraphBuilder, g: Node): Node {
  return mapMasked(b, g, (value) => {
    const known = uniform(value);
    return known === undefined ? neg(b, value) : fullLike(b, value, -known);
  });
}

/** g in another dtype. */
export function convert(b: GraphBuilder, g: Node, dtype: DType): Node {
  return mapMasked(b, g, (value) => cast(b, value, dtype));
}

/** g + h; two cotangents under one mask are added below it. */
export function plus(b: GraphBuilder, g: Node, h: Node): Node {
  const [left, right] = [masked(g), masked(h)];
  if (left !== undefined && right?.when === left.when && right.kept === left.kept) {
    return mask(b, left.when, left.kept, plus(b, left.value, right.value));
  }
  if (uniform(g) === 0) return h;
  return uniform(h) === 0 ? g : add(b, g, h);
}
