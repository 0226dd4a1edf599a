// row: reductions along a row, then values that need them, in one kernel (softmax, norms, cross-entropy). Each pass streams
// the row once; reductions of the same depth share a pass. A row is handled by one invocation, or by a workgroup whose partial
// results meet in a tree in workgroup memory. When the row's elements are not neighbours in memory but rows are (a column
// reduction), four rows share the lanes of an invocation instead.

import { CompilerBug } from '../../errors.ts';
import {
  addIndex,
  atomsOf,
  axisIndex,
  coefficientOf,
  scaleIndex,
  substitute,
  type IndexExpr,
} from '../../ir/index-expr.ts';
import { argsOf, type Expr } from '../../schedule/expr.ts';
import type { Axis, Kernel, RowStage, Write } from '../../schedule/kernel.ts';
import type { Node } from '../../ir/graph.ts';
import type { Target } from '../../schedule/target.ts';
import { addInts, builtin, constant, less, mulInts, operation, type LoopBuilder } from '../builder.ts';
import { laneAtom, Lowering, quadIndex, registerOf, rounded, type Binding } from '../lower.ts';
import type { Loop, LoopBuffer, Value, Width } from '../loop.ts';
import { bufferName, finish, foldGrid, groupNumber, openBuilder, type Frame, type Grid } from './frame.ts';
import { beats, combine, combineLanes, identity, type Best } from './monoid.ts';
import { storeAt } from './store-value.ts';

/** How a row kernel is spread over invocations. */
export interface RowSchedule {
  /** Which axis the vector lanes run along; `none` for rows that are neither contiguous nor a multiple of four. */
  readonly lanes: 'column' | 'row' | 'none';
  /** Invocations that share one row; a power of two. */
  readonly parts: number;
  /** Rows (or quads of rows) per workgroup. */
  readonly rows: number;
}

/** Sums longer than this many terms are summed in blocks, so that the rounding error grows with the square root only. */
const blockedAbove = 64;

/** The heuristic choice of schedule. */
export function rowSchedule(kernel: Kernel, row: Axis, column: Axis, target: Target): RowSchedule {
  const along = { column: countContiguous(kernel, column), row: countContiguous(kernel, row) };
  if (along.row > along.column && row.extent >= 4) {
    const parts = target.cooperative && column.extent >= 64 ? 16 : 1;
    return { lanes: 'row', parts, rows: parts === 1 ? target.workgroupSize : 16 };
  }
  const lanes = column.extent % 4 === 0 ? 'column' : 'none';
  const steps = column.extent / (lanes === 'column' ? 4 : 1);
  if (!target.cooperative || steps <= 16) return { lanes, parts: 1, rows: target.workgroupSize };
  let parts = 32;
  while (parts < 256 && parts * 4 < steps) parts *= 2;
  return { lanes, parts, rows: 1 };
}

/** Reads whose element index grows by one along the axis, weighted towards per-element reads. */
function countContiguous(kernel: Kernel, axis: Axis): number {
  const lane = new Map([[axis.atom, addIndex(scaleIndex(quadIndex('quad', axis.extent), 4), laneAtom)]]);
  const seen = new Set<Expr>();
  let count = 0;
  const visit = (expr: Expr): void => {
    if (seen.has(expr)) return;
    seen.add(expr);
    if (expr.kind === 'read' && coefficientOf(substitute(expr.index, lane), laneAtom) === 1) count += 1;
    argsOf(expr).forEach(visit);
  };
  if (kernel.body.kind === 'row') kernel.body.stages.forEach((stage) => visit(stage.value));
  kernel.writes.forEach((write) => visit(write.value));
  return count;
}

/** The Loop of a row kernel. */
export function rowLoop(frame: Frame): Loop {
  const { kernel, target } = frame;
  if (kernel.body.kind !== 'row') throw new CompilerBug('row template', `got a ${kernel.body.kind} kernel`);
  const { row, column, stages } = kernel.body;
  const schedule = rowSchedule(kernel, row, column, target);
  const emitter = new RowEmitter(frame, row, column, schedule);
  const passes = Math.max(0, ...stages.map((stage) => stage.pass + 1));
  emitter.rows(() => {
    for (let pass = 0; pass < passes; pass++) emitter.pass(stages.filter((stage) => stage.pass === pass));
    emitter.writes(kernel.writes);
  });
  return emitter.finish();
}

class RowEmitter {
  readonly #frame: Frame;
  readonly #row: Axis;
  readonly #column: Axis;
  readonly #schedule: RowSchedule;
  readonly #b: LoopBuilder;
  readonly #shared: LoopBuffer[] = [];
  readonly #results = new Map<Node, Value>();
  readonly #grid: Grid;
  /** Rows, or quads of rows. */
  readonly #units: number;
  readonly #rowAtom: IndexExpr;
  readonly #columnAtom: IndexExpr;
  readonly #part: Value;
  readonly #place: Value;
  #unit: Value = constant(0);
  #inside: Value = constant(1, 'bool');

  constructor(frame: Frame, row: Axis, column: Axis, schedule: RowSchedule) {
    this.#frame = frame;
    this.#row = row;
    this.#column = column;
    this.#schedule = schedule;
    this.#units = schedule.lanes === 'row' ? Math.ceil(row.extent / 4) : row.extent;
    this.#grid = foldGrid(Math.ceil(this.#units / schedule.rows), frame.target);
    this.#rowAtom = schedule.lanes === 'row' ? quadIndex('unit', row.extent) : axisIndex('unit', row.extent);
    this.#columnAtom =
      schedule.lanes === 'column' ? quadIndex('step', column.extent) : axisIndex('step', column.extent);
    this.#part = schedule.parts === 1 ? constant(0) : builtin('local', schedule.rows === 1 ? 0 : 1);
    this.#place = schedule.rows === 1 ? constant(0) : builtin('local', 0);
    // Declared before the body is built: the builder must know that what is loaded from them changes.
    if (schedule.parts > 1 && frame.kernel.body.kind === 'row') {
      const size = schedule.rows * schedule.parts * this.#width;
      const partials = new Map(frame.kernel.body.stages.flatMap(partialsOf));
      for (const [name, dtype] of partials) {
        this.#shared.push({ name, space: 'workgroup', dtype, size, access: 'read_write' });
      }
    }
    this.#b = openBuilder(
      frame,
      this.#shared.map((buffer) => buffer.name),
    );
  }

  /** Steps along a row: elements, or quads of elements. */
  get #steps(): number {
    return this.#schedule.lanes === 'column' ? this.#column.extent / 4 : this.#column.extent;
  }

  /** Lanes of an accumulator after a pass: four rows, or one. */
  get #width(): Width {
    return this.#schedule.lanes === 'row' ? 4 : 1;
  }

  get #laneAxis(): Axis | undefined {
    const { lanes } = this.#schedule;
    return lanes === 'none' ? undefined : lanes === 'row' ? this.#row : this.#column;
  }

  #lowering(step: Value | undefined): Lowering {
    const { lanes } = this.#schedule;
    const spread = (atom: IndexExpr): IndexExpr => addIndex(scaleIndex(atom, 4), laneAtom);
    const substitution = new Map<IndexExpr, IndexExpr>([
      [this.#row.atom, lanes === 'row' ? spread(this.#rowAtom) : this.#rowAtom],
      [this.#column.atom, lanes === 'column' ? spread(this.#columnAtom) : this.#columnAtom],
    ]);
    const atoms = new Map<IndexExpr, Value>([[this.#rowAtom, this.#unit]]);
    if (step !== undefined) atoms.set(this.#columnAtom, step);
    const binding: Binding = { substitution, atoms };
    const lowering = new Lowering(this.#b, this.#frame.kernel.pool, binding, bufferName(this.#frame));
    for (const [node, value] of this.#results) lowering.results.set(node, value);
    return lowering;
  }

  /** Runs `body` for this invocation's row. Shared rows must all reach the barriers, so rows past the end repeat the last. */
  rows(body: () => void): void {
    const { rows, parts } = this.#schedule;
    const b = this.#b;
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

  /** One sweep over the row with an accumulator per stage. */
  pass(stages: readonly RowStage[]): void {
    const { parts, lanes } = this.#schedule;
    const b = this.#b;
    const width: Width = lanes === 'none' ? 1 : 4;
    const trips = Math.ceil(this.#steps / parts);
    const blocked = trips > blockedAbove && stages.some((stage) => !stage.arg && stage.monoid === 'sum');
    const accumulators = stages.map((stage) => this.#open(stage, width));
    if (!blocked) this.#sweep(stages, accumulators, this.#part, constant(this.#steps));
    else {
      // Blocks of about √trips terms: two short sums instead of one long one.
      const block = parts * Math.ceil(Math.sqrt(trips));
      b.for('block', this.#part, constant(this.#steps), block, (start) => {
        const inner = stages.map((stage) => this.#open(stage, width));
        const stop = b.let(
          operation('min', [addInts(start, constant(block)), constant(this.#steps)], 'i32'),
          'stop',
        );
        this.#sweep(stages, inner, start, stop);
        stages.forEach((stage, i) => this.#merge(stage, accumulators[i]!, inner[i]!));
      });
    }
    stages.forEach((stage, i) => this.#results.set(stage.node, this.#close(stage, accumulators[i]!)));
  }

  #open(stage: RowStage, width: Width): Best {
    const type = registerOf(stage.dtype);
    const name = stage.arg ? 'best' : stage.monoid;
    const value = this.#b.var(name, identity(stage.monoid, type, width));
    if (!stage.arg) return { value, at: value };
    // Before anything is seen, the position is the first this lane will see: an all-identity row gives the first index.
    const { lanes } = this.#schedule;
    const first = lanes === 'column' ? mulInts(this.#part, constant(4)) : this.#part;
    const offsets: Value = {
      kind: 'vector',
      args: [0, 1, 2, 3].map((lane) => constant(lane)),
      type: 'i32',
      width: 4,
    };
    const at =
      lanes === 'column'
        ? addInts(first, offsets)
        : operation('add', [first, constant(0, 'i32', width)], 'i32');
    return { value, at: this.#b.var('best_at', at) };
  }

  #sweep(stages: readonly RowStage[], accumulators: readonly Best[], start: Value, stop: Value): void {
    const b = this.#b;
    b.for('step', start, stop, this.#schedule.parts, (step) => {
      const lowering = this.#lowering(step);
      stages.forEach((stage, i) => {
        const value = lowering.value(stage.value);
        const into = accumulators[i]!;
        if (!stage.arg) {
          b.assign(into.value, combine(stage.monoid, into.value, value));
          return;
        }
        const at = lowering.index(lowering.place(this.#column.atom));
        this.#take(stage, into, { value, at }, false);
      });
    });
  }

  #take(stage: RowStage, into: Best, candidate: Best, earlier: boolean): void {
    const b = this.#b;
    const wins = beats(b, stage.monoid === 'min' ? 'min' : 'max', candidate, into, earlier);
    b.assign(into.value, operation('where', [wins, candidate.value, into.value], into.value.type));
    b.assign(into.at, operation('where', [wins, candidate.at, into.at], 'i32'));
  }

  #merge(stage: RowStage, into: Best, from: Best): void {
    if (stage.arg) this.#take(stage, into, from, true);
    else this.#b.assign(into.value, combine(stage.monoid, into.value, from.value));
  }

  /** Lanes, then invocations, come together; gives the row's result (per row lane). */
  #close(stage: RowStage, accumulator: Best): Value {
    const b = this.#b;
    if (stage.arg) return this.#closeArg(stage, accumulator);
    let value = b.let(accumulator.value, stage.monoid);
    if (this.#schedule.lanes === 'column') value = combineLanes(b, stage.monoid, value, stage.monoid);
    if (this.#schedule.parts > 1) {
      [value] = this.#tree([partialOf(value)], ([mine], [other]) => [
        combine(stage.monoid, mine!, other!),
      ]) as [Value];
    }
    return b.let(rounded(value, stage.dtype), `row_${stage.monoid}`);
  }

  #closeArg(stage: RowStage, accumulator: Best): Value {
    const b = this.#b;
    const pick = (a: Best, c: Best): Best => {
      const wins = beats(b, stage.monoid === 'min' ? 'min' : 'max', c, a, true);
      return {
        value: b.let(operation('where', [wins, c.value, a.value], a.value.type), 'best'),
        at: b.let(operation('where', [wins, c.at, a.at], 'i32'), 'best_at'),
      };
    };
    let best: Best = { value: b.let(accumulator.value, 'best'), at: b.let(accumulator.at, 'best_at') };
    if (this.#schedule.lanes === 'column') {
      const lane = (v: Value, i: number): Value => ({
        kind: 'lane',
        arg: v,
        lane: i,
        type: v.type,
        width: 1,
      });
      const quarter = (i: number): Best => ({ value: lane(best.value, i), at: lane(best.at, i) });
      best = pick(pick(quarter(0), quarter(1)), pick(quarter(2), quarter(3)));
    }
    if (this.#schedule.parts > 1) {
      const place: Partial = { buffer: positions, type: 'i32', value: best.at };
      const [, at] = this.#tree([partialOf(best.value), place], ([v, i], [w, j]) => {
        const winner = pick({ value: v!, at: i! }, { value: w!, at: j! });
        return [winner.value, winner.at];
      });
      return at!;
    }
    return best.at;
  }

  /** Folds each invocation's values over the parts of its row, in a fixed tree, and gives everyone the total. */
  #tree(
    entries: readonly Partial[],
    fold: (mine: readonly Value[], other: readonly Value[]) => readonly Value[],
  ): Value[] {
    const b = this.#b;
    const { rows, parts } = this.#schedule;
    const width = this.#width;
    const slot = (part: Value): Value =>
      b.let(mulInts(addInts(mulInts(part, constant(rows)), this.#place), constant(width)), 'slot');
    const load = (i: number, part: Value): Value => {
      const { buffer, type, value } = entries[i]!;
      const raw: Value = { kind: 'load', buffer, index: slot(part), aligned: true, type, width };
      return b.let(value.type === 'bool' ? operation('cast', [raw], 'bool') : raw, 'partial');
    };
    const store = (i: number, part: Value, value: Value): void => {
      const { buffer, type } = entries[i]!;
      b.store(buffer, slot(part), value.type === 'bool' ? operation('cast', [value], type) : value, true);
    };
    entries.forEach((entry, i) => store(i, this.#part, entry.value));
    b.barrier();
    for (let half = parts / 2; half >= 1; half /= 2) {
      b.if(less(this.#part, constant(half)), () => {
        const other = b.let(addInts(this.#part, constant(half)), 'peer');
        const folded = fold(
          entries.map((_, i) => load(i, this.#part)),
          entries.map((_, i) => load(i, other)),
        );
        folded.forEach((value, i) => store(i, this.#part, value));
      });
      b.barrier();
    }
    const totals = entries.map((_, i) => load(i, constant(0)));
    b.barrier();
    return totals;
  }

  /** Per-row results, then a sweep for per-element ones. */
  writes(writes: readonly Write[]): void {
    const b = this.#b;
    const { parts, lanes } = this.#schedule;
    const perElement = writes.filter((write) => atomsOf(write.index).includes(this.#column.atom as never));
    const perRow = writes.filter((write) => !perElement.includes(write));
    const name = bufferName(this.#frame);
    if (perRow.length > 0) {
      const lowering = this.#lowering(undefined);
      const store = (): void => {
        const values = perRow.map((write) => lowering.value(write.value));
        perRow.forEach((write, i) =>
          storeAt(b, lowering, name(write.node), write, values[i]!, lanes === 'row' ? this.#row : undefined),
        );
      };
      if (parts === 1) store();
      else
        b.if(
          operation('and', [this.#inside, operation('eq', [this.#part, constant(0)], 'bool')], 'bool'),
          store,
        );
    }
    if (perElement.length === 0) return;
    const sweep = (): void =>
      b.for('step', this.#part, constant(this.#steps), parts, (step) => {
        const lowering = this.#lowering(step);
        const values = perElement.map((write) => lowering.value(write.value));
        perElement.forEach((write, i) =>
          storeAt(b, lowering, name(write.node), write, values[i]!, this.#laneAxis),
        );
      });
    b.if(this.#inside, sweep);
  }

  finish(): Loop {
    const { lanes, parts, rows } = this.#schedule;
    const workgroup = rows === 1 ? ([parts, 1, 1] as const) : ([rows, parts, 1] as const);
    const note = `${this.#row.extent} rows of ${this.#column.extent}, lanes along ${lanes}, ${parts} invocation(s) a row`;
    return finish(this.#frame, this.#b, this.#grid, workgroup, note, this.#shared);
  }
}

type SharedType = 'f32' | 'i32' | 'u32';

/** One invocation's share of a row's result, and the workgroup array it is folded in. */
interface Partial {
  readonly buffer: string;
  readonly type: SharedType;
  readonly value: Value;
}

function sharedType(type: Value['type']): SharedType {
  return type === 'bool' ? 'u32' : type;
}

/** Workgroup arrays that a stage's partial results go through: values, and positions for an extremum's. */
function partialsOf(stage: RowStage): [name: string, type: SharedType][] {
  const type = sharedType(registerOf(stage.dtype));
  const values: [string, SharedType] = [partialName(type), type];
  return stage.arg ? [values, [positions, 'i32']] : [values];
}

const positions = 'partial_at';

function partialOf(value: Value): Partial {
  const type = sharedType(value.type);
  return { buffer: partialName(type), type, value };
}

function partialName(type: SharedType): string {
  return `partial_${type}`;
}
