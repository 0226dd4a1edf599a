// Loop → Loop: a value that is only stored as f16 or bf16 is rounded once. Arithmetic on these types rounds each result in its f32
// register, and a store to them rounds to the same values again. Only the store's rounding is kept.

import type { DType } from '../../ir/dtype.ts';
import { operandsOf, withOperands } from './builder.ts';
import type { Loop, LoopOp, Stmt, Value } from './loop.ts';
import { bodiesOf, rewritten, valuesOf } from './walk.ts';

type Narrow = 'f16' | 'bf16';

const roundings = { f16: 'roundF16', bf16: 'roundBf16' } as const;

/** Rounding what these give is the same as rounding what they take: they keep order and signs, and compute nothing new. */
const exact: ReadonlySet<LoopOp> = new Set<LoopOp>(['max', 'min', 'neg', 'abs']);

const isNarrow = (dtype: DType): dtype is Narrow => dtype === 'f16' || dtype === 'bf16';

/** The Loop, in which stores alone round what nothing else reads. */
export function roundOnce(loop: Loop): Loop {
  const narrow = new Map<string, Narrow>();
  for (const { name, dtype } of loop.buffers) if (isNarrow(dtype)) narrow.set(name, dtype);
  return narrow.size === 0 ? loop : { ...loop, body: new Rounding(narrow).body(loop.body) };
}

/** Goes through statements from the last to the first, so that all uses of a name are known where it is declared. */
class Rounding {
  readonly #narrow: ReadonlyMap<string, Narrow>;
  /** Of each name that is read, the type of all stores to which it goes; undefined if it is read for anything else. */
  readonly #stored = new Map<string, Narrow | undefined>();

  constructor(narrow: ReadonlyMap<string, Narrow>) {
    this.#narrow = narrow;
  }

  body(body: readonly Stmt[]): readonly Stmt[] {
    const made: Stmt[] = [];
    for (let i = body.length - 1; i >= 0; i--) made.push(this.#stmt(body[i]!));
    return made.reverse();
  }

  #stmt(stmt: Stmt): Stmt {
    if (stmt.kind === 'store' || stmt.kind === 'let') {
      const dtype = stmt.kind === 'store' ? this.#narrow.get(stmt.buffer) : this.#stored.get(stmt.name);
      if (stmt.kind === 'store') this.#see(stmt.index, undefined);
      const value = dtype === undefined ? stmt.value : unrounded(stmt.value, dtype);
      this.#see(value, dtype);
      return dtype === undefined ? stmt : { ...stmt, value };
    }
    const made = bodiesOf(stmt).length === 0 ? stmt : rewritten(stmt, { body: (body) => this.body(body) });
    for (const value of valuesOf(stmt)) this.#see(value, undefined);
    return made;
  }

  /** Notes what a value reads, which goes to a store of this type and nowhere else, or not. */
  #see(value: Value, dtype: Narrow | undefined): void {
    if (value.kind === 'variable') {
      const known = this.#stored.has(value.name) ? this.#stored.get(value.name) : dtype;
      this.#stored.set(value.name, known === dtype ? dtype : undefined);
      return;
    }
    const passed = passedParts(value);
    for (const part of operandsOf(value)) this.#see(part, passed.includes(part) ? dtype : undefined);
  }
}

/** The operands of which a value is made by choosing or putting together, so that rounding it rounds them. */
function passedParts(value: Value): readonly Value[] {
  if (value.kind === 'vector' || value.kind === 'splat' || value.kind === 'lane') return operandsOf(value);
  if (value.kind !== 'op') return [];
  if (value.op === 'where') return value.args.slice(1);
  return exact.has(value.op) ? value.args : [];
}

/** A value that rounds to the same one. */
function unrounded(value: Value, dtype: Narrow): Value {
  if (value.kind === 'op' && value.op === roundings[dtype]) return value.args[0]!;
  const passed = passedParts(value);
  if (passed.length === 0) return value;
  return withOperands(
    value,
    operandsOf(value).map((part) => (passed.includes(part) ? unrounded(part, dtype) : part)),
  );
}
