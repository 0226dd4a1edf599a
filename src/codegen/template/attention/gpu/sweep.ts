// Attention in sweeps over the keys: in one where the kernel allows it (online softmax), else in
// one for each statistic that another depends on. Who computes the products of a block of keys is
// told by its units: lanes (gpu/lanes.ts), or matrix units (gpu/mma.ts).

import type { DType } from '../../../../ir/dtype.ts';
import type { Node } from '../../../../ir/graph.ts';
import type { Expr } from '../../../../schedule/expression/expr.ts';
import type { Online, RowStage, SumTerm } from '../../../../schedule/kernel.ts';
import { both, constant, operation, splat } from '../../../loop/builder.ts';
import { rounded } from '../../../expression/convert.ts';
import { registerOf, type Lowering } from '../../../expression/lowering.ts';
import type { Loop, Value } from '../../../loop/loop.ts';
import { Products, type AttentionUnits } from '../products.ts';
import { AttentionRows, type Attention } from '../rows.ts';
import type { KeyBlock } from '../seats.ts';
import { writeRows } from '../write.ts';
import { finish, type Frame } from '../../shared/frame.ts';
import { combine, identity } from '../../shared/monoid.ts';

/** Where invocations stand, and what computes the products of a block of keys. */
export interface Staff {
  readonly rows: AttentionRows;
  readonly units: AttentionUnits;
  readonly note: string;
}

/** The Loop of an attention kernel with this staff. */
export function sweptLoop(frame: Frame, body: Attention, { rows, units, note }: Staff): Loop {
  const work: Work = { rows, units, products: new Products(rows, units) };
  const { online } = body;
  const passes = [...new Set([...body.stages, ...body.outers].map(({ pass }) => pass))].toSorted(
    (x, y) => x - y,
  );
  const walks = passes.map((now) => body.outers.some(({ pass }) => pass === now));
  const compute = (): void => {
    for (const product of body.rowProducts) {
      rows.results.set(product.node as Node, rows.product(product));
      rows.meet();
    }
    if (online !== undefined) onlineSweep(work, online);
    else for (const pass of passes) sweep(work, pass);
    for (const [node, value] of rows.results) rows.results.set(node, rows.own(value));
    writeRows(rows);
    work.products.write(frame.kernel.writes);
  };
  rows.begin(() => {
    if (units.divide === undefined) compute();
    else units.divide(online === undefined ? walks : [body.outers.length > 0], compute);
  });
  const shape = `[${body.batch.extent}] ${body.row.extent} rows over ${body.key.extent} keys`;
  const loop = finish(frame, rows.b, rows.grid, rows.workgroup, `${shape}, ${note}`, units.memory);
  return { ...loop, ...units.maps };
}

/** Where invocations stand, what they do with keys, and what is made of that. */
interface Work {
  readonly rows: AttentionRows;
  readonly units: AttentionUnits;
  readonly products: Products;
}

/** Evaluation at each quad of a block of keys, with their scores known. */
function atScores({ rows, units }: Work, block: KeyBlock): readonly Lowering[] {
  const scores = units.scores(block);
  return block.quads.map(({ quad }, i) => {
    const lowering = rows.atKeys(quad);
    for (const [node, value] of scores[i]!) lowering.results.set(node, value);
    return lowering;
  });
}

/** Of a block's quads, those that this invocation has, one after the other. */
function eachQuad(
  block: KeyBlock,
  at: readonly Lowering[],
  visit: (at: Lowering, inside: Value | undefined) => Value,
): Value[] {
  return block.quads.map(({ inside }, i) => visit(at[i]!, inside));
}

/**
 * One sweep over the keys: accumulates the stages and products whose dependencies earlier sweeps
 * have nanWhereUndefined.
 */
function sweep(work: Work, pass: number): void {
  const { rows, units, products } = work;
  const { b, body } = rows;
  const stages = body.stages.filter((stage) => stage.pass === pass);
  const outers = body.outers.flatMap((outer, i) => (outer.pass === pass ? [i] : []));
  const folds = stages.map((stage) => {
    const { monoid, dtype } = stage;
    const none = identity(monoid, registerOf(dtype), 4);
    return b.var(monoid, monoid === 'max' ? splat(rows.unvisited(stage), 4) : none);
  });
  const sums = outers.map((outer) => units.open(outer));
  rows.overKeys((block) => {
    const lowerings = atScores(work, block);
    stages.forEach(({ monoid, value }, i) => {
      for (const here of eachQuad(block, lowerings, (at, inside) =>
        masked(at.value(value), inside, identity(monoid, 'f32', 4)),
      ))
        b.assign(folds[i]!, combine(monoid, folds[i]!, here));
    });
    const weights = outers.map((outer) =>
      eachQuad(block, lowerings, (at, inside) => weightAt(work, at, body.outers[outer]!.weight, inside)),
    );
    units.add(block, sums, weights);
    if (outers.length > 0) rows.meet();
  });
  stages.forEach((stage, i) => rows.results.set(stage.node as Node, total(rows, stage, folds[i]!)));
  sums.forEach((sum) => products.close(sum));
}

/** Everything in one sweep: sums shrink by e^(old − new) whenever the maximum grows. */
function onlineSweep(work: Work, online: Online): void {
  const { rows, units, products } = work;
  const { b, body } = rows;
  const max = b.var('max', splat(rows.unvisited(online.max), rows.rowWidth));
  const folds = online.stages.map(() => b.var('total', constant(0, 'f32', 4)));
  const guards = new Map<Expr, Value>();
  for (const { guard } of [...online.stages, ...online.outers])
    if (guard !== undefined && !guards.has(guard)) guards.set(guard, b.var('any', constant(0, 'bool', 4)));
  const sums = body.outers.map((_, outer) => units.open(outer));
  rows.overKeys((block) => {
    const lowerings = atScores(work, block);
    const scores = eachQuad(block, lowerings, (at, inside) =>
      b.let(masked(at.value(online.max.value), inside, constant(-Infinity, 'f32', 4)), 'score'),
    );
    const highest = scores.reduce((a, c) => b.let(combine('max', a, c), 'highest'));
    const here = rows.total(highest, 'max', 'block_max');
    const next = b.let(combine('max', max, here), 'new_max');
    // While all scores are −∞ the shift is 0: e^(−∞ − 0) is the 0 that they count for.
    const none = operation('eq', [next, constant(-Infinity, 'f32')], 'bool');
    const shift = b.let(operation('where', [none, constant(0, 'f32'), next], 'f32'), 'shift');
    const shrink = rows.shrinking(max, shift);
    b.assign(max, next);
    for (const at of lowerings) at.results.set(online.max.node as Node, shift);
    // A sum of nothing stays one, whatever the maximum is.
    const odd = operation('isNan', [shrink], 'bool');
    const spared =
      guards.size === 0
        ? shrink
        : b.let(operation('where', [odd, constant(1, 'f32'), shrink], 'f32'), 'spared');
    const factor = ({ guard }: SumTerm): Value => (guard === undefined ? shrink : spared);
    online.stages.forEach((term, i) => {
      const values = eachQuad(block, lowerings, (at, inside) =>
        masked(at.value(term.core), inside, constant(0, 'f32', 4)),
      );
      const sum = term.shifts ? operation('mul', [folds[i]!, factor(term)], 'f32') : folds[i]!;
      b.assign(
        folds[i]!,
        values.reduce((total, value) => operation('add', [total, value], 'f32'), sum),
      );
    });
    for (const [guard, flag] of guards)
      for (const holds of eachQuad(block, lowerings, (at, inside) =>
        masked(at.value(guard), inside, constant(0, 'bool', 4)),
      ))
        b.assign(flag, operation('or', [flag, holds], 'bool'));
    const weights = online.outers.map((term) =>
      eachQuad(block, lowerings, (at, inside) => weightAt(work, at, term.core, inside)),
    );
    const shifting = sums.filter((_, i) => online.outers[i]!.shifts);
    const factors = online.outers.filter(({ shifts }) => shifts).map(factor);
    units.shrink(shifting, factors, operation('ne', [shrink, constant(1, 'f32')], 'bool'));
    units.add(block, sums, weights);
    if (sums.length === 0) rows.meet();
  });
  rows.results.set(online.max.node as Node, b.let(rounded(max, online.max.dtype), 'row_max'));
  // A row of nothing but −∞ is −∞ − −∞ at each key, and a row with NaN is NaN at each key.
  const lost = [
    operation('eq', [max, constant(-Infinity, 'f32')], 'bool'),
    operation('isNan', [max], 'bool'),
  ];
  const none = b.let(operation('or', lost, 'bool'), 'none');
  const nanWhereUndefined = ({ shifts }: SumTerm, sum: Value, isUndefined: Value): Value =>
    shifts ? operation('where', [isUndefined, constant(NaN, 'f32'), sum], 'f32') : sum;
  const applies = (term: SumTerm): Value =>
    term.guard === undefined ? constant(1, 'bool') : anyOf(rows, guards.get(term.guard)!);
  online.stages.forEach((term, i) => {
    const sum = total(rows, term.stage, folds[i]!);
    rows.results.set(
      term.stage.node as Node,
      b.let(nanWhereUndefined(term, sum, both(none, applies(term))), 'row_sum'),
    );
  });
  sums.forEach((sum, i) => {
    const term = online.outers[i]!;
    const anywhere = rows.own(applies(term));
    const undefinedHere = rows.own(none);
    products.close(sum, (value, scale) => {
      const scaled = term.scales.reduce<Value>(
        (product, { op, by }) => rows.scaled(product, op, by, scale(by)),
        nanWhereUndefined(term, value, both(undefinedHere, anywhere)),
      );
      return term.guard === undefined ? scaled : operation('where', [anywhere, scaled, value], 'f32');
    });
  });
}

/** Whether a flag of four lanes is set for any key of the row. */
function anyOf(rows: AttentionRows, flag: Value): Value {
  const { b } = rows;
  const number = operation('where', [flag, constant(1, 'f32', 4), constant(0, 'f32', 4)], 'f32');
  const all = rows.total(b.let(number, 'any'), 'max', 'any');
  rows.meet();
  return b.let(operation('eq', [all, constant(1, 'f32')], 'bool'), 'any');
}

function masked(value: Value, inside: Value | undefined, otherwise: Value): Value {
  const quad = splat(value, 4);
  return inside === undefined ? quad : operation('where', [inside, quad, otherwise], quad.type);
}

function weightAt({ rows, units }: Work, at: Lowering, expr: Expr, inside: Value | undefined): Value {
  const weight = units.rounds === undefined ? at.value(expr) : unrounded(rows, at, expr, units.rounds);
  return rows.b.let(masked(weight, inside, constant(0, 'f32', 4)), 'weight');
}

/** The value before it is rounded to a dtype, where nothing but choices comes after that. */
function unrounded(rows: AttentionRows, at: Lowering, expr: Expr, dtype: DType): Value {
  if (expr.kind !== 'op') return at.value(expr);
  const [x, y, z] = expr.args;
  if (expr.op === 'cast' && expr.dtype === 'f32' && x!.dtype === dtype) return unrounded(rows, at, x!, dtype);
  if (expr.dtype !== dtype) return at.value(expr);
  if (expr.op === 'cast' && x!.dtype === 'f32') return at.value(x!);
  if (expr.op !== 'where') return at.value(expr);
  const choice = [at.value(x!), unrounded(rows, at, y!, dtype), unrounded(rows, at, z!, dtype)];
  return choice[0]!.kind === 'constant'
    ? choice[choice[0]!.value === 0 ? 2 : 1]!
    : rows.b.let(operation('where', choice, 'f32'), 'where');
}

/** The whole row's value of a stage: over lanes, then over the invocations that share the row. */
function total(rows: AttentionRows, stage: RowStage, fold: Value): Value {
  const { b } = rows;
  const all = rows.total(fold, stage.monoid, stage.monoid);
  rows.meet();
  return b.let(rounded(all, stage.dtype), `row_${stage.monoid}`);
}
