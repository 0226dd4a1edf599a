// Copies tiles of both operands of a product into workgroup memory, for the staged form: each
// element is evaluated once (this is where a prologue runs), and laid out [k][m or n] in vectors of
// four, whichever way the operand lies. Edges read as zero along k; rows and columns past the end
// repeat the last.

import { addIndex, scaleIndex, type IndexExpr } from '../../../../ir/index-algebra/expr.ts';
import type { Expr } from '../../../../schedule/expression/expr.ts';
import type { Axis } from '../../../../schedule/kernel.ts';
import {
  addInts,
  constant,
  less,
  mulInts,
  operation,
  splat,
  type LoopBuilder,
} from '../../../loop/builder.ts';
import { laneAtom, Lowering, quadIndex } from '../../../expression/lowering.ts';
import type { Value } from '../../../loop/loop.ts';
import { contiguousReads, type Contract } from '../problem.ts';
import { bufferName, type Frame } from '../../shared/frame.ts';
import { laneOf } from '../../../loop/register.ts';
import { divideInts, place } from '../../../loop/integers.ts';

/** One operand and the tile it is copied to. */
export interface StagedSide {
  readonly buffer: string;
  readonly operand: Expr;
  readonly free: Axis;
  readonly tile: number;
  /** First position of the workgroup on the free axis. */
  readonly first: Value;
  /**
   * Read along k, in 4×4 blocks that are turned in registers; else along the free axis, in quads.
   */
  readonly turned: boolean;
  /** Quads or blocks in the tile, and the invocation that takes the first of them. */
  readonly units: number;
  readonly start: number;
}

/** Copies operand tiles into workgroup memory. */
export class TileStager {
  readonly #b: LoopBuilder;
  readonly #frame: Frame;
  readonly #body: Contract;
  readonly #group: Value;
  readonly #local: Value;
  readonly #threads: number;
  readonly #depth: number;

  constructor(
    b: LoopBuilder,
    frame: Frame,
    body: Contract,
    group: Value,
    local: Value,
    threads: number,
    depth: number,
  ) {
    this.#b = b;
    this.#frame = frame;
    this.#body = body;
    this.#group = group;
    this.#local = local;
    this.#threads = threads;
    this.#depth = depth;
  }

  /**
   * `taken` invocations are busy with the other side: where there are enough, the rest takes this
   * one.
   */
  side(buffer: string, operand: Expr, free: Axis, tile: number, first: Value, taken: number): StagedSide {
    const turned = contiguousReads(operand, this.#body.k) > contiguousReads(operand, free);
    const units = (tile / 4) * (turned ? this.#depth / 4 : this.#depth);
    const start = taken + units <= this.#threads ? taken : 0;
    return { buffer, operand, free, tile, first, turned, units, start };
  }

  fill(side: StagedSide, k0: Value): void {
    const b = this.#b;
    const { units, start } = side;
    const mine = b.let(addInts(this.#local, constant(-start)), 'unit');
    for (let taken = 0; taken < units; taken += this.#threads) {
      const unit = b.let(addInts(mine, constant(taken)), 'unit');
      const copy = (): void => (side.turned ? this.#block(side, unit, k0) : this.#quad(side, unit, k0));
      const after = units - taken < this.#threads;
      const bounded =
        start > 0 ? [constant(0), constant(units)] : [undefined, after ? constant(units) : undefined];
      const low =
        bounded[0] === undefined ? constant(1, 'bool') : operation('le', [bounded[0], unit], 'bool');
      b.if(low, () => b.if(bounded[1] === undefined ? constant(1, 'bool') : less(unit, bounded[1]), copy));
    }
  }

  /** Four neighbours along the free axis, at one step of k. */
  #quad({ buffer, operand, free, tile, first }: StagedSide, unit: Value, k0: Value): void {
    const b = this.#b;
    const { k } = this.#body;
    const [line, at] = divideInts(b, unit, tile / 4, ['line', 'place']);
    const quadAtom = quadIndex('quad', free.extent);
    const asked = addInts(operation('div', [first, constant(4)], 'i32'), at);
    const quad = this.#inside(asked, Math.ceil(free.extent / 4), free.extent % tile === 0, 'quad');
    const step = b.let(addInts(k0, line), 'k');
    const exact = k.extent % this.#depth === 0;
    const value = this.#lowering((atoms, substitution) => {
      atoms.set(k.atom, this.#inside(step, k.extent, exact, 'k'));
      atoms.set(quadAtom, quad);
      substitution.set(free.atom, addIndex(scaleIndex(quadAtom, 4), laneAtom));
    }).value(operand);
    const kept = exact ? value : this.#orZero(value, less(step, constant(k.extent)));
    b.store(buffer, mulInts(place(line, tile / 4, at), constant(4)), splat(kept, 4), true);
  }

  /**
   * Four steps of k at four neighbours of the free axis: read along k, stored along the free axis.
   */
  #block({ buffer, operand, free, tile, first }: StagedSide, unit: Value, k0: Value): void {
    const b = this.#b;
    const { k } = this.#body;
    const [row, column] = divideInts(b, unit, this.#depth / 4, ['row', 'column']);
    const quadAtom = quadIndex('kquad', k.extent);
    const exact = k.extent % this.#depth === 0;
    const asked = b.let(addInts(operation('div', [k0, constant(4)], 'i32'), column), 'kquad');
    const quad = this.#inside(asked, Math.ceil(k.extent / 4), exact, 'kquad');
    const lines = [0, 1, 2, 3].map((i) => {
      const at = addInts(first, place(row, 4, constant(i)));
      return this.#lowering((atoms, substitution) => {
        atoms.set(free.atom, this.#inside(at, free.extent, free.extent % tile === 0, 'at'));
        atoms.set(quadAtom, quad);
        substitution.set(k.atom, addIndex(scaleIndex(quadAtom, 4), laneAtom));
      }).value(operand);
    });
    for (const lane of [0, 1, 2, 3]) {
      const args = lines.map((line) => laneOf(line, lane));
      const turned: Value = { kind: 'vector', args, type: args[0]!.type, width: 4 };
      const step = place(asked, 4, constant(lane));
      const kept = exact ? turned : this.#orZero(turned, less(step, constant(k.extent)));
      const line = place(column, 4, constant(lane));
      b.store(buffer, mulInts(place(line, tile / 4, row), constant(4)), kept, true);
    }
  }

  #inside(asked: Value, extent: number, exact: boolean, hint: string): Value {
    const b = this.#b;
    return b.let(exact ? asked : operation('min', [asked, constant(extent - 1)], 'i32'), hint);
  }

  #orZero(value: Value, inside: Value): Value {
    return operation('where', [inside, value, constant(0, value.type)], value.type);
  }

  #lowering(bind: (atoms: Map<IndexExpr, Value>, substitution: Map<IndexExpr, IndexExpr>) => void): Lowering {
    const atoms = new Map<IndexExpr, Value>([[this.#body.batch.atom, this.#group]]);
    const substitution = new Map<IndexExpr, IndexExpr>();
    bind(atoms, substitution);
    return new Lowering(this.#b, this.#frame.kernel.pool, { substitution, atoms }, bufferName(this.#frame));
  }
}
