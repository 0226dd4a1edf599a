// What is loaded when a kernel needs it: what expands functions that WebAssembly lacks, for Loops that call some, and the text
// of modules.

import { elementwiseRows, type ElementwiseOp } from '../../../ir/ops.ts';
import { Lazy } from '../../../lazy.ts';
import { operandsOf } from '../../loop/builder.ts';
import type { Loop, LoopOp, Value } from '../../loop/loop.ts';
import { someStatement, valuesOf } from '../../loop/walk.ts';
import type { printModule } from './module/wat.ts';
import type { expandMath } from './math/math.ts';
import { needsHalving } from './registers.ts';
import type { halveVectors } from './rewrite/halves.ts';
import type { ofWords } from './words.ts';

/** What expands them. */
export const functionsOfWasm: Lazy<typeof expandMath> = new Lazy('functions for WebAssembly', async () => {
  return (await import('./math/math.ts')).expandMath;
});

/** Modules as text; loaded for those who read them. */
export const modulePrinter: Lazy<typeof printModule> = new Lazy('the text of WebAssembly', async () => {
  return (await import('./module/wat.ts')).printModule;
});

/** What splits vectors of 64-bit lanes. */
export const halver: Lazy<typeof halveVectors> = new Lazy('vectors of 64 bits', async () => {
  return (await import('./rewrite/halves.ts')).halveVectors;
});

/** How operations on parts of words are written. */
export const wordSpellings: Lazy<typeof ofWords> = new Lazy('parts of words', async () => {
  return (await import('./words.ts')).ofWords;
});

/** Whether `halveVectors` may change a Loop. */
export function hasWideVectors(loop: Loop): boolean {
  return someStatement(loop.body, (stmt) => valuesOf(stmt).some(needsHalving));
}

/** Those that are no instructions on some types, by no word of their rows. */
const others: ReadonlySet<LoopOp> = new Set<LoopOp>(['fma', 'mod', 'mulhi', 'sign', 'roundF16', 'roundBf16']);

/** Whether `expandMath` may replace the operation on operands of some type. */
export function mayBeExpanded(op: LoopOp): boolean {
  if (others.has(op)) return true;
  if (!Object.hasOwn(elementwiseRows, op)) return false;
  const { wasm } = elementwiseRows[op as ElementwiseOp];
  return wasm === 'math' || wasm === 'formula';
}

/** Whether `expandMath` may change a Loop. */
export function callsFunctions(loop: Loop): boolean {
  const calls = (value: Value): boolean =>
    (value.kind === 'op' && mayBeExpanded(value.op)) || operandsOf(value).some(calls);
  return someStatement(loop.body, (stmt) => valuesOf(stmt).some(calls));
}
