// Elements of a row that wait in workgroup memory between two sweeps, because registers have no
// room for them. Each invocation reads only what it wrote itself, so no barrier is needed.

import type { Expr } from '../../../../schedule/expression/expr.ts';
import { addInts, constant, mulInts, operation, splat, type LoopBuilder } from '../../../loop/builder.ts';
import { registerOf, type Lowering } from '../../../expression/lowering.ts';
import type { LoopBuffer, Value, Width } from '../../../loop/loop.ts';
import type { RowFacts } from '../facts.ts';

/** Names of the workgroup arrays for so many reads. */
export function keptNames(reads: readonly Expr[]): readonly string[] {
  return reads.map((_, i) => `kept_${i}`);
}

export class KeptRows {
  readonly #b: LoopBuilder;
  readonly #reads: readonly Expr[];
  readonly #facts: RowFacts;
  readonly #names: readonly string[];
  /** Reads that a finished sweep has made. */
  readonly #left = new Set<Expr>();

  constructor(b: LoopBuilder, reads: readonly Expr[], facts: RowFacts) {
    this.#b = b;
    this.#reads = reads;
    this.#facts = facts;
    this.#names = keptNames(reads);
  }

  /** The workgroup arrays, for this many groups of `width` elements. */
  buffers(groups: number, width: Width): readonly LoopBuffer[] {
    return this.#reads.map((read, i) => {
      const type = registerOf(read.dtype);
      const dtype = type === 'bool' ? 'u32' : type;
      return { name: this.#names[i]!, space: 'workgroup', dtype, size: groups * width, access: 'read_write' };
    });
  }

  /**
   * Before `exprs` are lowered: takes what earlier sweeps have left of this group, and leaves what
   * is read the first time.
   */
  exchange(lowering: Lowering, group: Value, width: Width, exprs: readonly Expr[]): void {
    const b = this.#b;
    const wanted = new Set(exprs.flatMap((expr) => [...this.#facts.reads(expr)]));
    for (const [i, read] of this.#reads.entries()) {
      if (!wanted.has(read)) continue;
      const buffer = this.#names[i]!;
      const index = b.let(mulInts(group, constant(width)), 'slot');
      const register = registerOf(read.dtype);
      const type = register === 'bool' ? 'u32' : register;
      if (this.#left.has(read)) {
        const raw: Value = { kind: 'load', buffer, index, aligned: true, type, width };
        const value = register === 'bool' ? operation('cast', [raw], 'bool') : raw;
        lowering.held.set(read, b.let(value, 'kept'));
      } else {
        const value = splat(lowering.value(read), width);
        b.store(buffer, index, register === 'bool' ? operation('cast', [value], 'u32') : value, true);
      }
    }
  }

  /** After a sweep that evaluated `exprs`. */
  swept(exprs: readonly Expr[]): void {
    for (const expr of exprs) for (const read of this.#facts.reads(expr)) this.#left.add(read);
  }
}

/** The group of a step of the row at `place` among `rows` in a workgroup. */
export function groupOf(step: Value, place: Value, rows: number): Value {
  return addInts(mulInts(step, constant(rows)), place);
}
