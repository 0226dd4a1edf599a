// Products of few rows, as a step of a language model has: reading the right operand takes nearly all of their
// time. Except on the cores of a CPU, one kernel computes several products of one left operand (`siblings`). Each
// workgroup may also compute by itself what the left operand needs of its rows, as the mean square of a norm,
// which then has no kernel (`repeatedReductions`). On the software adapter, each invocation does.

import { dims, type Node, type NodeOf } from '../../ir/graph.ts';
import { atomsOf, constantIndex } from '../../ir/index-algebra/expr.ts';
import { isElementwise } from '../../ir/ops.ts';
import { sizeOf } from '../../ir/shape.ts';
import { Evaluator, type Indices } from '../expression/evaluate.ts';
import { ExprPool } from '../expression/expr.ts';
import { packsOperands } from '../machine.ts';
import type { Target } from '../target.ts';
import { sameIndices } from './align.ts';
import { contractExtents, dotIndices, makeAxis, ownLoops, reducedIndices } from './domain.ts';
import type { AttentionGroup } from './place.ts';

/** Rows of the left operand, at most. */
const fewRows = 4;

/** Products that one kernel computes, at most: each has its sums in workgroup memory. */
export const mostSiblings: number = 3;

/** Whether further products of its left operand may share the kernel of this one. */
export function mayHaveSiblings(node: NodeOf<'dot'>, target: Target): boolean {
  return !packsOperands(target) && hasFewRows(node);
}

/** Rows of the result are vectors of at least four columns, and few. */
function hasFewRows(node: NodeOf<'dot'>): boolean {
  const { m, n } = contractExtents(node as Node);
  return m <= fewRows && n >= 4;
}

/** Equal for products of one left operand that have the same axes and dtype. */
export function siblingsKey({ inputs: [left, right], attrs, shape, dtype }: NodeOf<'dot'>): string {
  return `${left!.id} ${JSON.stringify(attrs)} ${shape.join()} ${right!.dtype} ${dtype}`;
}

/** Repeated reductions, with the indices of their results at the points of a product. */
export type Repeated = ReadonlyMap<Node, Indices>;

/** What is known before fusion places a node. */
interface Before {
  readonly order: readonly Node[];
  readonly users: ReadonlyMap<Node, readonly Node[]>;
  readonly outputs: ReadonlySet<Node>;
  readonly home: ReadonlyMap<Node, AttentionGroup>;
  /** Reductions that must have a kernel. */
  readonly alone: ReadonlySet<Node>;
}

/** Nodes between a reduction and products, and other reductions on the way, at most. */
const mostBetween = 32;

/** Columns of a result for which a workgroup, or an invocation, reads rows of the left operand, at least. */
const fewestColumns = 4;

/**
 * Reductions that nothing but left operands of products of few rows depend on, with the number of points at
 * which the kernels of these products evaluate what each of them reduces.
 */
export function repeatedReductions(before: Before, target: Target): ReadonlyMap<Node, number> {
  const repeated = new Map<Node, number>();
  if (packsOperands(target)) return repeated;
  const { order, alone, home } = before;
  for (const node of order.toReversed()) {
    if (node.op !== 'reduce' || alone.has(node) || home.has(node) || sizeOf(dims(node)) === 0) continue;
    const below = productsBelow(node, before, repeated);
    if (below === undefined) continue;
    const { products, between } = below;
    if (!products.every((product) => isOfRows(product, node, between, repeated))) continue;
    // Siblings share a kernel.
    const kernels = new Map(products.map((product) => [siblingsKey(product), product]));
    let rows = 0;
    for (const product of kernels.values()) {
      const { batch, m, n } = contractExtents(product as Node);
      rows += batch * m * Math.ceil(n / fewestColumns);
    }
    repeated.set(node, rows * reducedExtent(node));
  }
  return repeated;
}

/** Elements that each result of a reduction is made of. */
function reducedExtent(node: Node): number {
  return sizeOf(dims(node.inputs[0]!)) / sizeOf(dims(node));
}

/** All that depends on a reduction up to products, if those take it as their left side only. */
function productsBelow(
  root: Node,
  { users, outputs, home }: Before,
  repeated: ReadonlyMap<Node, number>,
): { readonly products: readonly NodeOf<'dot'>[]; readonly between: ReadonlySet<Node> } | undefined {
  const between = new Set<Node>([root]);
  const products = new Set<NodeOf<'dot'>>();
  for (const node of between) {
    if (outputs.has(node) || between.size > mostBetween) return undefined;
    for (const user of users.get(node) ?? []) {
      if (home.has(user)) return undefined;
      if (user.op === 'dot') {
        if (user.inputs[0] !== node || !hasFewRows(user)) return undefined;
        products.add(user);
      } else if (isElementwise(user.op) || isView(user) || repeated.has(user)) between.add(user);
      else return undefined;
    }
  }
  if (products.size === 0 || [...products].some(({ inputs }) => between.has(inputs[1]!))) return undefined;
  return { products: [...products], between };
}

function isView({ op }: Node): boolean {
  return op === 'reshape' || op === 'permute' || op === 'broadcast';
}

/** Whether a product reads a reduction, and those in between, at one row for each row of its result. */
function isOfRows(
  product: NodeOf<'dot'>,
  root: Node,
  between: ReadonlySet<Node>,
  repeated: ReadonlyMap<Node, number>,
): boolean {
  const { axes, at } = ownLoops(product as Node)!.domain;
  const pool = new ExprPool();
  const asked = new Map<Node, Indices>();
  let isOneRow = true;
  const evaluator = new Evaluator(pool, (node, where) => {
    if (between.has(node) && (node === root || repeated.has(node))) {
      const known = asked.get(node);
      if (known !== undefined && !sameIndices(known, where)) isOneRow = false;
      asked.set(node, where);
      return pool.make({ kind: 'result', node, dtype: node.dtype });
    }
    if (between.has(node)) return undefined;
    return pool.make({ kind: 'read', node, index: constantIndex(0), dtype: node.dtype });
  });
  evaluator.value(product.inputs[0]!, dotIndices(product, at, axes['k']!.atom)[0]);
  for (const [node, where] of asked) {
    const column = makeAxis(`col${node.id}`, reducedExtent(node));
    evaluator.value(node.inputs[0]!, reducedIndices(node, where, column.atom));
  }
  const rows = [axes['batch']!.atom, axes['m']!.atom];
  const isOfRow = (where: Indices): boolean =>
    where.every((index) => atomsOf(index).every((atom) => rows.includes(atom)));
  return isOneRow && [...asked.values()].every(isOfRow);
}
