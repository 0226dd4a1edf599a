// Bodies of kernels that are not maps: the operand expressions of each kind.

import { CompilerBug } from '../../errors.ts';
import { dims, type Node } from '../../ir/graph.ts';
import type { attentionBody } from './attention.ts';
import type { convOperands } from './conv.ts';
import type { rareRootBody } from './rare-root.ts';
import { Slot } from '../../slot.ts';
import type { FusionGroup } from '../fusion/place.ts';
import type { Evaluator, Indices } from '../expression/evaluate.ts';
import { foldWidth } from '../fusion/column-folds.ts';
import { dotIndices, makeAxis, reducedIndices } from '../fusion/domain.ts';
import type { Repeated } from '../fusion/few-rows.ts';
import { sizeOf } from '../../ir/shape.ts';
import { masks } from './masks.ts';
import { argsOf, type Expr } from '../expression/expr.ts';
import type { Axis, Body, ColumnFolds, RepeatedStage, RowStage, Sibling } from '../kernel.ts';

/** The bodies of attention kernels. */
export const attentionBuilder: Slot<typeof attentionBody> = new Slot('the body of attention');

/** The operands of convolutions. */
export const convolutionOperands: Slot<typeof convOperands> = new Slot('the operands of convolutions');

/** The bodies of kernels of rare operations. */
export const rareBuilder: Slot<typeof rareRootBody> = new Slot('the bodies of rare operations');

/** The body of a fusion group's kernel; `asked` gets the reductions that its expressions repeat. */
export function fusionRootBody(fusionGroup: FusionGroup, evaluator: Evaluator, asked: Repeated): Body {
  const axis = (name: string): Axis => fusionGroup.axes[name]!;
  const fusionRoot = fusionGroup.fusionRoots[0]!;
  switch (fusionGroup.kind) {
    case 'row-reduction': {
      const [row, column] = [axis('row'), axis('column')];
      const stages = rowStages(fusionGroup, evaluator);
      const bound = masks.filled?.boundOfRows(evaluator.pool, column, stages);
      return { kind: 'row-reduction', row, column, stages, ...(bound && { bound }) };
    }
    case 'dot':
    case 'conv': {
      const operands =
        fusionRoot.op === 'dot'
          ? dotOperands(fusionRoot, fusionGroup, evaluator)
          : convolutionOperands.value(fusionRoot, fusionGroup, evaluator);
      const [batch, m, n, k] = ['batch', 'm', 'n', 'k'].map(axis);
      const others = fusionGroup.fusionRoots.slice(1);
      const folded = others.filter(({ op }) => op === 'reduce');
      const siblings = others.flatMap((node): Sibling[] => {
        if (node.op === 'reduce') return [];
        if (node.op !== 'dot') throw new CompilerBug('schedule', `${node.op} is no sibling of a product`);
        return [{ node, rhs: dotOperands(node as Node, fusionGroup, evaluator).rhs }];
      });
      const folds = columnFolds(fusionRoot, folded, fusionGroup, evaluator);
      const sides = [operands.rhs, ...siblings.map(({ rhs }) => rhs)];
      const bound = masks.filled?.boundOfProducts(evaluator.pool, k!, operands.lhs, sides);
      const axes = { batch: batch!, m: m!, n: n!, k: k! };
      const stages = repeatedStages(asked, evaluator);
      return {
        kind: 'contract',
        node: fusionRoot,
        ...axes,
        ...operands,
        ...(stages.length > 0 && { stages }),
        ...(siblings.length > 0 && { siblings }),
        ...(folds && { folds }),
        ...(bound && { bound }),
      };
    }
    case 'attention': {
      if (fusionGroup.group === undefined) throw new CompilerBug('schedule', 'attention needs its group');
      return attentionBuilder.value(fusionGroup, fusionGroup.group, evaluator);
    }
    default:
      return rareBuilder.value(fusionGroup, evaluator);
  }
}

/** Reductions over neighbouring columns of a product, which stand at the points of its group. */
function columnFolds(
  product: Node,
  nodes: readonly Node[],
  fusionGroup: FusionGroup,
  evaluator: Evaluator,
): ColumnFolds | undefined {
  if (nodes.length === 0) return undefined;
  const passes = new Map<Node, number>([[product, -1]]);
  const stages = nodes.map((node) => {
    const input = node.inputs[0]!;
    return stageOf(node, evaluator.value(input, fusionGroup.members.get(input)!), passes);
  });
  return { width: foldWidth, stages };
}

function rowStages(fusionGroup: FusionGroup, evaluator: Evaluator): RowStage[] {
  const passes = new Map<Node, number>();
  return fusionGroup.fusionRoots.map((node) =>
    stageOf(node, evaluator.value(node.inputs[0]!, fullIndices(node, fusionGroup)), passes),
  );
}

/** A reduction of this value, in the pass behind those whose results it needs; `passes` has those before it. */
function stageOf(node: Node, value: Expr, passes: Map<Node, number>): RowStage {
  if (node.op !== 'reduce' && node.op !== 'argReduce')
    throw new CompilerBug('schedule', 'a row fusion group needs reductions');
  const seen = new Set<Expr>();
  const passOf = (expr: Expr): number => {
    if (expr.kind === 'result') return passes.get(expr.node)! + 1;
    let pass = 0;
    for (const arg of argsOf(expr)) {
      if (seen.has(arg)) continue;
      seen.add(arg);
      pass = Math.max(pass, passOf(arg));
    }
    return pass;
  };
  const pass = passOf(value);
  passes.set(node, pass);
  return {
    node,
    monoid: node.attrs.monoid,
    arg: node.op === 'argReduce',
    value,
    pass,
    dtype: node.inputs[0]!.dtype,
  };
}

/**
 * Where a reduction's input is evaluated: its own member indices, or the fusion group's point for a free
 * input.
 */
function fullIndices(node: Node, fusionGroup: FusionGroup): Indices {
  return fusionGroup.members.get(node.inputs[0]!) ?? fusionGroup.full!.at;
}

function dotOperands(node: Node, fusionGroup: FusionGroup, evaluator: Evaluator): { lhs: Expr; rhs: Expr } {
  if (node.op !== 'dot') throw new CompilerBug('schedule', 'not a dot');
  const [left, right] = dotIndices(node, fusionGroup.members.get(node as Node)!, fusionGroup.axes['k']!.atom);
  return { lhs: evaluator.value(node.inputs[0]!, left), rhs: evaluator.value(node.inputs[1]!, right) };
}

/** The reductions that the left operand asked for, each at the rows where it did. */
function repeatedStages(asked: Repeated, evaluator: Evaluator): RepeatedStage[] {
  const values = new Map<Node, { readonly column: Axis; readonly value: Expr }>();
  // Reductions that these ask for in turn are added on the way.
  for (const [node, at] of asked) {
    const extent = sizeOf(dims(node.inputs[0]!)) / sizeOf(dims(node));
    const column = makeAxis(`col${values.size}`, extent);
    const value = evaluator.value(node.inputs[0]!, reducedIndices(node, at, column.atom));
    values.set(node, { column, value });
  }
  const passes = new Map<Node, number>();
  return [...values]
    .toSorted(([x], [y]) => x.id - y.id)
    .map(([node, { column, value }]) => ({ ...stageOf(node, value, passes), column }));
}
