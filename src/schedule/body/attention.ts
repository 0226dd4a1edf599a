// The expressions of an attention kernel: operands of its inner dots, values of its stages, weights
// and values of its products.

import { CompilerBug } from '../../errors.ts';
import { dims, type Node, type NodeOf } from '../../ir/graph.ts';
import { atomsOf, delinearize } from '../../ir/index-algebra/expr.ts';
import { sizeOf } from '../../ir/shape.ts';
import { makeAxis, reducedIndices } from '../fusion/domain.ts';
import type { Evaluator, Indices } from '../expression/evaluate.ts';
import type { BoundFinder } from './bound.ts';
import { masks } from './masks.ts';
import { argsOf, type Expr } from '../expression/expr.ts';
import type { Body, InnerProduct, OuterProduct, RowProduct, RowStage } from '../kernel.ts';
import { keyRange } from '../fusion/key-range.ts';
import { onlineForm } from '../fusion/online.ts';
import type { AttentionGroup, FusionGroup, OuterDot } from '../fusion/place.ts';

type Attention = Extract<Body, { kind: 'attention' }>;

export function attentionBody(
  fusionGroup: FusionGroup,
  group: AttentionGroup,
  evaluator: Evaluator,
): Attention {
  const { batch, row, key } = group;
  const passes = new Map<Node, number>(
    [...group.inners, ...group.rowProducts].map((node) => [node as Node, -1]),
  );
  const inners = group.inners.map((node) => innerProduct(node, fusionGroup, group, evaluator));
  const rowProducts = group.rowProducts.map((node) => rowProduct(node, fusionGroup, evaluator));
  const stages = group.stages.map((node): RowStage => {
    const value = evaluator.value(node.inputs[0]!, stageInput(node, fusionGroup, group));
    const pass = passOf(value, passes);
    passes.set(node as Node, pass);
    return { node, monoid: node.attrs.monoid, arg: false, value, pass, dtype: node.inputs[0]!.dtype };
  });
  const outers = group.outers.map((outer): OuterProduct =>
    outerProduct(outer, fusionGroup, evaluator, passes),
  );
  const online = onlineForm(stages, outers, key, evaluator.pool);
  const end = keyEnd(
    new masks.value.BoundFinder(evaluator.pool, key, stages, { row, batch, lenient: true }),
    stages,
    outers,
  );
  const range = { ...keyRange(stages, outers, row, key), ...(end && { end }) };
  const all = { batch, row, key, inners, rowProducts, stages, outers, range };
  return { kind: 'attention', ...all, ...(online && { online }) };
}

/** The keys from which on none counts, in any stage or product. */
function keyEnd(
  find: BoundFinder,
  stages: readonly RowStage[],
  outers: readonly OuterProduct[],
): Expr | undefined {
  const bounds = [
    ...stages.map((stage) => find.ofStage(stage)),
    ...outers.map(({ weight }) => find.vanishing(weight)),
  ];
  return bounds.reduce((a, b) => find.either(a, b));
}

/** Sweeps that must be finished before the expression is known; scores and products of rows are known in every sweep. */
function passOf(expr: Expr, passes: ReadonlyMap<Node, number>): number {
  const seen = new Set<Expr>();
  const visit = (at: Expr): number => {
    if (at.kind === 'result') return (passes.get(at.node) ?? 0) + 1;
    seen.add(at);
    return argsOf(at).reduce((highest, arg) => (seen.has(arg) ? highest : Math.max(highest, visit(arg))), 0);
  };
  return visit(expr);
}

function innerProduct(
  node: NodeOf<'dot'>,
  fusionGroup: FusionGroup,
  group: AttentionGroup,
  evaluator: Evaluator,
): InnerProduct {
  const { depth, lhs, rhs } = rowProduct(node, fusionGroup, evaluator);
  const { lhsBatch, rhsBatch, rhsContract } = node.attrs;
  const at = fusionGroup.members.get(node as Node)!;
  const lhsFree = at.slice(
    lhsBatch.length,
    at.length - (dims(node.inputs[1]!).length - rhsBatch.length - rhsContract.length),
  );
  const rhsFree = at.slice(lhsBatch.length + lhsFree.length);
  const uses = (part: Indices, atom: unknown): boolean =>
    part.some((index) => atomsOf(index).some((used) => used === atom));
  const turned = uses(lhsFree, group.key.atom) || uses(rhsFree, group.row.atom);
  return { node, depth, ofRow: turned ? rhs : lhs, ofKey: turned ? lhs : rhs };
}

/** A product with its operands at an index of the result. */
function rowProduct(node: NodeOf<'dot'>, fusionGroup: FusionGroup, evaluator: Evaluator): RowProduct {
  const { lhsBatch, rhsBatch, lhsContract, rhsContract } = node.attrs;
  const at = fusionGroup.members.get(node as Node)!;
  const shape = dims(node.inputs[0]!);
  const depths = lhsContract.map((axis) => shape[axis]!);
  const depth = makeAxis('depth', sizeOf(depths));
  const along = delinearize(depth.atom, depths);
  const [lhs, rhs] = operands(node, at, along, evaluator, [lhsBatch, rhsBatch], [lhsContract, rhsContract]);
  return { node, depth, lhs, rhs };
}

/** Both operands of a dot for the result's index `at`, at `along` on the contracted axes. */
function operands(
  node: NodeOf<'dot'>,
  at: Indices,
  along: Indices,
  evaluator: Evaluator,
  batch: readonly [readonly number[], readonly number[]],
  contract: readonly [readonly number[], readonly number[]],
): [Expr, Expr] {
  let free = batch[0].length;
  const one = (side: 0 | 1): Expr => {
    const indices = dims(node.inputs[side]!).map((_, axis) => {
      const b = batch[side].indexOf(axis);
      if (b >= 0) return at[b]!;
      const c = contract[side].indexOf(axis);
      return c >= 0 ? along[c]! : at[free++]!;
    });
    return evaluator.value(node.inputs[side]!, indices);
  };
  return [one(0), one(1)];
}

function outerProduct(
  { node, side, column }: OuterDot,
  fusionGroup: FusionGroup,
  evaluator: Evaluator,
  passes: ReadonlyMap<Node, number>,
): OuterProduct {
  const { lhsBatch, rhsBatch, lhsContract, rhsContract } = node.attrs;
  const weights = node.inputs[side]!;
  const weightAt = fusionGroup.members.get(weights);
  if (weightAt === undefined) throw new CompilerBug('schedule', 'an attention product needs its weights');
  const along = (side === 0 ? lhsContract : rhsContract).map((axis) => weightAt[axis]!);
  const at = fusionGroup.members.get(node as Node)!;
  const [lhs, rhs] = operands(node, at, along, evaluator, [lhsBatch, rhsBatch], [lhsContract, rhsContract]);
  const [weight, value] = side === 0 ? [lhs, rhs] : [rhs, lhs];
  return { node, column, weight, value, pass: passOf(weight, passes) };
}

/** The indices of a stage's input: the stage's own row, at the current key. */
function stageInput(node: NodeOf<'reduce'>, fusionGroup: FusionGroup, group: AttentionGroup): Indices {
  const { members } = fusionGroup;
  return (
    members.get(node.inputs[0]!) ?? reducedIndices(node as Node, members.get(node as Node)!, group.key.atom)
  );
}
