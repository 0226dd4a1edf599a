// Where the invocations that share a row combine their partial results: each writes its own to
// workgroup memory, and after a barrier each combines them all in one fixed order; many partial
// results are combined in two rounds.

import type { Monoid } from '../../../ir/ops.ts';
import { dtypeBytes } from '../../../ir/dtype.ts';
import type { RowStage } from '../../../schedule/kernel.ts';
import { reducesInSubgroups } from '../../../schedule/machine.ts';
import type { Target } from '../../../schedule/target.ts';
import {
  addInts,
  constant,
  less,
  mulInts,
  operation,
  subgroup,
  type LoopBuilder,
} from '../../loop/builder.ts';
import { registerOf } from '../../expression/lowering.ts';
import type { LoopBuffer, RegisterType, Value, Width } from '../../loop/loop.ts';
import { combine } from './monoid.ts';

/** A value that every invocation of a row has a part of. */
export interface Ask {
  readonly monoid: Monoid;
  readonly value: Value;
}

/** How the invocations of a workgroup are assigned to its rows. */
export interface RowSeats {
  /** Invocations of a row. */
  readonly parts: number;
  /** Rows of a workgroup. */
  readonly rows: number;
  /** This invocation's number among those of its row. */
  readonly part: Value;
  /** This row's number in the workgroup. */
  readonly place: Value;
  /** Whether neighbouring invocations belong to one row (else to neighbouring rows). */
  readonly together: boolean;
  /** Elements of the widest value that is joined. */
  readonly width: Width;
  /** Values of every invocation that there is room for at once. */
  readonly atOnce: number;
  /**
   * The row is the whole workgroup, whose subgroups can reduce; of so many invocations it is surely
   * one subgroup.
   */
  readonly subgroup: number | undefined;
}

type SharedType = Exclude<RegisterType, 'bool'>;
const sharedTypes: readonly SharedType[] = ['f32', 'i32', 'u32', 'f64', 'i64', 'u64'];
const sharedType = (type: RegisterType): SharedType => (type === 'bool' ? 'u32' : type);
const nameOf = (type: SharedType): string => `partial_${type}`;

/** Names of the workgroup arrays that joins may use. */
export const joinNames: readonly string[] = sharedTypes.map(nameOf);

/**
 * Workgroup memory for one value of every invocation, twice, in an array for each type that the
 * stages accumulate.
 */
export function joinBytes(
  { parts, rows, width }: Pick<RowSeats, 'parts' | 'rows' | 'width'>,
  stages: readonly RowStage[],
): number {
  const types = new Set(stages.map((stage) => sharedType(registerOf(stage.dtype))));
  if (stages.some((stage) => stage.arg)) types.add('i32');
  return [...types].reduce((sum, type) => sum + 2 * parts * rows * width * dtypeBytes(type), 0);
}

/** Above this many partials the combination takes two rounds. */
const oneRound = 16;

export class Join {
  readonly #b: LoopBuilder;
  readonly #seats: RowSeats;
  /** Elements in use of each workgroup array. */
  readonly #sizes = new Map<SharedType, number>();
  #rounds = 0;

  constructor(b: LoopBuilder, seats: RowSeats) {
    this.#b = b;
    this.#seats = seats;
  }

  /** The workgroup arrays used so far. */
  get buffers(): readonly LoopBuffer[] {
    return [...this.#sizes].map(([type, size]) => ({
      name: nameOf(type),
      space: 'workgroup',
      dtype: type,
      size,
      access: 'read_write',
    }));
  }

  /**
   * Combines each value over the invocations of the row, and gives every invocation the totals.
   * Uniform control flow only.
   */
  all(asks: readonly Ask[]): readonly Value[] {
    if (this.#seats.parts === 1) return asks.map((ask) => ask.value);
    const { atOnce } = this.#seats;
    const totals: Value[] = [];
    for (let i = 0; i < asks.length; i += atOnce) totals.push(...this.#round(asks.slice(i, i + atOnce)));
    return totals;
  }

  #round(asks: readonly Ask[]): readonly Value[] {
    const { parts, part, subgroup: smallest } = this.#seats;
    if (smallest !== undefined) return this.#bySubgroups(asks, smallest);
    const b = this.#b;
    const cells = this.#reserve(asks);
    asks.forEach((ask, i) => cells[i]!.store(part, ask.value));
    b.barrier();
    let left = parts;
    if (parts > oneRound) {
      left = 2 ** Math.floor(Math.log2(parts) / 2);
      b.if(less(part, constant(left)), () => {
        const sums = this.#gather(asks, cells, part, left, constant(parts));
        sums.forEach((sum, i) => cells[i]!.store(part, sum));
      });
      b.barrier();
    }
    const totals = this.#gather(asks, cells, constant(0), 1, constant(left));
    this.#rounds += 1;
    return totals.map((total, i) => b.let(total, asks[i]!.monoid));
  }

  /**
   * Each subgroup first; then every invocation combines the results of all subgroups, however many
   * there are.
   */
  #bySubgroups(asks: readonly Ask[], smallest: number): readonly Value[] {
    const b = this.#b;
    const own = asks.map(({ monoid, value }) => b.subgroupReduce(monoid, value, monoid));
    if (this.#seats.parts <= smallest) return own;
    const cells = this.#reserve(asks);
    b.if(operation('eq', [subgroup('place'), constant(0)], 'bool'), () => {
      cells.forEach((cell, i) => cell.store(subgroup('number'), own[i]!));
    });
    b.barrier();
    const count = b.let(subgroup('count'), 'subgroups');
    const totals = this.#gather(asks, cells, constant(0), 1, count);
    this.#rounds += 1;
    return totals.map((total, i) => b.let(total, asks[i]!.monoid));
  }

  /** Combines the cells first, first + stride … below end. */
  #gather(asks: readonly Ask[], cells: readonly Cell[], first: Value, stride: number, end: Value): Value[] {
    const b = this.#b;
    const totals = cells.map((cell, i) => b.var(asks[i]!.monoid, cell.load(first)));
    b.for('other', addInts(first, constant(stride)), end, stride, (other) => {
      totals.forEach((total, i) => b.assign(total, combine(asks[i]!.monoid, total, cells[i]!.load(other))));
    });
    return totals;
  }

  /**
   * A cell an invocation for each ask. Rounds alternate between two sets of cells (double
   * buffering): before one is written again, the barrier of the round between ensures that all
   * invocations have read it.
   */
  #reserve(asks: readonly Ask[]): readonly Cell[] {
    const b = this.#b;
    const { parts, rows, place, together, width: room } = this.#seats;
    const counts = new Map<SharedType, number>();
    return asks.map(({ value }): Cell => {
      const type = sharedType(value.type);
      const count = counts.get(type) ?? 0;
      counts.set(type, count + 1);
      const { width } = value;
      const size = parts * rows * room;
      const base = (2 * count + (this.#rounds & 1)) * size;
      this.#sizes.set(type, Math.max(this.#sizes.get(type) ?? 0, base + size));
      const slot = (part: Value): Value => {
        const seat = together
          ? addInts(mulInts(place, constant(parts)), part)
          : addInts(mulInts(part, constant(rows)), place);
        return b.let(addInts(mulInts(seat, constant(room)), constant(base)), 'slot');
      };
      const buffer = nameOf(type);
      return {
        load: (part) => {
          const raw: Value = { kind: 'load', buffer, index: slot(part), aligned: true, type, width };
          return b.let(value.type === 'bool' ? operation('cast', [raw], 'bool') : raw, 'partial');
        },
        store: (part, given) => {
          const stored = given.type === 'bool' ? operation('cast', [given], type) : given;
          b.store(buffer, slot(part), stored, true);
        },
      };
    });
  }
}

/** One value of each invocation of a row, in workgroup memory. */
interface Cell {
  load(part: Value): Value;
  store(part: Value, value: Value): void;
}

/**
 * Invocations that a workgroup may have and still be one subgroup, where subgroups reduce all that
 * the row is asked for.
 */
export function filledSubgroup(
  target: Target,
  { stages }: { readonly stages: readonly RowStage[] },
): number | undefined {
  const { subgroups } = target;
  if (subgroups === undefined || !stages.every(({ dtype }) => reducesInSubgroups(target, dtype)))
    return undefined;
  return subgroups.inOrder === true ? subgroups.min : 1;
}
