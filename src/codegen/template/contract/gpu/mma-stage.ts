// Tiles of operands on their way to matrix units: slots of workgroup memory, filled a few rounds ahead. What lies in memory
// as it is needed, in aligned runs of 16 bytes, is copied there without passing through registers; anything else (a prologue, a cast,
// a padded window, an odd stride) is computed once per staged element and stored. A tile lies as its operand does: lines along k,
// or along the free axis, and matrices of 16-bit elements are transposed as they are read. Lines are longer than they need be, so
// that the rows of a matrix start in different banks.

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
} from '../../../../ir/index-algebra/expr.ts';
import { dtypeBytes } from '../../../../ir/dtype.ts';
import type { Expr } from '../../../../schedule/expression/expr.ts';
import type { Axis } from '../../../../schedule/kernel.ts';
import {
  addInts,
  both,
  constant,
  less,
  mulInts,
  operation,
  splat,
  type LoopBuilder,
} from '../../../loop/builder.ts';
import { laneAtom, Lowering, quadIndex } from '../../../expression/lowering.ts';
import type { LoopBuffer, MatrixType, Value } from '../../../loop/loop.ts';
import { contiguousReads } from '../problem.ts';
import { copiedRead } from '../tile-map.ts';
import { bufferName, isOnlyRead, type Frame } from '../../shared/frame.ts';
import { divideInts, place } from '../../../loop/integers.ts';

/** Bytes of one copy. */
const copied = 16;

export interface MmaStaging {
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
export interface MmaSide extends SideShape {
  readonly buffer: string;
  readonly operand: Expr;
  /** Lines run along k, else along the free axis. */
  readonly alongK: boolean;
  /** Elements from one line to the next, and of a slot. */
  readonly pitch: number;
  readonly size: number;
  /** Runs of 16 bytes can be copied as they are. */
  readonly isPlain: boolean;
}

/** Where a tile begins, on the free axis and along k. */
type Origin = readonly [first: Value, k0: Value];

/** What a tile of such operands is made of. */
export function stagedType(operand: MatrixType): 'f16' | 'bf16' | 'f32' {
  return operand === 'tf32' ? 'f32' : operand;
}

export class MmaStage {
  readonly #b: LoopBuilder;
  readonly #frame: Frame;
  readonly #by: MmaStaging;
  readonly #sides: MmaSide[] = [];
  /** Elements of one copy. */
  readonly #run: number;

  constructor(b: LoopBuilder, frame: Frame, by: MmaStaging) {
    this.#b = b;
    this.#frame = frame;
    this.#by = by;
    this.#run = copied / dtypeBytes(stagedType(by.operand));
  }

  side(buffer: string, operand: Expr, shape: SideShape): MmaSide {
    const { free, tile, k, depth } = shape;
    const alongK = contiguousReads(operand, k) > contiguousReads(operand, free);
    const [line, lines] = alongK ? [depth, tile] : [tile, depth];
    const copied = copiedRead(operand, free);
    const isPlain =
      copied !== undefined && this.#isPlain(copied.read, alongK ? k : { ...free, extent: copied.count });
    // Rows of 8 16-bit elements, or columns of single words, in different banks.
    const pitch = line + (alongK && this.#by.operand === 'tf32' ? 4 : 8);
    const side = { ...shape, buffer, operand, alongK, pitch, size: pitch * lines, isPlain };
    this.#sides.push(side);
    return side;
  }

  /** Workgroup memory of all sides. */
  get memory(): readonly LoopBuffer[] {
    return this.#sides.map(({ buffer, size, slots }) => ({
      name: buffer,
      space: 'workgroup',
      dtype: stagedType(this.#by.operand),
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
  lhs(side: MmaSide, slot: Value, k: Value, m: Value, lane: Value): Value {
    if (this.#by.operand === 'tf32') return this.#words(side, slot, k, m, lane, 'lhs');
    const [high, low] = this.#matrixOf(lane);
    return this.#load(side, slot, addInts(k, high), addInts(m, low), lane, 'lhs');
  }

  /** Two 16 × 8 fragments of the right operand, at columns `n` and n + 8: steps 0, steps 8, then those of the second. */
  rhs(side: MmaSide, slot: Value, k: Value, n: Value, lane: Value): Value {
    if (this.#by.operand === 'tf32') return this.#words(side, slot, k, n, lane, 'rhs');
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
  #load(side: MmaSide, slot: Value, k: Value, free: Value, lane: Value, hint: string): Value {
    const b = this.#b;
    const row = b.let(operation('mod', [lane, constant(8)], 'i32'), 'row');
    const base = mulInts(slot, constant(side.size));
    const at = side.alongK
      ? place(addInts(free, row), side.pitch, k)
      : place(addInts(k, row), side.pitch, free);
    return b.loadMatrix(side.buffer, b.let(addInts(base, at), 'matrix'), !side.alongK, hint);
  }

  /**
   * A fragment of tf32, word by word: of 8 steps of k an invocation has its place among four, and that plus 4, at its row and 8
   * further. The left operand goes through the rows first, a pair of right ones through the steps.
   */
  #words(side: MmaSide, slot: Value, k: Value, free: Value, lane: Value, hint: 'lhs' | 'rhs'): Value {
    const b = this.#b;
    const row = b.let(operation('div', [lane, constant(4)], 'i32'), 'lane_row');
    const step = b.let(operation('mod', [lane, constant(4)], 'i32'), 'lane_k');
    const args = [0, 1, 2, 3].map((word): Value => {
      const [low, high] = [word & 1, word >> 1];
      const [across, along] = hint === 'lhs' ? [8 * low, 4 * high] : [8 * high, 4 * low];
      const [f, s] = [
        addInts(addInts(free, row), constant(across)),
        addInts(addInts(k, step), constant(along)),
      ];
      const at = side.alongK ? place(f, side.pitch, s) : place(s, side.pitch, f);
      const index = addInts(mulInts(slot, constant(side.size)), at);
      const value: Value = {
        kind: 'load',
        buffer: side.buffer,
        index: b.let(index, 'word'),
        aligned: true,
        type: 'f32',
        width: 1,
      };
      return operation('bitcast', [operation('roundTf32', [value], 'f32')], 'u32');
    });
    return b.let({ kind: 'vector', args, type: 'u32', width: 4 }, hint);
  }

  /** Brings the tile at `first` on the free axis and `k0` to a slot; both are multiples of a run. */
  bring(side: MmaSide, first: Value, k0: Value, slot: Value): void {
    const b = this.#b;
    const { local, threads } = this.#by;
    const { depth } = side;
    const run = this.#run;
    const line = side.alongK ? depth : side.tile;
    const units = ((side.alongK ? side.tile : depth) * line) / run;
    for (let taken = 0; taken < units; taken += threads) {
      const unit = b.let(addInts(local, constant(taken)), 'unit');
      const mine = units - taken < threads ? less(unit, constant(units)) : constant(1, 'bool');
      b.if(mine, () => {
        const [at, runAt] = divideInts(b, unit, line / run, ['line', 'run']);
        const to = b.let(
          addInts(mulInts(slot, constant(side.size)), place(at, side.pitch, mulInts(runAt, constant(run)))),
          'to',
        );
        if (side.isPlain) this.#copy(side, [first, k0], at, runAt, to);
        else
          for (let quad = 0; quad < run / 4; quad++)
            this.#compute(
              side,
              [first, k0],
              at,
              addInts(mulInts(runAt, constant(run / 4)), constant(quad)),
              to,
              4 * quad,
            );
      });
    }
  }

  /** A run of elements as they lie in memory; zeros behind the last step of k. */
  #copy(side: MmaSide, [first, k0]: Origin, line: Value, runAt: Value, to: Value): void {
    const b = this.#b;
    const { alongK, k, depth } = side;
    const run = this.#run;
    const copied = copiedRead(side.operand, side.free);
    if (copied === undefined) return;
    const operand = copied.read;
    const free = { ...side.free, extent: copied.count };
    const axis = alongK ? k : free;
    const runs = axisIndex('run', axis.extent / run);
    const start = operation('div', [alongK ? k0 : first, constant(run)], 'i32');
    const asked = b.let(addInts(start, runAt), 'run');
    const across = b.let(addInts(alongK ? first : k0, line), alongK ? 'at' : 'k');
    const isExact = k.extent % depth === 0;
    const inStep = isExact
      ? constant(1, 'bool')
      : alongK
        ? less(asked, constant(k.extent / run))
        : less(across, constant(k.extent));
    // Of an operand that ends before its axis, zeros follow.
    const isWhole = copied.count === side.free.extent;
    const onAxis = alongK ? less(across, constant(free.extent)) : less(asked, constant(free.extent / run));
    const inside = isWhole ? inStep : both(inStep, onAxis);
    const atoms = new Map<IndexExpr, Value>([
      ...this.#by.atoms,
      [runs, this.#within(asked, axis.extent / run, axis, side, 'run')],
    ]);
    const other = alongK ? free : k;
    atoms.set(other.atom, this.#within(across, other.extent, other, side, 'at'));
    const substitution = new Map([[axis.atom, scaleIndex(runs, run)]]);
    const { pool } = this.#frame.kernel;
    const name = bufferName(this.#frame);
    const lowering = new Lowering(b, pool, { substitution, atoms }, name);
    const index = lowering.place(operand.index);
    const at = b.let(mulInts(lowering.index(divIndex(index, run)), constant(run)), 'from');
    b.asyncCopy(side.buffer, to, name(operand.node), at, inside);
  }

  /** Four elements that are computed; zeros behind the last step of k. */
  #compute(side: MmaSide, [first, k0]: Origin, line: Value, quadAt: Value, to: Value, offset: number): void {
    const b = this.#b;
    const { alongK, operand, free, k } = side;
    const axis = alongK ? k : free;
    const quads = quadIndex(alongK ? 'kquad' : 'quad', axis.extent);
    const start = operation('div', [alongK ? k0 : first, constant(4)], 'i32');
    const asked = b.let(addInts(start, quadAt), 'quad');
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
    b.store(side.buffer, addInts(to, constant(offset)), kept, true);
  }

  /** Steps past the end of k must not count, whatever lies there. `at`: a step, or a quad of them. */
  #zeroBehind({ k, depth, alongK }: MmaSide, value: Value, at: Value): Value {
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
  #within(asked: Value, count: number, axis: Axis, side: MmaSide, hint: string): Value {
    const [whole, size] = axis === side.k ? [side.k, side.depth] : [side.free, side.tile];
    if (axis.extent === whole.extent && axis.extent % size === 0) return asked;
    return this.#b.let(operation('min', [asked, constant(count - 1)], 'i32'), hint);
  }

  /** Whether runs along an axis lie in memory as they are wanted, aligned, and end with the axis. */
  #isPlain(operand: Expr, axis: Axis): boolean {
    const run = this.#run;
    if (operand.kind !== 'read' || operand.node.dtype !== stagedType(this.#by.operand)) return false;
    if (!isOnlyRead(this.#frame, operand.node) || axis.extent % run !== 0) return false;
    const runs = axisIndex('run', axis.extent / run);
    const runLane = axisIndex('run_lane', run);
    const spread = substitute(
      operand.index,
      new Map([[axis.atom, addIndex(scaleIndex(runs, run), runLane)]]),
    );
    if (coefficientOf(spread, runLane) !== 1) return false;
    const start = substitute(operand.index, new Map([[axis.atom, scaleIndex(runs, run)]]));
    return modIndex(start, run) === constantIndex(0);
  }
}
