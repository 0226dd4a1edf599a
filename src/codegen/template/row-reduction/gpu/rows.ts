// row: reductions along a row, then values that need them, in one kernel (softmax, norms,
// cross-entropy). A row is handled by one invocation, or by several whose partial results meet in
// workgroup memory. Between two sweeps its elements wait in registers, in workgroup memory, or
// where they came from (row-reduction/tiling.ts); which sweeps there are, row-reduction/plan.ts
// says. When the row's elements are not neighbours in memory but rows are (a column reduction),
// four rows share the lanes of an invocation instead.

import { CompilerBug } from '../../../../errors.ts';
import type { Node } from '../../../../ir/graph.ts';
import {
  addIndex,
  axisIndex,
  constantIndex,
  scaleIndex,
  type IndexExpr,
} from '../../../../ir/index-algebra/expr.ts';
import type { Expr } from '../../../../schedule/expression/expr.ts';
import { sharesWork } from '../../../../schedule/machine.ts';
import type { Axis, Write } from '../../../../schedule/kernel.ts';
import {
  addInts,
  both,
  builtin,
  constant,
  less,
  mulInts,
  operation,
  type LoopBuilder,
} from '../../../loop/builder.ts';
import type { AxisBinding, LoweringOptions } from '../../../expression/binding.ts';
import { laneAtom, Lowering, quadIndex } from '../../../expression/lowering.ts';
import type { Loop, Value } from '../../../loop/loop.ts';
import type { FittingStrategy } from '../../shared/first-fit.ts';
import {
  bufferName,
  endOf,
  finish,
  foldGrid,
  groupNumber,
  inGroups,
  openBuilder,
  type Frame,
  type Grid,
} from '../../shared/frame.ts';
import { outlineRow, type RowOutline } from '../outline.ts';
import {
  extremum,
  laneOfState,
  placesOf,
  reduction,
  type RowFold,
  type State,
  type RowStep,
} from './fold.ts';
import { onlineSoftmax, runningMoments } from './fused.ts';
import { softmaxInstead } from '../softmax.ts';
import { filledSubgroup, Join, joinNames } from '../../shared/join.ts';
import { groupOf, KeptRows, keptNames } from './kept.ts';
import { pickedOf } from '../pick.ts';
import { elementOf, type Item, type RowSweep } from '../plan.ts';
import {
  blockedAbove,
  blockOf,
  stepsOf,
  totalWidth,
  unitsOf,
  widthOf,
  type RowBody,
  type RowTiling,
} from '../tiling.ts';
import { areNeededBelow, neededOf, pointNeeded } from '../../shared/needed.ts';
import { storeAt } from '../../shared/store-value.ts';

/** A row an invocation, or several that share it. */
export const shared: FittingStrategy<RowBody> = {
  loop: (frame) => new RowEmitter(frame, outlineRow(frame.kernel, frame.target)).run(),
};

class RowEmitter {
  readonly #frame: Frame;
  readonly #plan: RowOutline;
  readonly #row: Axis;
  readonly #column: Axis;
  readonly #instead: NonNullable<LoweringOptions['instead']>;
  readonly #b: LoopBuilder;
  readonly #join: Join;
  readonly #kept: KeptRows;
  readonly #results = new Map<Node, Value>();
  readonly #grid: Grid;
  /** Rows, or quads of rows. */
  readonly #units: number;
  /** Steps along a row: elements, or quads of elements. */
  readonly #steps: number;
  readonly #rowAtom: IndexExpr;
  readonly #columnAtom: IndexExpr;
  readonly #part: Value;
  readonly #place: Value;
  /** Behind the last step that counts. */
  readonly #end: Value;
  #unit: Value = constant(0);
  #inside: Value = constant(1, 'bool');

  constructor(frame: Frame, plan: RowOutline) {
    const { body } = frame.kernel;
    if (body.kind !== 'row-reduction')
      throw new CompilerBug('row-reduction template', `got a ${body.kind} kernel`);
    const { row, column } = body;
    const { lanes, parts, rows, together } = plan.tiling;
    this.#frame = frame;
    this.#plan = plan;
    this.#row = row;
    this.#column = column;
    this.#units = unitsOf(row, lanes);
    this.#steps = stepsOf(column, lanes);
    this.#grid = foldGrid(Math.ceil(this.#units / rows), frame.target);
    this.#rowAtom = lanes === 'row' ? quadIndex('unit', row.extent) : axisIndex('unit', row.extent);
    this.#columnAtom =
      lanes === 'column' ? quadIndex('step', column.extent) : axisIndex('step', column.extent);
    // Neighbouring invocations take neighbouring memory: of one row where elements are, else of
    // neighbouring rows.
    this.#part = parts === 1 ? constant(0) : builtin('local', together ? 0 : 1);
    this.#place = rows === 1 ? constant(0) : builtin('local', together ? 1 : 0);
    // Declared before the body is built: the builder must know that what is loaded from them
    // changes.
    this.#b = openBuilder(frame, [...joinNames, ...keptNames(plan.kept)]);
    this.#instead = softmaxInstead(this.#b, body.stages, sharesWork(frame.target));
    const end = endOf(this.#b, frame, column.extent, body.bound);
    const isWhole = end.kind === 'constant' || plan.tiling.keeping === 'registers';
    this.#end = isWhole
      ? constant(this.#steps)
      : inGroups(this.#b, end, lanes === 'column' ? 4 : 1, this.#steps, 'end_step');
    this.#kept = new KeptRows(this.#b, plan.kept, plan.facts);
    this.#join = new Join(this.#b, {
      parts,
      rows,
      part: this.#part,
      place: this.#place,
      together,
      width: totalWidth(lanes),
      atOnce: plan.joinsAtOnce,
      subgroup: together && rows === 1 ? filledSubgroup(frame.target, body) : undefined,
    });
  }

  run(): Loop {
    const { passes, perElement } = this.#plan;
    this.#rows(() => {
      for (const pass of passes) this.#pass(pass);
      this.#writes();
    });
    const { lanes, parts, rows, keeping, together } = this.#plan.tiling;
    const workgroup = together ? ([parts, rows, 1] as const) : ([rows, parts, 1] as const);
    const who = parts === 1 ? '1 invocation' : `${parts} invocations`;
    const once = passes.filter(({ items }) => items.length > 0).length + perElement.length < 2;
    const where = keeping === 'workgroup' ? 'workgroup memory' : keeping;
    const kept = once || keeping === 'stream' ? '' : `, kept in ${where}`;
    const note = `${this.#row.extent} rows of ${this.#column.extent}, lanes along ${lanes}, ${who} a row${kept}`;
    return finish(this.#frame, this.#b, this.#grid, workgroup, note, [
      ...this.#join.buffers,
      ...this.#kept.buffers(rows * this.#steps, widthOf(lanes)),
    ]);
  }

  /**
   * Runs `body` for this invocation's row. Shared rows must all reach the barriers, so rows past
   * the end repeat the last.
   */
  #rows(needed: () => void): void {
    const { rows, parts } = this.#plan.tiling;
    const b = this.#b;
    const first = mulInts(groupNumber(this.#grid), constant(rows));
    const body = (): void => {
      const perRow = (): Lowering => this.#perRow();
      b.if(rowNeeded(b, this.#frame, this.#plan.tiling, parts === 1 ? this.#unit : first, perRow), needed);
    };
    const unit = b.let(addInts(mulInts(groupNumber(this.#grid), constant(rows)), this.#place), 'unit');
    const exact = this.#grid[0] * this.#grid[1] * rows === this.#units;
    if (exact) {
      this.#unit = unit;
      body();
    } else if (parts === 1) {
      this.#unit = unit;
      b.if(less(unit, constant(this.#units)), body);
    } else {
      this.#unit = b.let(operation('min', [unit, constant(this.#units - 1)], 'i32'), 'unit');
      this.#inside = b.let(less(unit, constant(this.#units)), 'inside');
      body();
    }
  }

  #bind(column: IndexExpr, atoms: ReadonlyMap<IndexExpr, Value>): Lowering {
    const { lanes } = this.#plan.tiling;
    const spread = (atom: IndexExpr): IndexExpr => addIndex(scaleIndex(atom, 4), laneAtom);
    const substitution = new Map<IndexExpr, IndexExpr>([
      [this.#row.atom, lanes === 'row' ? spread(this.#rowAtom) : this.#rowAtom],
      [this.#column.atom, column],
    ]);
    const binding: AxisBinding = { substitution, atoms: new Map([[this.#rowAtom, this.#unit], ...atoms]) };
    const lowering = new Lowering(this.#b, this.#frame.kernel.pool, binding, bufferName(this.#frame), {
      instead: this.#instead,
    });
    for (const [node, value] of this.#results) lowering.results.set(node, value);
    return lowering;
  }

  /** Lowers per-row values. */
  #perRow(): Lowering {
    return this.#bind(this.#columnAtom, new Map());
  }

  /** Lowers values at a step of the row. */
  #stepOf(step: Value): Lowering {
    const { lanes } = this.#plan.tiling;
    const column =
      lanes === 'column' ? addIndex(scaleIndex(this.#columnAtom, 4), laneAtom) : this.#columnAtom;
    return this.#bind(column, new Map([[this.#columnAtom, step]]));
  }

  /** As `#stepOf`; `exprs` are those that this sweep evaluates. */
  #at(step: Value, exprs: readonly Expr[]): Lowering {
    const { lanes } = this.#plan.tiling;
    const lowering = this.#stepOf(step);
    const group = groupOf(step, this.#place, this.#plan.tiling.rows);
    this.#kept.exchange(lowering, group, widthOf(lanes), exprs);
    return lowering;
  }

  /** One sweep over the row, then the totals. */
  #pass({ picks, items }: RowSweep): void {
    for (const pick of picks) {
      const found = pickedOf(this.#b, pick, this.#column, this.#perRow(), (column, atoms) =>
        this.#bind(column, new Map(atoms)),
      );
      this.#results.set(pick.stage.node, found);
    }
    if (items.length === 0) return;
    const exprs = items.map(elementOf);
    const folds = items.map((item) => this.#foldOf(item));
    const states =
      this.#plan.tiling.keeping === 'registers'
        ? this.#unrolledSweep(exprs, folds)
        : this.#loopedSweep(exprs, folds, this.#stepsAtOnce(items));
    this.#kept.swept(exprs);
    this.#totals(
      folds,
      states.map((state, i) => this.#lanesTogether(folds[i]!, state)),
    );
  }

  #foldOf(item: Item): RowFold {
    switch (item.kind) {
      case 'fold': {
        if (!item.stage.arg) return reduction(this.#b, item.stage);
        const first = this.#plan.tiling.lanes === 'column' ? placesOf(this.#part) : this.#part;
        return extremum(this.#b, item.stage, this.#column.atom, first);
      }
      case 'softmax':
        return onlineSoftmax(this.#b, item);
      case 'moments':
        return this.#momentsOf(item);
      default:
        return item satisfies never;
    }
  }

  #momentsOf(item: Extract<Item, { kind: 'moments' }>): RowFold {
    const origin = this.#bind(constantIndex(0), new Map()).value(item.sum.value);
    return runningMoments(this.#b, item, this.#column.extent, origin);
  }

  #unrolledSweep(exprs: readonly Expr[], folds: readonly RowFold[]): State[] {
    const steps = [...this.#unrolled()].map(({ step, valid }): RowStep => ({
      lowering: this.#at(step, exprs),
      valid,
    }));
    return folds.map((fold) => fold.take(undefined, steps));
  }

  /**
   * Several where loads should overlap, or where two reductions are one and each turn has its
   * price.
   */
  #stepsAtOnce(items: readonly Item[]): number {
    const { keeping, parts } = this.#plan.tiling;
    const several = sharesWork(this.#frame.target) || items.some((item) => item.kind !== 'fold');
    // An invocation reads from workgroup memory only what it wrote itself: no other invocation may
    // repeat its steps.
    if (!several || keeping === 'workgroup') return 1;
    return Math.min(4, Math.ceil(this.#steps / parts));
  }

  /** Runs over the row, `atOnce` steps a turn. */
  #loopedSweep(exprs: readonly Expr[], folds: readonly RowFold[], atOnce: number): State[] {
    const { parts, lanes } = this.#plan.tiling;
    const b = this.#b;
    const open = (): State[] => folds.map((fold) => fold.open(widthOf(lanes)));
    const assign = (into: State, from: State): void => from.forEach((value, k) => b.assign(into[k]!, value));
    const stride = parts * atOnce;
    const loop = (into: readonly State[], start: Value, stop: Value, base: Value = constant(0)): void =>
      b.for('step', start, stop, stride, (counter) => {
        const first = addInts(base, counter);
        const steps = Array.from({ length: atOnce }, (_, j): RowStep => {
          const always = j === 0 || this.#steps % stride === 0;
          const place = this.#within(addInts(first, constant(j * parts)), always);
          return { lowering: this.#at(place.step, exprs), valid: place.valid };
        });
        folds.forEach((fold, i) => assign(into[i]!, fold.take(into[i], steps)));
      });
    const states = open();
    const trips = Math.ceil(this.#steps / stride);
    if (trips <= blockedAbove) {
      loop(states, this.#part, this.#end);
      return states;
    }
    // Blocks of about √trips steps, but not fewer than are summed in one go: two short sums instead
    // of one long one.
    const block = stride * blockOf(trips);
    b.for('block', this.#part, this.#end, block, (start) => {
      const inner = open();
      if (this.#steps % block === 0 && this.#end.kind === 'constant')
        loop(inner, constant(0), constant(block), start);
      else {
        const end = operation('min', [addInts(start, constant(block)), this.#end], 'i32');
        loop(inner, start, b.let(end, 'stop'));
      }
      folds.forEach((fold, i) => assign(states[i]!, fold.combine(states[i]!, inner[i]!)));
    });
    return states;
  }

  /** Steps of a row, one by one: what lies past the end repeats the last step. */
  *#unrolled(): Generator<{ step: Value; valid: Value | undefined }> {
    const { parts } = this.#plan.tiling;
    const trips = Math.ceil(this.#steps / parts);
    for (let trip = 0; trip < trips; trip++)
      yield this.#within(addInts(this.#part, constant(trip * parts)), (trip + 1) * parts <= this.#steps);
  }

  /** A step that may lie past the end. */
  #within(step: Value, always: boolean): { step: Value; valid: Value | undefined } {
    const b = this.#b;
    const named = b.let(step, 'step');
    if (always) return { step: named, valid: undefined };
    const last = constant(this.#steps - 1);
    const valid = b.let(operation('le', [named, last], 'bool'), 'valid');
    return { step: b.let(operation('min', [named, last], 'i32'), 'step'), valid };
  }

  /** The registers of a fold as values, all lanes in one where they belong to one row. */
  #lanesTogether(fold: RowFold, state: State): State {
    const b = this.#b;
    const named = (values: State): State => values.map((value, i) => b.let(value, fold.names[i]!));
    const whole = named(state);
    if (this.#plan.tiling.lanes !== 'column') return whole;
    const [x, y, z, w] = [0, 1, 2, 3].map((lane) => laneOfState(whole, lane));
    return named(fold.combine(fold.combine(x!, y!), fold.combine(z!, w!)));
  }

  /**
   * Computes the totals that the folds ask for, all in the same rounds, and keeps their results.
   */
  #totals(folds: readonly RowFold[], ends: readonly State[]): void {
    const joins = folds.map((fold, i) => fold.join(ends[i]!, () => this.#perRow()));
    let open = joins.map((join) => ({ join, step: join.next() }));
    while (open.length > 0) {
      for (const { step } of open)
        if (step.done === true) for (const [node, value] of step.value) this.#results.set(node, value);
      const asking = open.flatMap(({ join, step }) =>
        step.done === true ? [] : [{ join, asks: step.value }],
      );
      const answers = [...this.#join.all(asking.flatMap(({ asks }) => asks))];
      open = asking.map(({ join, asks }) => ({ join, step: join.next(answers.splice(0, asks.length)) }));
    }
  }

  /** Per-row results, then a sweep for per-element ones. */
  #writes(): void {
    const { perRow, perElement, tiling } = this.#plan;
    const { parts, lanes, keeping } = tiling;
    const b = this.#b;
    if (perRow.length > 0) {
      const lowering = this.#perRow();
      const store = (): void => this.#store(perRow, lowering, lanes === 'row' ? this.#row : undefined);
      if (parts === 1) store();
      else b.if(both(this.#inside, operation('eq', [this.#part, constant(0)], 'bool')), store);
    }
    if (perElement.length === 0) return;
    const exprs = perElement.map((write) => write.value);
    const axis = lanes === 'none' ? undefined : lanes === 'row' ? this.#row : this.#column;
    b.if(this.#inside, () => {
      if (keeping === 'registers') {
        for (const { step, valid } of this.#unrolled())
          b.if(valid ?? constant(1, 'bool'), () => this.#store(perElement, this.#at(step, exprs), axis));
        return;
      }
      b.for('step', this.#part, this.#end, parts, (step) =>
        this.#store(perElement, this.#at(step, exprs), axis),
      );
      if (this.#end.kind === 'constant' || areNeededBelow(this.#frame, this.#column)) return;
      // Where nothing counts no sweep has been: what waits between sweeps waits elsewhere.
      const past = operation('sub', [addInts(this.#end, constant(parts - 1)), this.#part], 'i32');
      const turns = operation('div', [past, constant(parts)], 'i32');
      const first = b.let(addInts(this.#part, mulInts(turns, constant(parts))), 'first_left');
      b.for('step', first, constant(this.#steps), parts, (step) =>
        this.#store(perElement, this.#stepOf(step), axis),
      );
    });
  }

  #store(writes: readonly Write[], lowering: Lowering, lanes: Axis | undefined): void {
    const name = bufferName(this.#frame);
    const values = writes.map((write) => lowering.value(write.value));
    writes.forEach((write, i) => storeAt(this.#b, lowering, name(write.node), write, values[i]!, lanes));
  }
}

// Whether rows are needed at all.

/**
 * Whether a row is needed, which has the number `unit`, or any of those that meet at barriers, of
 * which it is the first. `perRow` lowers values of the row.
 */
function rowNeeded(
  b: LoopBuilder,
  frame: Frame,
  { rows, parts, lanes }: RowTiling,
  unit: Value,
  perRow: () => Lowering,
): Value {
  const { body } = frame.kernel;
  if (body.kind !== 'row-reduction') return constant(1, 'bool');
  const needed = neededOf(b, frame, body.row);
  const first = mulInts(unit, constant(lanes === 'row' ? 4 : 1));
  const within = needed === undefined ? constant(1, 'bool') : less(first, needed);
  const isAlone = lanes !== 'row' && (parts === 1 || rows === 1);
  return isAlone ? both(within, pointNeeded(b, frame, body.row, perRow)) : within;
}
