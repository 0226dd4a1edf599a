// What the C of a kernel says of vector registers, for processors with 16 of them. GCC 12 shares them out badly around products, in two
// ways. Tuned for Zen, it loads a factor from memory again in every product that uses it, and the products wait for memory. And it
// keeps the constants of the code around the products (0 and 6 of a relu6) in registers, and some of the sums in memory instead.

import type { Stmt, Value } from '../../loop/loop.ts';
import { operandsOf } from '../../loop/builder.ts';
import { isLong } from '../../loop/register.ts';
import { bodiesOf, declaredIn, statementsIn, valuesOf } from '../../loop/walk.ts';
import type { CPrelude } from './prelude.ts';

/** Vector registers of the processors in question. */
const registers = 16;
/** One for a factor that a single product uses, and one that the compiler needs now and then: without them, a sum waits in memory. */
const others = 2;
/** As many sums leave no registers for constants. */
const manySums = 8;

/** What C has to say of the registers. */
export interface Registers {
  /**
   * Loads whose values stay in a register: those of a whole register, of which several multiply-adds in the same statements are made, as
   * many as there is room for beside the sums.
   */
  readonly held: ReadonlySet<Value>;
  /** Before these statements, which begin to declare many sums, nothing is in a register. */
  readonly emptied: ReadonlySet<Stmt>;
}

/** Where there is nothing to say. */
export const freely: Registers = { held: new Set(), emptied: new Set() };

/** What to say of these statements, where a register has so many bytes. */
export function registersIn(body: readonly Stmt[], bytes: number): Registers {
  const held = new Set<Value>();
  const emptied = new Set<Stmt>();
  const isWhole = ({ type, width }: Value): boolean => width * (isLong(type) ? 8 : 4) === bytes;
  const visit = (stmts: readonly Stmt[]): void => {
    const { sums, uses } = productsOf(stmts);
    let room = registers - others - sums.size;
    for (const stmt of stmts) {
      if (stmt.kind === 'let' && stmt.value.kind === 'load') {
        const isUsed = (uses.get(stmt.name) ?? 0) > 1;
        if (isWhole(stmt.value) && isUsed && room-- > 0) held.add(stmt.value);
      }
      bodiesOf(stmt).forEach(visit);
    }
    const first = firstOfManySums(stmts, isWhole);
    if (first !== undefined) emptied.add(first);
  };
  visit(body);
  return { held, emptied };
}

/**
 * The first statement that declares a whole register, where many of these are sums to which products are added further inside. Undefined
 * where few are, or where statements from there on read registers of before, which would have to be stored.
 */
function firstOfManySums(stmts: readonly Stmt[], isWhole: (value: Value) => boolean): Stmt | undefined {
  const declared = stmts.flatMap((stmt) => (stmt.kind === 'var' && isWhole(stmt.value) ? [stmt] : []));
  const [first] = declared;
  if (first === undefined || declared.length < manySums) return undefined;
  const from = stmts.slice(stmts.indexOf(first));
  const all = [...statementsIn(from)];
  const { sums } = productsOf(all);
  if (declared.filter(({ name }) => sums.has(name)).length < manySums) return undefined;
  const own = new Set(declaredIn(from));
  const readsOthers = (value: Value): boolean =>
    value.kind === 'variable' ? value.width > 1 && !own.has(value.name) : operandsOf(value).some(readsOthers);
  return all.some((stmt) => valuesOf(stmt).some(readsOthers)) ? undefined : first;
}

/** Which sums the statements add products to, and of how many products each register is a factor. */
function productsOf(stmts: readonly Stmt[]): {
  readonly sums: ReadonlySet<string>;
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
  return { sums, uses };
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

/** The function after which no vector register holds anything. */
export function emptying(prelude: CPrelude): string {
  const names = Array.from({ length: registers }, (_, i) => `"xmm${i}"`);
  return prelude.define('empty_registers', () =>
    [
      '// The compiler reads constants from memory where they are used, and has all registers for sums.',
      'static inline void empty_registers(void) {',
      '#if defined(__GNUC__) && defined(__AVX__)',
      `  __asm__ volatile("" ::: ${names.slice(0, 8).join(', ')},`,
      `                   ${names.slice(8).join(', ')});`,
      '#endif',
      '}',
    ].join('\n'),
  );
}
