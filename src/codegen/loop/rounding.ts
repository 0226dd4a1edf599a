// Loop → Loop: a value that is only stored as f16 or bf16 is rounded once. Arithmetic on these types rounds each result in its f32
// register, and a store to them rounds to the same values again. Only the store's rounding is kept.

import type { DType } from '../../ir/dtype.ts';
import { operandsOf, withOperands } from './builder.ts';
import type { Loop, Stmt, Value } from './loop.ts';
import { rewritten, statementsIn, valuesOf } from './walk.ts';

type Narrow = 'f16' | 'bf16';

const roundings = { f16: 'roundF16', bf16: 'roundBf16' } as const;

const isNarrow = (dtype: DType): dtype is Narrow => dtype === 'f16' || dtype === 'bf16';

/** The Loop, in which stores alone round what nothing else reads. */
export function roundOnce(loop: Loop): Loop {
  const narrow = new Map<string, Narrow>();
  for (const { name, dtype } of loop.buffers) if (isNarrow(dtype)) narrow.set(name, dtype);
  if (narrow.size === 0) return loop;
  const stored = storedNames(loop.body, narrow);
  const body = (stmts: readonly Stmt[]): readonly Stmt[] =>
    stmts.map((stmt) => {
      const dtype =
        stmt.kind === 'store'
          ? narrow.get(stmt.buffer)
          : stmt.kind === 'let'
            ? stored.get(stmt.name)
            : undefined;
      const own = rewritten(stmt, { body });
      return dtype !== undefined && (own.kind === 'store' || own.kind === 'let')
        ? { ...own, value: unrounded(own.value, dtype) }
        : own;
    });
  return { ...loop, body: body(loop.body) };
}

/** Names that are read as values of stores to buffers of one narrow type, and nowhere else. */
function storedNames(
  body: readonly Stmt[],
  narrow: ReadonlyMap<string, Narrow>,
): ReadonlyMap<string, Narrow> {
  const uses = new Map<string, Narrow | 'other'>();
  const see = (name: string, use: Narrow | 'other'): void => {
    const known = uses.get(name) ?? use;
    uses.set(name, known === use ? use : 'other');
  };
  const seeAll = (value: Value): void => {
    if (value.kind === 'variable') see(value.name, 'other');
    operandsOf(value).forEach(seeAll);
  };
  for (const stmt of statementsIn(body))
    for (const value of valuesOf(stmt)) {
      const dtype = stmt.kind === 'store' && value === stmt.value ? narrow.get(stmt.buffer) : undefined;
      if (dtype !== undefined && value.kind === 'variable') see(value.name, dtype);
      else seeAll(value);
    }
  return new Map([...uses].filter((entry): entry is [string, Narrow] => entry[1] !== 'other'));
}

/** A value that rounds to the same one; what only chooses or puts lanes together rounds as its parts do. */
function unrounded(value: Value, dtype: Narrow): Value {
  if (value.kind === 'op' && value.op === roundings[dtype]) return value.args[0]!;
  if (value.kind === 'vector' || value.kind === 'splat' || value.kind === 'lane')
    return withOperands(
      value,
      operandsOf(value).map((part) => unrounded(part, dtype)),
    );
  if (value.kind === 'op' && value.op === 'where') {
    const [condition, ...branches] = value.args;
    return withOperands(value, [condition!, ...branches.map((branch) => unrounded(branch, dtype))]);
  }
  return value;
}
