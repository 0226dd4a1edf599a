// One row of attention on a CPU, whose scores lie in memory. Folds them, and leaves in memory the
// weight of every key for each product, and the factors by which the products are multiplied once
// they are summed.

import type { Node } from '../../../../ir/graph.ts';
import { addInts, both, constant, mulInts, operation, splat } from '../../../loop/builder.ts';
import { argsOf, type Expr } from '../../../../schedule/expression/expr.ts';
import type { Online, RowStage, SumTerm, Write } from '../../../../schedule/kernel.ts';
import { rounded } from '../../../expression/convert.ts';
import type { Lowering } from '../../../expression/lowering.ts';
import type { Monoid } from '../../../../ir/ops.ts';
import type { Value } from '../../../loop/loop.ts';
import { scratchAt } from './core.ts';
import { writeRows } from '../write.ts';
import type { Attention, AttentionRows } from '../rows.ts';
import { combine, combineLanes, identity } from '../../shared/monoid.ts';
import { groupsInRegister } from '../../../../schedule/machine.ts';

/** Where the rows of a workgroup keep scores and weights. */
export interface CoreMemory {
  /** First row. */
  readonly first: Value;
  /** Keys that a row has room for. */
  readonly room: number;
  /** Quads of keys that the rows look at. */
  readonly startQuad: Value;
  readonly endQuad: Value;
  /** The element where a row, by its number in the workgroup, has a quad of keys. */
  readonly slotOf: (offset: Value, quad: Value) => Value;
  readonly statistics: Statistics;
}

/**
 * The numbers that a row leaves for its products: a factor for each that has one, and stages that
 * what is written needs.
 */
export interface Statistics {
  readonly factors: number;
  readonly stages: readonly Node[];
}

export function statisticsOf({ online, outers, stages }: Attention, writes: readonly Write[]): Statistics {
  const used = new Set<Node>();
  const seen = new Set<Expr>();
  const visit = (expr: Expr): void => {
    if (seen.has(expr)) return;
    seen.add(expr);
    if (expr.kind === 'result') used.add(expr.node);
    argsOf(expr).forEach(visit);
  };
  writes.forEach(({ value }) => visit(value));
  return {
    factors: online === undefined ? 0 : outers.length,
    stages: stages.map(({ node }) => node as Node).filter((node) => used.has(node)),
  };
}

export const sizeOfStatistics = ({ factors, stages }: Statistics): number => factors + stages.length;

/** Folds a row and leaves its weights. `offset` is its number in the workgroup. */
export function coreRow(rows: AttentionRows, memory: CoreMemory, offset: Value): void {
  const { body } = rows;
  rows.results.clear();
  if (body.online === undefined) {
    const last = Math.max(0, ...[...body.stages, ...body.outers].map(({ pass }) => pass));
    for (let pass = 0; pass <= last; pass++) sweep(rows, memory, offset, pass);
  } else onlineRow(rows, memory, body.online, offset);
  writeStatistics(rows, memory, offset);
}

/** Leaves the results of a row that are written later, and writes those that belong to the row alone. */
export function writeStatistics(rows: AttentionRows, memory: CoreMemory, offset: Value): void {
  const { factors, stages } = memory.statistics;
  stages.forEach((node, i) => {
    rows.b.store('statistics', statisticAt(memory, offset, factors + i), rows.results.get(node)!, true);
  });
  writeRows(rows);
}

/** The element where a row leaves a number. */
export function statisticAt({ statistics }: CoreMemory, offset: Value, i: number): Value {
  return addInts(mulInts(offset, constant(sizeOfStatistics(statistics))), constant(i));
}

/** Quads of keys at a time: as many as fill a register. */
const atOnce = ({ frame }: AttentionRows): number => groupsInRegister(frame.target);

/** Accumulators of a fold: one for each quad at a time, and one for the quads that are left. */
function chainsOf<T>(rows: AttentionRows, make: () => T): readonly T[] {
  const count = atOnce(rows);
  return Array.from({ length: count === 1 ? 1 : count + 1 }, make);
}

/** Accumulators as one, neighbours first. */
function together(
  { b }: AttentionRows,
  chains: readonly Value[],
  hint: string,
  join: (x: Value, y: Value) => Value,
): Value {
  let some = chains;
  while (some.length > 1)
    some = some.flatMap((value, i) => {
      if (i % 2 === 1) return [];
      const other = some[i + 1];
      return [other === undefined ? value : b.let(join(value, other), hint)];
    });
  return some[0]!;
}

/** Visits the quads of keys of the row, with their scores. `chain` numbers the accumulators that a quad goes to. */
function overKeys(
  rows: AttentionRows,
  { startQuad, endQuad, slotOf }: CoreMemory,
  offset: Value,
  visit: (at: Lowering, inside: Value | undefined, slot: Value, chain: number) => void,
): void {
  const { b, body } = rows;
  const one = (quad: Value, chain: number): void => {
    const slot = slotOf(offset, quad);
    const at = rows.atKeys(quad);
    body.inners.forEach(({ node }, i) => {
      at.results.set(node as Node, b.let(scratchAt(`scores_${i}`, slot, 4), 'score'));
    });
    visit(at, rows.insideKey(quad), slot, chain);
  };
  const count = atOnce(rows);
  if (count === 1) {
    b.for('quad', startQuad, endQuad, 1, (quad) => one(quad, 0));
    return;
  }
  const rest = operation('mod', [operation('sub', [endQuad, startQuad], 'i32'), constant(count)], 'i32');
  const whole = b.let(operation('sub', [endQuad, rest], 'i32'), 'whole');
  b.for('quad', startQuad, whole, count, (quad) => {
    for (let i = 0; i < count; i++) one(addInts(quad, constant(i)), i);
  });
  b.for('quad', whole, endQuad, 1, (quad) => one(quad, count));
}

function masked(value: Value, inside: Value | undefined, otherwise: Value): Value {
  const quad = splat(value, 4);
  return inside === undefined ? quad : operation('where', [inside, quad, otherwise], quad.type);
}

/** Accumulates the stages, and leaves the weights, whose dependencies earlier sweeps have computed. */
function sweep(rows: AttentionRows, memory: CoreMemory, offset: Value, pass: number): void {
  const first = (stage: RowStage): Value =>
    stage.monoid === 'max' ? splat(rows.unvisited(stage), 4) : identity(stage.monoid, 'f32', 4);
  foldPass(rows, memory, offset, pass, first, (stage, found) => {
    const result = rows.b.let(rounded(found, stage.dtype), `row_${stage.monoid}`);
    rows.results.set(stage.node as Node, result);
  });
}

/**
 * Folds the stages of a pass over the keys of `memory`, from `first` on, and leaves the weights of its products there.
 * Stages are visited with what was found.
 */
export function foldPass(
  rows: AttentionRows,
  memory: CoreMemory,
  offset: Value,
  pass: number,
  first: (stage: RowStage) => Value,
  visit: (stage: RowStage, found: Value) => void,
): void {
  const { b, body } = rows;
  const stages = body.stages.filter((stage) => stage.pass === pass);
  const outers = body.outers.flatMap((outer, i) => (outer.pass === pass ? [{ outer, i }] : []));
  if (stages.length + outers.length === 0) return;
  const folds = stages.map((stage) => chainsOf(rows, () => b.var(stage.monoid, first(stage))));
  overKeys(rows, memory, offset, (at, inside, slot, chain) => {
    stages.forEach(({ monoid, value }, i) => {
      const here = masked(at.value(value), inside, identity(monoid, 'f32', 4));
      const fold = folds[i]![chain]!;
      b.assign(fold, combine(monoid, fold, here));
    });
    for (const { outer, i } of outers)
      b.store(`weights_${i}`, slot, masked(at.value(outer.weight), inside, constant(0, 'f32', 4)), true);
  });
  stages.forEach((stage, i) => visit(stage, folded(rows, stage.monoid, folds[i]!, stage.monoid)));
}

/** All lanes of accumulators as one. */
function folded(rows: AttentionRows, monoid: Monoid, chains: readonly Value[], hint: string): Value {
  return combineLanes(
    rows.b,
    monoid,
    together(rows, chains, hint, (x, y) => combine(monoid, x, y)),
    hint,
  );
}

/** The maximum first, then all values that are shifted by it. */
function onlineRow(rows: AttentionRows, memory: CoreMemory, online: Online, offset: Value): void {
  const max = maximum(rows, memory, online, offset, rows.unvisited(online.max));
  shiftBy(rows, online, max);
  const { sum, holds } = foldOnline(rows, memory, online, offset);
  finishOnline(rows, memory, online, offset, {
    max,
    sum: (i) => rows.b.let(rounded(sum(i), online.stages[i]!.stage.dtype), 'row_sum'),
    holds,
  });
}

/** Has values shifted by a maximum of scores, and gives what they are shifted by. */
export function shiftBy({ b, results }: AttentionRows, { max: { node } }: Online, max: Value): Value {
  // Where all scores are −∞ the shift is 0: e^(−∞ − 0) is the 0 that they count for.
  const none = operation('eq', [max, constant(-Infinity, 'f32')], 'bool');
  const shift = b.let(operation('where', [none, constant(0, 'f32'), max], 'f32'), 'shift');
  results.set(node as Node, shift);
  return shift;
}

/** The guards of online terms, each once. */
export function guardsOf({ stages, outers }: Online): readonly Expr[] {
  return [...new Set([...stages, ...outers].flatMap(({ guard }) => guard ?? []))];
}

/** Sums the terms of online form over the keys of `memory`, and leaves the weights of the products there. */
export function foldOnline(
  rows: AttentionRows,
  memory: CoreMemory,
  online: Online,
  offset: Value,
): Pick<OnlineTotals, 'sum' | 'holds'> {
  const { b } = rows;
  const folds = online.stages.map(() => chainsOf(rows, () => b.var('total', constant(0, 'f32', 4))));
  const guards = new Map(
    guardsOf(online).map((guard) => [guard, chainsOf(rows, () => b.var('seen', constant(0, 'bool', 4)))]),
  );
  overKeys(rows, memory, offset, (at, inside, slot, chain) => {
    const term = (core: Expr): Value => b.let(masked(at.value(core), inside, constant(0, 'f32', 4)), 'term');
    online.stages.forEach(({ core }, i) => {
      const fold = folds[i]![chain]!;
      b.assign(fold, operation('add', [fold, term(core)], 'f32'));
    });
    for (const [guard, flags] of guards) {
      const flag = flags[chain]!;
      const holds = masked(at.value(guard), inside, constant(0, 'bool', 4));
      b.assign(flag, operation('or', [flag, holds], 'bool'));
    }
    online.outers.forEach(({ core }, i) => b.store(`weights_${i}`, slot, term(core), true));
  });
  return {
    sum: (i) => folded(rows, 'sum', folds[i]!, 'sum'),
    holds: (guard) => folded(rows, 'or', guards.get(guard)!, 'seen'),
  };
}

/** What a row has found, once all keys are seen. */
export interface OnlineTotals {
  readonly max: Value;
  /** The sum of a stage of online form. */
  readonly sum: (stage: number) => Value;
  /** Whether a guard holds at any key. */
  readonly holds: (guard: Expr) => Value;
}

/** The results of a row, and the factors of its products. */
export function finishOnline(
  rows: AttentionRows,
  memory: CoreMemory,
  online: Online,
  offset: Value,
  { max, sum, holds }: OnlineTotals,
): void {
  const { b } = rows;
  rows.results.set(online.max.node as Node, b.let(rounded(max, online.max.dtype), 'row_max'));
  // A row of nothing but −∞ is −∞ − −∞ at each key, and a row with NaN is NaN at each key.
  const none = operation('eq', [max, constant(-Infinity, 'f32')], 'bool');
  const lost = b.let(operation('or', [none, operation('isNan', [max], 'bool')], 'bool'), 'lost');
  const applies = ({ guard }: SumTerm): Value => (guard === undefined ? constant(1, 'bool') : holds(guard));
  const nanWhereUndefined = ({ shifts }: SumTerm, value: Value, isApplied: Value): Value =>
    shifts ? operation('where', [both(lost, isApplied), constant(NaN, 'f32'), value], 'f32') : value;
  online.stages.forEach((term, i) => {
    rows.results.set(
      term.stage.node as Node,
      b.let(nanWhereUndefined(term, sum(i), applies(term)), 'row_sum'),
    );
  });
  const here = rows.lowering([]);
  online.outers.forEach((term, i) => {
    const isApplied = applies(term);
    const one: Value = constant(1, 'f32');
    const scaled = term.scales.reduce<Value>(
      (product, { op, by }) => operation(op, [product, here.value(by)], 'f32'),
      nanWhereUndefined(term, one, isApplied),
    );
    const factor = term.guard === undefined ? scaled : operation('where', [isApplied, scaled, one], 'f32');
    b.store('statistics', statisticAt(memory, offset, i), factor, true);
  });
}

/** The greatest of scores of the row and of what was found before, NaN where one is. */
export function maximum(
  rows: AttentionRows,
  memory: CoreMemory,
  { max }: Online,
  offset: Value,
  before: Value,
): Value {
  const { b } = rows;
  const maxima = chainsOf(rows, () => b.var('max', constant(-Infinity, 'f32', 4)));
  const flags = chainsOf(rows, () => b.var('odd', constant(0, 'bool', 4)));
  overKeys(rows, memory, offset, (at, inside, _, chain) => {
    const [lanes, odd] = [maxima[chain]!, flags[chain]!];
    const score = b.let(masked(at.value(max.value), inside, constant(-Infinity, 'f32', 4)), 'score');
    b.assign(lanes, operation('pmax', [lanes, score], 'f32'));
    b.assign(odd, operation('or', [odd, operation('isNan', [score], 'bool')], 'bool'));
  });
  const laneMaxima = together(rows, maxima, 'max', (x, y) => operation('pmax', [x, y], 'f32'));
  const odd = together(rows, flags, 'odd', (x, y) => operation('or', [x, y], 'bool'));
  const seen = operation('max', [before, combineLanes(b, 'max', laneMaxima, 'max')], 'f32');
  const lost = combineLanes(b, 'or', odd, 'odd');
  return b.let(operation('where', [lost, constant(NaN, 'f32'), seen], 'f32'), 'row_max');
}
