// What a row kernel does in which sweep over its rows. Reductions become folds, each in the
// earliest sweep that has what it needs. A sum over a one-hot row needs no sweep at all: it is one
// element. Two algebraic facts save sweeps where rows are too long to keep: a sum of exp(x − max)
// can follow a running maximum (Milakov and Gimelshein, "Online normalizer calculation for
// softmax", 2018), and a sum of squares around the mean can follow running moments (Chan, Golub and
// LeVeque, 1979).

import type { Node } from '../../../ir/graph.ts';
import type { IndexExpr } from '../../../ir/index-algebra/expr.ts';
import type { Expr } from '../../../schedule/expression/expr.ts';
import type { RowStage } from '../../../schedule/kernel.ts';
import type { RowFacts } from './facts.ts';

/** What is accumulated along a row. */
export type Item =
  | { readonly kind: 'fold'; readonly stage: RowStage }
  /** max x and Σ exp(x − max). */
  | { readonly kind: 'softmax'; readonly max: RowStage; readonly sum: RowStage }
  /** Σ x and Σ (x − centre)², where the centre depends on Σ x alone. */
  | {
      readonly kind: 'moments';
      readonly sum: RowStage;
      readonly squares: RowStage;
      readonly centre: Expr;
    };

/** Σ over columns of (column = at ? value : 0). */
export interface Pick {
  readonly stage: RowStage;
  readonly at: Expr;
  readonly value: Expr;
}

/** One sweep: first what earlier sweeps are enough for, then the items. */
export interface RowSweep {
  readonly picks: Pick[];
  readonly items: Item[];
}

/**
 * Sorts the stages of a row kernel into passes. The last may have no items: its picks wait for all
 * sweeps.
 */
export function planRow(
  stages: readonly RowStage[],
  column: IndexExpr,
  facts: RowFacts,
  fuse: boolean,
): readonly RowSweep[] {
  const passes: RowSweep[] = [];
  const passAt = (index: number): RowSweep => {
    while (passes.length <= index) passes.push({ picks: [], items: [] });
    return passes[index]!;
  };
  /** Sweeps that must be over before a result is known. */
  const ready = new Map<Node, number>();
  const earliest = (exprs: readonly Expr[]): number =>
    Math.max(0, ...exprs.flatMap((expr) => [...facts.results(expr)].map((node) => ready.get(node)!)));
  for (const stage of stages) {
    const pick = pickOf(stage, column, facts);
    if (pick !== undefined) {
      const pass = earliest([pick.at, pick.value]);
      passAt(pass).picks.push(pick);
      ready.set(stage.node, pass);
      continue;
    }
    const joint = fuse ? jointOf(stage, passes, facts) : undefined;
    const pass = joint?.pass ?? earliest([stage.value]);
    if (joint === undefined) passAt(pass).items.push({ kind: 'fold', stage });
    else passes[pass]!.items[joint.place] = joint.item;
    ready.set(stage.node, pass + 1);
  }
  return passes;
}

/** What an item evaluates at every element. */
export function elementOf(item: Item): Expr {
  switch (item.kind) {
    case 'fold':
      return item.stage.value;
    case 'softmax':
      return item.max.value;
    case 'moments':
      return item.sum.value;
    default:
      return item satisfies never;
  }
}

/** where(column = at, value, 0), summed: how a class's logit is found among those of a row. */
function pickOf(stage: RowStage, column: IndexExpr, facts: RowFacts): Pick | undefined {
  const { value } = stage;
  if (
    column.kind === 'const' ||
    stage.arg ||
    stage.monoid !== 'sum' ||
    value.kind !== 'op' ||
    value.op !== 'where'
  )
    return undefined;
  const [condition, yes, no] = value.args as readonly [Expr, Expr, Expr];
  if (no.kind !== 'constant' || no.value !== 0 || condition.kind !== 'op' || condition.op !== 'eq')
    return undefined;
  const isPlace = (expr: Expr): boolean =>
    expr.kind === 'index' && expr.index === column && expr.dtype === 'i32';
  const [a, b] = condition.args as readonly [Expr, Expr];
  const at = isPlace(a) ? b : isPlace(b) ? a : undefined;
  return at === undefined || facts.varies(at) ? undefined : { stage, at, value: yes };
}

/** A stage that can be accumulated together with an item of an earlier pass. */
function jointOf(
  stage: RowStage,
  passes: readonly RowSweep[],
  facts: RowFacts,
): { pass: number; place: number; item: Item } | undefined {
  for (const [pass, { items }] of passes.entries())
    for (const [place, earlier] of items.entries()) {
      if (earlier.kind !== 'fold' || earlier.stage.arg) continue;
      const item = softmaxOf(earlier.stage, stage) ?? momentsOf(earlier.stage, stage, facts);
      if (item !== undefined) return { pass, place, item };
    }
  return undefined;
}

const isSum = (stage: RowStage): boolean => !stage.arg && stage.monoid === 'sum' && stage.dtype === 'f32';

/** Whether a node is Σ exp(x − max x) over a row. */
export function isSumOfSoftmax(node: Node, stages: readonly RowStage[]): boolean {
  const sum = stages.find((stage) => stage.node === node);
  return sum !== undefined && stages.some((stage) => !stage.arg && softmaxOf(stage, sum) !== undefined);
}

function softmaxOf(max: RowStage, sum: RowStage): Item | undefined {
  if (max.monoid !== 'max' || max.dtype !== 'f32' || !isSum(sum)) return undefined;
  const centre =
    sum.value.kind === 'op' && sum.value.op === 'exp' ? centreOf(sum.value.args[0]!, max) : undefined;
  return centre?.kind === 'result' && centre.node === max.node ? { kind: 'softmax', max, sum } : undefined;
}

function momentsOf(sum: RowStage, squares: RowStage, facts: RowFacts): Item | undefined {
  if (!isSum(sum) || !isSum(squares) || squares.value.kind !== 'op') return undefined;
  const { op, args } = squares.value;
  const [a, b] = args as readonly [Expr, Expr];
  const squared = op === 'mul' ? a === b : op === 'pow' && b.kind === 'constant' && b.value === 2;
  const centre = squared ? centreOf(a, sum) : undefined;
  if (centre === undefined || facts.varies(centre)) return undefined;
  const needed = [...facts.results(centre)];
  return needed.length === 1 && needed[0] === sum.node
    ? { kind: 'moments', sum, squares, centre }
    : undefined;
}

/** c, where the expression is x − c for the x that a stage accumulates. */
export function centreOf(expr: Expr, stage: RowStage): Expr | undefined {
  if (expr.kind !== 'op' || expr.op !== 'sub' || expr.args[0] !== stage.value) return undefined;
  return expr.args[1];
}
