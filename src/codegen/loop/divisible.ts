// Which indices are multiples of 2 or 4, by following names to their definitions. Stores carry no alignment flag: a vector is
// written whole only where this proves it may be.

import type { Loop, Value } from './loop.ts';
import { statementsIn } from './walk.ts';

/** The largest power of two (up to 16) known to divide each immutable variable. */
export type KnownDivisors = ReadonlyMap<string, number>;

const most = 16;

/** Follows every `let` and loop counter of the Loop. */
export function divisors(loop: Loop): KnownDivisors {
  const known = new Map<string, number>();
  for (const stmt of statementsIn(loop.body)) {
    if (stmt.kind === 'let' && stmt.value.type === 'i32' && stmt.value.width === 1)
      known.set(stmt.name, divisor(stmt.value, known));
    if (stmt.kind === 'for') known.set(stmt.name, Math.min(divisor(stmt.start, known), powerIn(stmt.step)));
  }
  return known;
}

/** Whether `value` is proven to be a multiple of `of`, a power of two. */
export function isMultiple(value: Value, of: number, known: KnownDivisors): boolean {
  return of === 1 || divisor(value, known) % of === 0;
}

function divisor(value: Value, known: KnownDivisors): number {
  if (value.kind === 'constant') return powerIn(value.value);
  if (value.kind === 'variable') return known.get(value.name) ?? 1;
  if (value.kind !== 'op') return 1;
  const [a, b, c] = value.args;
  switch (value.op) {
    case 'mul':
      return Math.min(most, divisor(a!, known) * divisor(b!, known));
    case 'add':
    case 'sub':
    case 'min':
    case 'max':
    case 'mod':
    case 'floorMod':
      return Math.min(divisor(a!, known), divisor(b!, known));
    case 'where':
      return Math.min(divisor(b!, known), divisor(c!, known));
    case 'neg':
      return divisor(a!, known);
    default:
      return 1;
  }
}

/** The power of two in an integer; 0 has them all. */
function powerIn(value: number): number {
  let power = 1;
  while (power < most && value % (power * 2) === 0) power *= 2;
  return power;
}
