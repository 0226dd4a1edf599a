// Decides whether a node can be inlined into the kernels that read it. Takes a node and the locations of its
// inputs. Returns what such a kernel has to compute and read: nodes, stored values, the points at which a
// node is evaluated, and the divisions in indices of views of views. Each of these is bounded. If one exceeds
// its bound, some value is stored instead. Without bounds, kernels grow exponentially with the length of a
// chain of operations.

import { dims, readInputs, type Node } from '../../ir/graph.ts';
import { axisIndex, constantIndex } from '../../ir/index-algebra/expr.ts';
import { facts, isElementwise } from '../../ir/ops.ts';
import { codeSize } from '../expression/code-size.ts';
import { sizeOf } from '../../ir/shape.ts';
import { Evaluator, weightOf, type Indices } from '../expression/evaluate.ts';
import { ExprPool } from '../expression/expr.ts';
import { isThroughView, type Inline, type ComputeLocation } from './place.ts';
import type { Overflow } from './rejection.ts';

/**
 * Expression nodes one kernel may hold: generated code stays readable, and pipelines compile in
 * bounded time.
 */
export const kernelNodeLimit = 192;

/** Different points one kernel may evaluate an inlined node at. */
const contextLimit = 48;

/**
 * Operations that a value may take, summed over all points and weighted by the size of their code.
 */
export const workLimit = 384;

/** Divisions in the indices of one point. */
export const divisionLimit = 16;

/** Above this sum of views' divisions, the views are composed to see which divisions cancel out. */
const suspected = 12;

/** What is known of the nodes placed so far. */
export interface Placed {
  readonly places: ReadonlyMap<Node, ComputeLocation>;
  readonly outputs: ReadonlySet<Node>;
  readonly levelOf: (node: Node) => number;
  readonly readsOf: (node: Node) => ReadonlySet<Node>;
}

/** The closure, reads, points, work and divisions of the node as an inlined value. */
export function inlineOf(node: Node, placed: Placed): Inline {
  const isHere = isElementwise(node.op);
  // A short fold evaluates each of its terms; a longer one is a loop of the kernel.
  const terms = node.op === 'reduce' ? sizeOf(dims(node.inputs[0]!)) / sizeOf(dims(node)) : 1;
  const points = terms <= mostTerms ? terms : 1;
  let [level, divisions, elsewhere] = [0, 0, codeSize(node.op, node.dtype)];
  let [pointwise, viewed] = [isHere ? 1 : 0, 0];
  // Reading through a barrier computes nothing.
  const closure = new Set<Node>(node.op === 'barrier' ? [] : [node]);
  const reads = new Set<Node>();
  const here = new Map<Node, number>();
  const own = readInputs(node);
  // Each part of a concatenation is evaluated at a point of its own, also if two parts are one
  // node.
  for (const input of node.op === 'concat' ? node.inputs : new Set(node.inputs)) {
    const place = placed.places.get(input)!;
    level = Math.max(level, place.kind === 'member' ? place.fusionGroup.level + 0.5 : placed.levelOf(input));
    // A barrier reads its first input, and comes after the kernels of both.
    if (!own.includes(input)) continue;
    divisions = Math.max(divisions, divisionsBelow(input, placed));
    for (const read of placed.readsOf(input)) reads.add(read);
    elsewhere += place.kind === 'free' ? place.work : 1;
    if (place.kind !== 'free') continue;
    for (const inner of place.closure) closure.add(inner);
    if (isHere) for (const [inner, work] of place.here) here.set(inner, work);
    if (isElementwise(input.op)) pointwise = Math.max(pointwise, place.contexts);
    else viewed += place.contexts;
  }
  here.set(node, isHere ? codeSize(node.op, node.dtype) : points * elsewhere);
  let work = 0;
  for (const own of here.values()) work += own;
  divisions += divisionsOf(node);
  const contexts = points * (pointwise + viewed);
  return { kind: 'free', level, closure, reads, here, contexts, work, divisions };
}

/** The first bound that a kernel exceeds if it computes this inline, if there is one. */
export function overflowOf(
  { closure, reads, contexts, work, divisions }: Inline,
  storageBuffers: number,
): Overflow | undefined {
  const bindings = reads.size + 1;
  if (closure.size > kernelNodeLimit) return { rule: 'size', count: closure.size, limit: kernelNodeLimit };
  if (bindings > storageBuffers) return { rule: 'bindings', count: bindings, limit: storageBuffers };
  if (contexts > contextLimit) return { rule: 'points', count: contexts, limit: contextLimit };
  if (work > workLimit) return { rule: 'expressions', count: work, limit: workLimit };
  if (divisions > divisionLimit) return { rule: 'divisions', count: divisions, limit: divisionLimit };
  return undefined;
}

/**
 * Divisions that reading a node's elements goes through: none where it lies in memory, or is
 * computed at its own point.
 */
export function divisionsBelow(node: Node, { places, outputs }: Placed): number {
  const place = places.get(node)!;
  if (place.kind === 'free') return place.divisions;
  const isLookedThrough = place.kind === 'member' && isThroughView(node) && !outputs.has(node);
  return isLookedThrough ? (place.fusionGroup.divisions.get(node) ?? 0) : 0;
}

/** Divisions that a view adds, if nothing cancels out: a reshape splits a flat index into axes. */
export function divisionsOf(node: Node): number {
  switch (node.op) {
    case 'reshape':
      return splits(dims(node), dims(node.inputs[0]!));
    case 'pad':
      return 2 * node.attrs.interior.filter((step) => step > 0).length;
    default:
      return 0;
  }
}

/**
 * Quotients and remainders that find the indices of `to` from those of `from`, both read in blocks
 * of as many elements.
 */
function splits(from: readonly number[], to: readonly number[]): number {
  let count = 0;
  for (let [i, j] = [0, 0]; j < to.length;) {
    let [outer, inner] = [from[i++] ?? 1, to[j++]!];
    let parts = inner > 1 ? 1 : 0;
    while (outer !== inner && (i < from.length || j < to.length)) {
      if (outer < inner && i < from.length) outer *= from[i++]!;
      else if (j < to.length) {
        if (to[j]! > 1) parts += 1;
        inner *= to[j++]!;
      } else break;
    }
    if (parts > 1) count += 2 * (parts - 1);
  }
  return count;
}

/** Whether a node is what blocks stand for, looked at in some way, or in another dtype: as a weight is. */
export function isOfBlocks(node: Node): boolean {
  let at = node;
  while (at.op === 'cast' || facts(at.op).class === 'view') at = at.inputs[0]!;
  return at.op === 'dequantize';
}

/** Terms of a short fold, and elements that it folds in all, at most. */
const [mostTerms, mostFolded] = [4, 16];

/** How many times as many elements readers of a short fold have, at least: a smaller kernel has it as a row. */
const spread = 64;

/**
 * Folds of so few elements that their readers, which have many more, compute them: the shares of a token's experts are part of
 * the sum that they are for.
 */
export function shortFolds(
  order: readonly Node[],
  users: ReadonlyMap<Node, readonly Node[]>,
  outputs: ReadonlySet<Node>,
): ReadonlySet<Node> {
  const short = new Set<Node>();
  for (const node of order.toReversed()) {
    if (node.op !== 'reduce' || node.dtype !== 'f32') continue;
    const folded = sizeOf(dims(node.inputs[0]!));
    if (folded <= Math.min(mostFolded, mostTerms * sizeOf(dims(node))) && isReadByMany(node, folded))
      short.add(node);
  }
  return short;

  /** Whether all that a fold is read by in the end has many elements, whatever few are made of it in between. */
  function isReadByMany(fold: Node, folded: number): boolean {
    const few = new Set([fold]);
    for (const node of few) {
      if (outputs.has(node) || few.size > kernelNodeLimit) return false;
      for (const user of users.get(node) ?? []) {
        if (!isElementwise(user.op) && !isThroughView(user) && !short.has(user)) return false;
        if (sizeOf(dims(user)) < spread * folded) few.add(user);
      }
    }
    return true;
  }
}

/** Whether it is computed wherever it is read, whatever that takes. */
export function isNeverStored(node: Node): boolean {
  return facts(node.op).class === 'source' || isOfBlocks(node);
}

/** Counts the divisions that are left when views are composed, where their sum may be too many. */
export function withExactDivisions(node: Node, inline: Inline, placed: Placed): Inline {
  if (inline.divisions <= suspected || inline.work > workLimit) return inline;
  const { places, outputs } = placed;
  const pool = new ExprPool();
  const evaluator = new Evaluator(pool, (inner, at) => {
    const place = places.get(inner);
    // What takes no work is no operation: a scalar of the program, or a value without elements.
    if (place !== nothing && (place === undefined || place.kind === 'free')) return undefined;
    if (place.kind === 'member' && isThroughView(inner) && !outputs.has(inner)) return undefined;
    return pool.make({ kind: 'read', node: inner, index: at[0] ?? constantIndex(0), dtype: inner.dtype });
  });
  evaluator.value(
    node,
    dims(node).map((size, axis) => (size === 1 ? constantIndex(0) : axisIndex(`axis${axis}`, size))),
  );
  return { ...inline, divisions: Math.min(inline.divisions, evaluator.heaviest) };
}

/** The place of a node that takes no work wherever it is read. */
export const nothing: Inline = {
  kind: 'free',
  level: 0,
  closure: new Set(),
  reads: new Set(),
  contexts: 0,
  here: new Map(),
  work: 0,
  divisions: 0,
};

/** Divisions in a member's indices or, if more, in those of reading through a member view. */
export function divisionsOfMember(node: Node, at: Indices, placed: Placed): number {
  const own = weightOf(at);
  if (!isThroughView(node)) return own;
  const below = divisionsBelow(node.inputs[0]!, placed) + divisionsOf(node);
  return Math.max(own, withExactDivisions(node, { ...nothing, divisions: below }, placed).divisions);
}
