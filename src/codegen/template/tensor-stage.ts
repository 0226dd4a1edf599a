// Tiles of 16-bit operands on their way to matrix units: slots of workgroup memory, filled a few rounds ahead. What lies in memory
// as it is needed, in aligned runs of eight, is copied there without passing through registers; anything else (a prologue, a cast,
// a padded window, an odd stride) is computed once per staged element and stored. A tile lies as its operand does: lines along k,
// or along the free axis, and matrices are transposed as they are read. Lines are eight elements longer than they need be, so that
// the eight rows of a matrix start in different banks.

import {
  addIndex,
  axisIndex,
  coefficientOf,
  constantIndex,
  divIndex,
  modIndex,
  scaleIndex,
  substitute,
  type IndexExpr,
} from '../../ir/index-expr.ts';
import type { Expr } from '../../schedule/expr.ts';
import type { Axis } from '../../schedule/kernel.ts';
import { addInts, constant, less, mulInts, operation, splat, type LoopBuilder } from '../builder.ts';
import { laneAtom, Lowering, quadIndex } from '../lower.ts';
import type { LoopBuffer, MatrixType, Value } from '../loop.ts';
import { contiguousReads } from './contract-problem.ts';
import { bufferName, type Frame } from './frame.ts';
import { divideInts, place } from './tile.ts';

/** Elements of one copy: 16 bytes. */
const run = 8;
/** Elements between lines. */
const padding = 8;

export interface Staging {
  readonly operand: MatrixType;
  /** Values of the axes that no side runs along. */
  readonly atoms: readonly (readonly [IndexExpr, Value])[];
  /** Number of the invocation in its workgroup, and how many there are. */
  readonly local: Value;
  readonly threads: number;
}

/** Axes of an operand: products are summed along `k`; `tile` and `depth` of each are staged at a time. */
export interface SideShape {
  readonly free: Axis;
  readonly tile: number;
  readonly k: Axis;
  readonly depth: number;
  readonly slots: number;
}

/** One operand and the tile it is copied to. */
export interface Side extends SideShape {
  readonly buffer: string;
  readonly operand: Expr;
  /** Lines run along k, else along the free axis. */
  readonly alongK: boolean;
  /** Elements from one line to the next, and of a slot. */
  readonly pitch: number;
  readonly size: number;
  /** Runs of eight can be copied as they are. */
  readonly isPlain: boolean;
}

/** Where a tile begins, on the free axis and along k. */
type Origin = readonly [first: Value, k0: Value];

/** An octet atom takes the place of the axis: axis = 8·octet + lane. */
const octetLane = axisIndex('octet_lane', run);

export class Stage {
  readonly #b: LoopBuilder;
  readonly #frame: Frame;
  readonly #by: Staging;
  readonly #sides: Side[] = [];

  constructor(b: LoopBuilder, frame: Frame, by: Staging) {
    this.#b = b;
    this.#frame = frame;
    this.#by = by;
  }

  side(buffer: string, operand: Expr, shape: SideShape): Side {
    const { free, tile, k, depth } = shape;
    const alongK = contiguousReads(operand, k) > contiguousReads(operand, free);
    const [line, lines] = alongK ? [depth, tile] : [tile, depth];
    const isPlain = this.#isPlain(operand, alongK ? k : free);
    const pitch = line + padding;
    const side = { ...shape, buffer, operand, alongK, pitch, size: pitch * lines, isPlain };
    this.#sides.push(side);
    return side;
  }

  /** Workgroup memory of all sides. */
  get memory(): readonly LoopBuffer[] {
    return this.#sides.map(({ buffer, size, slots }) => ({
      name: buffer,
      space: 'workgroup',
      dtype: this.#by.operand,
      size: size * slots,
      access: 'read_write',
    }));
  }

  /** Whether anything is copied without waiting. */
  get copies(): boolean {
    return this.#sides.some(({ isPlain }) => isPlain);
  }

  /** Closes a group of copies. */
  commit(): void {
    if (this.copies) this.#b.asyncCommit();
  }

  /** Waits until at most so many groups are under way. */
  await(pending: number): void {
    if (this.copies) this.#b.asyncWait(pending);
  }

  /** The 16 × 16 fragment of the left operand at row `m` and step `k` of its tile: rows 0, rows 8, then those for k + 8. */
  lhs(side: Side, slot: Value, k: Value, m: Value, lane: Value): Value {
    const [high, low] = this.#matrixOf(lane);
    return this.#load(side, slot, addInts(k, high), addInts(m, low), lane, 'lhs');
  }

  /** Two 16 × 8 fragments of the right operand, at columns `n` and n + 8: steps 0, steps 8, then those of the second. */
  rhs(side: Side, slot: Value, k: Value, n: Value, lane: Value): Value {
    const [high, low] = this.#matrixOf(lane);
    return this.#load(side, slot, addInts(k, low), addInts(n, high), lane, 'rhs');
  }

  /** Offsets of the matrix that an invocation points to: matrices 2 and 3 lie 8 further one way, 1 and 3 the other. */
  #matrixOf(lane: Value): readonly [high: Value, low: Value] {
    const b = this.#b;
    const high = operation('div', [lane, constant(16)], 'i32');
    const low = operation('mod', [operation('div', [lane, constant(8)], 'i32'), constant(2)], 'i32');
    return [b.let(mulInts(high, constant(8)), 'high'), b.let(mulInts(low, constant(8)), 'low')];
  }

  /** Four matrices from a tile. The rows of a stored matrix lie on the free axis where lines run along k, else along k. */
  #load(side: Side, slot: Value, k: Value, free: Value, lane: Value, hint: string): Value {
    const b = this.#b;
    const row = b.let(operation('mod', [lane, constant(8)], 'i32'), 'row');
    const base = mulInts(slot, constant(side.size));
    const at = side.alongK
      ? place(addInts(free, row), side.pitch, k)
      : place(addInts(k, row), side.pitch, free);
    return b.loadMatrix(side.buffer, b.let(addInts(base, at), 'matrix'), !side.alongK, hint);
  }

  /** Brings the tile at `first` on the free axis and `k0` to a slot; both are multiples of eight. */
  bring(side: Side, first: Value, k0: Value, slot: Value): void {
    const b = this.#b;
    const { local, threads } = this.#by;
    const { depth } = side;
    const line = side.alongK ? depth : side.tile;
    const units = ((side.alongK ? side.tile : depth) * line) / run;
    for (let taken = 0; taken < units; taken += threads) {
      const unit = b.let(addInts(local, constant(taken)), 'unit');
      const mine = units - taken < threads ? less(unit, constant(units)) : constant(1, 'bool');
      b.if(mine, () => {
        const [at, octet] = divideInts(b, unit, line / run, ['line', 'octet']);
        const to = b.let(
          addInts(mulInts(slot, constant(side.size)), place(at, side.pitch, mulInts(octet, constant(run)))),
          'to',
        );
        if (side.isPlain) this.#copy(side, [first, k0], at, octet, to);
        else for (const half of [0, 1]) this.#compute(side, [first, k0], at, octet, half, to);
      });
    }
  }

  /** Eight elements as they lie in memory; zeros behind the last step of k. */
  #copy(side: Side, [first, k0]: Origin, line: Value, octet: Value, to: Value): void {
    const b = this.#b;
    const { alongK, operand, free, k, depth } = side;
    if (operand.kind !== 'read') return;
    const axis = alongK ? k : free;
    const octets = axisIndex('octet', Math.max(2, axis.extent / run));
    const start = operation('div', [alongK ? k0 : first, constant(run)], 'i32');
    const asked = b.let(addInts(start, octet), 'octet');
    const across = b.let(addInts(alongK ? first : k0, line), alongK ? 'at' : 'k');
    const isExact = k.extent % depth === 0;
    const inside = isExact
      ? constant(1, 'bool')
      : alongK
        ? less(asked, constant(k.extent / run))
        : less(across, constant(k.extent));
    const atoms = new Map<IndexExpr, Value>([
      ...this.#by.atoms,
      [octets, this.#within(asked, axis.extent / run, axis, side, 'octet')],
    ]);
    const other = alongK ? free : k;
    atoms.set(other.atom, this.#within(across, other.extent, other, side, 'at'));
    const substitution = new Map([[axis.atom, scaleIndex(octets, run)]]);
    const { pool } = this.#frame.kernel;
    const name = bufferName(this.#frame);
    const lowering = new Lowering(b, pool, { substitution, atoms }, name);
    const index = lowering.place(operand.index);
    const at = b.let(mulInts(lowering.index(divIndex(index, run)), constant(run)), 'from');
    b.asyncCopy(side.buffer, to, name(operand.node), at, inside);
  }

  /** Four elements that are computed; zeros behind the last step of k. */
  #compute(side: Side, [first, k0]: Origin, line: Value, octet: Value, half: number, to: Value): void {
    const b = this.#b;
    const { alongK, operand, free, k } = side;
    const axis = alongK ? k : free;
    const quads = quadIndex(alongK ? 'kquad' : 'quad', axis.extent);
    const start = operation('div', [alongK ? k0 : first, constant(4)], 'i32');
    const asked = b.let(addInts(addInts(start, mulInts(octet, constant(2))), constant(half)), 'quad');
    const across = b.let(addInts(alongK ? first : k0, line), alongK ? 'at' : 'k');
    const other = alongK ? free : k;
    const atoms = new Map<IndexExpr, Value>([
      ...this.#by.atoms,
      [quads, this.#within(asked, Math.ceil(axis.extent / 4), axis, side, 'quad')],
      [other.atom, this.#within(across, other.extent, other, side, 'at')],
    ]);
    const substitution = new Map([[axis.atom, addIndex(scaleIndex(quads, 4), laneAtom)]]);
    const { pool } = this.#frame.kernel;
    const lowering = new Lowering(b, pool, { substitution, atoms }, bufferName(this.#frame));
    const value = splat(lowering.value(operand), 4);
    const kept = this.#zeroBehind(side, value, alongK ? asked : across);
    b.store(side.buffer, addInts(to, constant(4 * half)), kept, true);
  }

  /** Steps past the end of k must not count, whatever lies there. `at`: a step, or a quad of them. */
  #zeroBehind({ k, depth, alongK }: Side, value: Value, at: Value): Value {
    const { extent } = k;
    if (extent % depth === 0) return value;
    const steps: Value = alongK
      ? {
          kind: 'vector',
          args: [0, 1, 2, 3].map((lane) => place(at, 4, constant(lane))),
          type: 'i32',
          width: 4,
        }
      : at;
    const inside = operation('lt', [steps, splat(constant(extent), steps.width)], 'bool');
    return operation('where', [inside, value, constant(0, 'f32')], 'f32');
  }

  /** A place past the end of an axis becomes the last one. */
  #within(asked: Value, count: number, axis: Axis, side: Side, hint: string): Value {
    const size = axis === side.k ? side.depth : side.tile;
    if (axis.extent % size === 0) return asked;
    return this.#b.let(operation('min', [asked, constant(count - 1)], 'i32'), hint);
  }

  /** Whether runs of eight along an axis lie in memory as they are wanted, aligned, and end with the axis. */
  #isPlain(operand: Expr, axis: Axis): boolean {
    if (operand.kind !== 'read' || operand.node.dtype !== this.#by.operand) return false;
    const bound = this.#frame.bound.find(({ nodes }) => nodes.includes(operand.node));
    if (bound === undefined || bound.access !== 'read' || axis.extent % run !== 0) return false;
    const octets = axisIndex('octet', Math.max(2, axis.extent / run));
    const spread = substitute(
      operand.index,
      new Map([[axis.atom, addIndex(scaleIndex(octets, run), octetLane)]]),
    );
    if (coefficientOf(spread, octetLane) !== 1) return false;
    const start = substitute(operand.index, new Map([[axis.atom, scaleIndex(octets, run)]]));
    return modIndex(start, run) === constantIndex(0);
  }
}
