// Which loaded values the C of a kernel keeps in registers, on processors with 16 vector registers. When GCC 12 tunes for Zen, it loads a
// factor from memory again in every product that uses it, and the products wait for memory.

import type { Stmt, Value } from '../../loop/loop.ts';
import { isLong } from '../../loop/register.ts';
import { bodiesOf, valuesOf } from '../../loop/walk.ts';
import type { CPrelude } from './prelude.ts';

/** Vector registers of the processors in question. */
const registers = 16;
/** One for a factor that a single product uses, one for a constant of the code around: without them, a sum waits in memory. */
const others = 2;

/**
 * The loads that are held: those of a whole register of so many bytes, of which several multiply-adds in the same statements are made, as
 * many as there is room for beside the sums.
 */
export function heldIn(body: readonly Stmt[], bytes: number): ReadonlySet<Value> {
  const held = new Set<Value>();
  const visit = (stmts: readonly Stmt[]): void => {
    const { sums, uses } = productsOf(stmts);
    let room = registers - others - sums;
    for (const stmt of stmts) {
      if (stmt.kind === 'let' && stmt.value.kind === 'load') {
        const { type, width } = stmt.value;
        const isWhole = width * (isLong(type) ? 8 : 4) === bytes;
        if (isWhole && (uses.get(stmt.name) ?? 0) > 1 && room-- > 0) held.add(stmt.value);
      }
      bodiesOf(stmt).forEach(visit);
    }
  };
  visit(body);
  return held;
}

/** How many sums the statements add products to, and of how many products each register is a factor. */
function productsOf(stmts: readonly Stmt[]): {
  readonly sums: number;
  readonly uses: ReadonlyMap<string, number>;
} {
  const sums = new Set<string>();
  const uses = new Map<string, number>();
  for (const value of stmts.flatMap(valuesOf)) {
    if (value.kind !== 'op' || value.op !== 'fma') continue;
    value.args.forEach((arg, i) => {
      if (arg.kind !== 'variable') return;
      if (i === 2) sums.add(arg.name);
      else uses.set(arg.name, (uses.get(arg.name) ?? 0) + 1);
    });
  }
  return { sums: sums.size, uses };
}

/** The function that gives a vector back from a register. */
export function holding(prelude: CPrelude, { type, width }: Value): string {
  const vector = prelude.type(type, width);
  return prelude.define(`held_${vector}`, () =>
    [
      '// The compiler does not read this value from memory again.',
      `static inline ${vector} held_${vector}(${vector} x) {`,
      '#if defined(__GNUC__) && defined(__AVX__)',
      '  __asm__("" : "+x"(x));',
      '#endif',
      '  return x;',
      '}',
    ].join('\n'),
  );
}
