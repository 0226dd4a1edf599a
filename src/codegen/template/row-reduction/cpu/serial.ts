// row-reduction on a CPU core: one thread computes a row alone, or several groups of four rows if rows are
// neighbours in memory. In each iteration a sweep takes several groups of elements, each with accumulators of
// its own, so that no sum waits for the one before. Elements that do not fill a whole iteration, or a whole
// group of four, have iterations of their own. Expensive values are kept in memory for the next sweep
// (cpu/values.ts).

import { CompilerBug } from '../../../../errors.ts';
import { groupsInRegister } from '../../../../schedule/machine.ts';
import type { Node } from '../../../../ir/graph.ts';
import {
  addIndex,
  axisIndex,
  constantIndex,
  scaleIndex,
  type IndexExpr,
} from '../../../../ir/index-algebra/expr.ts';
import { masks, type Masks } from '../../../../schedule/body/masks.ts';
import type { Expr } from '../../../../schedule/expression/expr.ts';
import type { Axis, RowStage, Write } from '../../../../schedule/kernel.ts';
import { addInts, constant, operation, type LoopBuilder } from '../../../loop/builder.ts';
import type { AxisBinding, LoweringOptions } from '../../../expression/binding.ts';
import { Lowering } from '../../../expression/lowering.ts';
import type { Loop, Value, Width } from '../../../loop/loop.ts';
import type { FittingStrategy } from '../../shared/first-fit.ts';
import { bufferName, finish, forUnits, groupNumber, openBuilder, type Frame } from '../../shared/frame.ts';
import { rowWork, type RowWork } from '../outline.ts';
import { foldOnCore, laneOfState, placesOf, type RowFold, type State } from '../gpu/fold.ts';
import { pickedOf } from '../pick.ts';
import { elementOf, type RowSweep } from '../plan.ts';
import { isPoisoned, softmaxInstead } from '../softmax.ts';
import type { Lanes, PiecedAxis, RowBody } from '../tiling.ts';
import { alongRow, reachOf, type RowPosition, type StepRange } from './along.ts';
import { neededUnits, serialRows, type RowStretch, type SerialRows } from './stretch.ts';
import { effortOf, homeArrays, homesOf, RowValues, worthKeeping, type Home } from './values.ts';
import { areNeededBelow, pointNeeded } from '../../shared/needed.ts';
import { storeAt } from '../../shared/store-value.ts';

/** Rows on a core: each has a thread for itself. */
export const serial: FittingStrategy<RowBody> = {
  loop(frame) {
    if (frame.target.serial === undefined) return undefined;
    return new SerialEmitter(frame, rowWork(frame.kernel)).run();
  },
};

/** Effort of a sweep that hides the latency of loading another row's elements. */
const worthOverlap = 16;

/** A row, or four, of those that are handled together. */
interface Seat {
  readonly place: IndexExpr;
  readonly atoms: readonly (readonly [IndexExpr, Value])[];
  readonly results: Map<Node, Value>;
}

/**
 * The first sweep of a row as a part of the second one of the row before, whose arithmetic leaves
 * memory time to come near.
 */
interface Ahead {
  readonly fold: RowFold;
  readonly expr: Expr;
  /** The results of the row before: of so many chains as fill a register, and of single elements. */
  readonly states: readonly State[];
  readonly tail: State;
  readonly end: Value;
}

/** What is accumulated of a row or a block: by seat, chain and fold, and of single elements by seat and fold. */
interface RowLevel {
  readonly ends: readonly (readonly (readonly State[])[])[];
  readonly tails: readonly (readonly State[])[] | undefined;
}

class SerialEmitter {
  readonly #frame: Frame;
  readonly #work: RowWork;
  readonly #row: Axis;
  readonly #column: Axis;
  readonly #stages: readonly RowStage[];
  readonly #b: LoopBuilder;
  readonly #plan: SerialRows;
  readonly #name: (node: Node) => string;
  readonly #instead: NonNullable<LoweringOptions['instead']>;
  /** The stretch of rows that is being written. */
  #lanes: Lanes = 'none';
  #seats: readonly Seat[] = [];
  #ahead: Ahead | undefined;
  /** What holds for the elements that a run surely asks for. */
  readonly #certain: ReturnType<Masks['certainBelow']>;
  readonly #homes: readonly Home[];
  #values: RowValues;

  constructor(frame: Frame, work: RowWork) {
    const { body } = frame.kernel;
    if (body.kind !== 'row-reduction')
      throw new CompilerBug('row-reduction template', `got a ${body.kind} kernel`);
    this.#frame = frame;
    this.#work = work;
    this.#row = body.row;
    this.#column = body.column;
    this.#stages = body.stages;
    this.#plan = serialRows(frame.kernel, body, work, frame.target);
    const { kept, stretches } = this.#plan;
    this.#certain = body.bound && masks.value.certainBelow(frame.kernel.pool, body.column, body.bound);
    // Results along columns lie far from each other in memory: values that wait go to a dense array
    // instead.
    const results = stretches.every(({ lanes }) => lanes === 'column') ? work.perElement : [];
    this.#homes = homesOf(kept, frame, body.column, results);
    this.#b = openBuilder(
      frame,
      this.#homes.flatMap((home) => ('array' in home ? [home.array] : [])),
    );
    this.#values = new RowValues(this.#b, [], []);
    this.#name = bufferName(frame);
    this.#instead = softmaxInstead(this.#b, body.stages);
  }

  run(): Loop {
    const { stretches, kept, room } = this.#plan;
    const b = this.#b;
    const [main, ...rest] = stretches as readonly [RowStretch, ...RowStretch[]];
    const { grid } = forUnits(
      b,
      this.#frame.target,
      main.count,
      main.hint,
      (unit) => this.#needed(main, unit),
      main.groups,
      (first, end) => this.#open(main, first, end),
      neededUnits(this.#b, this.#frame, this.#row, main),
    );
    this.#ahead = undefined;
    if (rest.length > 0)
      b.if(operation('eq', [groupNumber(grid), constant(grid[0] * grid[1] - 1)], 'bool'), () => {
        for (const stretch of rest)
          b.for(stretch.hint, constant(stretch.first), constant(stretch.first + stretch.count), 1, (unit) =>
            this.#unit(stretch, unit),
          );
      });
    const together = main.places.length > 1 ? `, ${main.places.length} x 4 at once` : '';
    const waits = kept.length > 0 ? `, ${kept.length} values kept` : '';
    const note = `${this.#row.extent} rows of ${this.#column.extent}, lanes along ${main.lanes}${together}${waits}`;
    return finish(this.#frame, b, grid, [1, 1, 1], note, homeArrays(kept, this.#homes, room));
  }

  #needed(stretch: RowStretch, unit: Value): void {
    const { places, atom, lanes } = stretch;
    const row: Seat = { place: places[0]!, atoms: [[atom, unit]], results: new Map() };
    const lowering = (): Lowering => this.#perRow(row);
    const always = lanes === 'row' ? constant(1, 'bool') : undefined;
    const isNeeded = always ?? pointNeeded(this.#b, this.#frame, this.#row, lowering);
    this.#b.if(isNeeded, () => this.#unit(stretch, unit));
  }

  #unit({ lanes, atom, places }: RowStretch, unit: Value): void {
    const { passes, perElement } = this.#work;
    this.#lanes = lanes;
    this.#seats = places.map((place) => ({ place, atoms: [[atom, unit]], results: new Map() }));
    this.#values = new RowValues(this.#b, this.#plan.kept, this.#homes);
    const ahead = this.#ahead;
    if (ahead === undefined) for (const pass of passes) this.#pass(pass);
    else {
      const b = this.#b;
      const [seat] = this.#seats as [Seat];
      this.#total(seat, ahead.fold, ahead.states, ahead.tail);
      const last = operation('sub', [ahead.end, constant(1)], 'i32');
      const next = b.let(operation('min', [addInts(unit, constant(1)), last], 'i32'), 'next');
      const states = ahead.states.map(() => ahead.fold.open(4));
      const tail = ahead.tail.length > 0 ? ahead.fold.open(1) : [];
      const take = this.#taking({ ...seat, atoms: [[atom, next]] }, ahead, states, tail);
      passes.slice(1).forEach((pass, i) => this.#pass(pass, i === 0 ? take : undefined));
      states.forEach((state, i) => this.#assign(ahead.states[i]!, state));
      this.#assign(ahead.tail, tail);
    }
    this.#rowWrites();
    if (perElement.length === 0) return;
    const exprs = perElement.map(({ value }) => value);
    const along = this.#lanes === 'column';
    const sweep = (
      reach: StepRange | undefined,
      at: (seat: Seat, place: RowPosition, isCertain: boolean) => Lowering,
    ): void =>
      alongRow(
        this.#b,
        this.#along,
        along,
        this.#plan.chainsOf(exprs),
        (places, isCertain) => {
          for (const place of places) {
            const lanes = this.#widthAt(place) === 4 ? this.#column : undefined;
            const axis = this.#lanes === 'row' ? this.#row : lanes;
            for (const seat of this.#seats) this.#store(perElement, at(seat, place, isCertain), axis);
          }
        },
        reach,
      );
    const reach = this.#reach;
    sweep(reach, (seat, place, isCertain) => this.#at(seat, place, exprs, isCertain));
    // No earlier sweep has been where nothing counts: no value waits there.
    if (reach !== undefined && !areNeededBelow(this.#frame, this.#column))
      sweep({ from: reach.to }, (seat, place) => this.#bind(seat, place));
  }

  get #reach(): (StepRange & { readonly to: Value }) | undefined {
    const along = this.#lanes === 'column';
    return reachOf(this.#b, this.#frame, this.#column, along, this.#certain?.end);
  }

  /**
   * Before the loop over rows: the first sweep of the first one, where rows then make that of the
   * next.
   */
  #open({ lanes, atom, places }: RowStretch, first: Value, end: Value): void {
    const [own, following] = this.#work.passes;
    const [item] = own?.items ?? [];
    const { body } = this.#frame.kernel;
    // Rows that are left out would break the chain.
    if ('needed' in body && body.needed !== undefined) return;
    if (lanes !== 'column' || item?.kind !== 'fold' || following === undefined) return;
    if (own!.items.length > 1 || own!.picks.length > 0 || item.stage.arg || following.items.length === 0)
      return;
    const expr = item.stage.value;
    if (effortOf([expr]) >= worthKeeping || effortOf(following.items.map(elementOf)) < worthOverlap) return;
    this.#lanes = lanes;
    const fold = this.#foldOf(item.stage, constant(0));
    const inRegister = groupsInRegister(this.#frame.target);
    const chains = Math.min(inRegister, Math.floor(this.#column.extent / 4));
    const states = Array.from({ length: chains }, () => fold.open(4));
    const tail = this.#hasTail ? fold.open(1) : [];
    this.#ahead = { fold, expr, states, tail, end };
    const seat: Seat = { place: places[0]!, atoms: [[atom, first]], results: new Map() };
    const take = this.#taking(seat, this.#ahead, states, tail);
    const reach = this.#reach;
    const all = reach && { to: reach.to };
    alongRow(this.#b, this.#along, true, chains, (at) => at.forEach(take), all);
  }

  /** Folds a row's elements ahead of its turn. */
  #taking(
    seat: Seat,
    { fold, expr }: Ahead,
    states: readonly State[],
    tail: State,
  ): (place: RowPosition, chain: number) => void {
    return (place, chain) => {
      const step = { lowering: this.#bind(seat, place), valid: undefined };
      step.lowering.value(expr);
      const into = this.#widthAt(place) === 1 ? tail : states[chain % states.length]!;
      this.#assign(into, fold.take(into, [step]));
    };
  }

  #assign(into: State, from: State): void {
    from.forEach((value, k) => this.#b.assign(into[k]!, value));
  }

  /** The axis that sweeps run along. */
  get #along(): PiecedAxis {
    return { ...this.#column, piece: this.#plan.piece };
  }

  get #hasTail(): boolean {
    return this.#lanes === 'column' && (this.#plan.piece ?? this.#column.extent) % 4 !== 0;
  }

  #bind(
    seat: Seat,
    { column, atoms }: Pick<RowPosition, 'column' | 'atoms'>,
    isCertain: boolean = false,
  ): Lowering {
    const substitution = new Map([
      [this.#row.atom, seat.place],
      [this.#column.atom, column],
    ]);
    const binding: AxisBinding = { substitution, atoms: new Map([...seat.atoms, ...atoms]) };
    const lowering = new Lowering(this.#b, this.#frame.kernel.pool, binding, this.#name, {
      instead: this.#instead,
      ...(isCertain && this.#certain && { certain: this.#certain.conditions }),
    });
    for (const [node, value] of seat.results) lowering.results.set(node, value);
    return lowering;
  }

  /** Lowers values of the whole row. */
  #perRow(seat: Seat): Lowering {
    return this.#bind(seat, { column: axisIndex('nowhere', this.#column.extent), atoms: [] });
  }

  /** Lowers values at a place of the row; `exprs` are those that this sweep evaluates. */
  #at(seat: Seat, place: RowPosition, exprs: readonly Expr[], isCertain: boolean): Lowering {
    const lowering = this.#bind(seat, place, isCertain);
    const number = this.#seats.indexOf(seat);
    const along = this.#lanes === 'column';
    const slot = along
      ? place.slot
      : addIndex(scaleIndex(place.slot, 4 * this.#seats.length), constantIndex(4 * number));
    this.#values.exchange(lowering, slot, this.#widthAt(place), exprs);
    return lowering;
  }

  #widthAt({ width }: RowPosition): Width {
    return this.#lanes === 'row' ? 4 : width;
  }

  /** One sweep over the row, then its totals. */
  #pass({ picks, items }: RowSweep, besides: (place: RowPosition, chain: number) => void = () => {}): void {
    const b = this.#b;
    for (const pick of picks)
      for (const seat of this.#seats) {
        const bind = (column: IndexExpr, at: readonly (readonly [IndexExpr, Value])[]): Lowering =>
          this.#bind(seat, { column, atoms: at });
        seat.results.set(pick.stage.node, pickedOf(b, pick, this.#column, this.#perRow(seat), bind));
      }
    if (items.length === 0) return;
    const exprs = items.map(elementOf);
    const chains = this.#plan.chainsOf(exprs);
    const stages = items.map((item) => this.#stageOf(item));
    const wide = this.#lanes === 'none' ? 1 : 4;
    const folds = Array.from({ length: chains }, (_, chain) => {
      const first = this.#lanes === 'column' ? placesOf(constant(chain)) : constant(chain);
      return stages.map((stage) => this.#foldOf(stage, first));
    });
    const last = stages.map((stage) =>
      this.#foldOf(stage, constant(4 * Math.floor(this.#column.extent / 4))),
    );
    const open = (hasTail: boolean): RowLevel => ({
      ends: this.#seats.map(() => folds.map((some) => some.map((fold) => fold.open(wide)))),
      tails: hasTail ? this.#seats.map(() => last.map((fold) => fold.open(1))) : undefined,
    });
    const whole = open(this.#hasTail);
    /** Of the row, then of the block that is summed, and of the block in it. */
    const levels = [whole];
    const take = (places: readonly RowPosition[], isCertain: boolean): void =>
      places.forEach((place, chain) => {
        besides(place, chain);
        this.#seats.forEach((seat, s) => {
          const step = { lowering: this.#at(seat, place, exprs, isCertain), valid: undefined };
          const isTail = this.#widthAt(place) < wide;
          const { ends, tails } = levels.at(-1)!;
          const into = isTail ? tails![s]! : ends[s]![chain]!;
          (isTail ? last : folds[chain]!).forEach((fold, i) =>
            this.#assign(into[i]!, fold.take(into[i], [step])),
          );
        });
      });
    const add = (): void => {
      const { ends, tails } = levels.pop()!;
      const outer = levels.at(-1)!;
      for (const [s, chained] of ends.entries())
        for (const [c, some] of chained.entries())
          some.forEach((state, i) => {
            const into = outer.ends[s]![c]![i]!;
            this.#assign(into, folds[c]![i]!.combine(into, state));
          });
      for (const [s, some] of (tails ?? []).entries())
        some.forEach((state, i) => {
          const into = outer.tails![s]![i]!;
          this.#assign(into, last[i]!.combine(into, state));
        });
    };
    const blocks = { open: (hasTail: boolean): void => void levels.push(open(hasTail)), close: add };
    const wideRow = this.#lanes === 'column';
    alongRow(this.#b, this.#along, wideRow, chains, take, { blocks, ...this.#reach });
    this.#values.swept(exprs);
    this.#seats.forEach((seat, s) => {
      last.forEach((fold, i) => {
        const ends = whole.ends[s]!.map((chain) => chain[i]!);
        this.#total(seat, fold, ends, whole.tails?.[s]?.[i] ?? []);
      });
    });
  }

  #stageOf(item: RowSweep['items'][number]): RowStage {
    if (item.kind !== 'fold')
      throw new CompilerBug('row-reduction template', `${item.kind} saves no sweep on a core`);
    return item.stage;
  }

  #foldOf(stage: RowStage, first: Value): RowFold {
    const poisoned = isPoisoned(stage, this.#stages, this.#frame.kernel.writes);
    return foldOnCore(this.#b, stage, this.#column.atom, first, poisoned);
  }

  #named(fold: RowFold, state: State): State {
    return state.map((value, i) => this.#b.let(value, fold.names[i]!));
  }

  /** Accumulators of one fold as one, all lanes in one where they belong to one row. */
  #lanesTogether(fold: RowFold, chains: readonly State[]): State {
    let some = chains.map((state) => this.#named(fold, state));
    const pairs = (): State[] =>
      some.flatMap((state, i) => {
        if (i % 2 === 1) return [];
        const other = some[i + 1];
        return [other === undefined ? state : this.#named(fold, fold.combine(state, other))];
      });
    // Neighbours are in one register where registers are wide: whole ones come together first.
    const inRegister = groupsInRegister(this.#frame.target);
    const wholes = (states: State[]): State[] => {
      const half = states.length / 2;
      if (inRegister === 1 || half < inRegister || half % 1 !== 0) return states;
      return wholes(
        states.slice(0, half).map((state, i) => this.#named(fold, fold.combine(state, states[half + i]!))),
      );
    };
    some = wholes(some);
    while (some.length > 1) some = pairs();
    if (this.#lanes !== 'column') return some[0]!;
    some = [0, 1, 2, 3].map((lane) => laneOfState(some[0]!, lane));
    while (some.length > 1) some = pairs();
    return some[0]!;
  }

  /**
   * What a fold gives for a row. Nobody else has a part of it: what the fold asks for is what it
   * has.
   */
  #total(seat: Seat, fold: RowFold, ends: readonly State[], tail: State): void {
    const own = this.#lanesTogether(fold, ends);
    const state = tail.length > 0 ? this.#named(fold, fold.combine(own, tail)) : own;
    const join = fold.join(state, () => this.#perRow(seat));
    let step = join.next();
    while (step.done !== true) step = join.next(step.value.map(({ value }) => value));
    for (const [node, value] of step.value) seat.results.set(node, value);
  }

  #rowWrites(): void {
    const { perRow } = this.#work;
    if (perRow.length === 0) return;
    for (const seat of this.#seats)
      this.#store(perRow, this.#perRow(seat), this.#lanes === 'row' ? this.#row : undefined);
  }

  #store(writes: readonly Write[], lowering: Lowering, lanes: Axis | undefined): void {
    const values = writes.map((write) => lowering.value(write.value));
    writes.forEach((write, i) =>
      storeAt(this.#b, lowering, this.#name(write.node), write, values[i]!, lanes, { anywhere: true }),
    );
  }
}
