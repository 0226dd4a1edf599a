// Checks that every index of a Loop fits 32 bits. Integer arithmetic of the program itself wraps around and
// is marked so. Every other sum, difference and product of i32 must fit, or a kernel would silently read and
// write elsewhere. The check follows the ranges of the operands, and the value that a loop counter reaches
// past its end. Values that come from memory are clamped before they are used as indices.

import { CompilerBug } from '../../errors.ts';
import { operandsOf } from './builder.ts';
import type { Loop, LoopOp, Stmt, Value } from './loop.ts';
import { fitsWord, rangesOf, resultRange, type ValueRanges } from './ranges.ts';
import { loopAsText, valueAsText } from './text.ts';
import { statementsIn, valuesOf } from './walk.ts';

/** Throws a CompilerBug for arithmetic on indices that may leave 32 bits. */
export function verifyRanges(loop: Loop): void {
  new Verifier(loop).body(loop.body);
}

/** These give one of their operands, which fits. */
const choices: ReadonlySet<LoopOp> = new Set<LoopOp>(['where', 'min', 'max']);

class Verifier {
  readonly #loop: Loop;
  readonly #known: ValueRanges;

  constructor(loop: Loop) {
    this.#loop = loop;
    this.#known = rangesOf(loop, true);
  }

  body(body: readonly Stmt[]): void {
    for (const stmt of statementsIn(body)) {
      for (const value of valuesOf(stmt)) this.#value(value);
      if (stmt.kind === 'for') this.#counter(stmt);
    }
  }

  #value(value: Value): void {
    for (const operand of operandsOf(value)) this.#value(operand);
    if (value.kind !== 'op' || value.type !== 'i32' || value.wraps === true || choices.has(value.op)) return;
    const range = resultRange(value, this.#loop, this.#known);
    if (range === undefined || fitsWord(range)) return;
    this.#fail(`${valueAsText(value)} reaches ${range.join(' to ')}`);
  }

  /** The counter is raised once more before it is found to have passed the end. */
  #counter({ name, end, step }: Extract<Stmt, { kind: 'for' }>): void {
    const range = resultRange(end, this.#loop, this.#known);
    if (range !== undefined && Number.isFinite(range[1]) && !fitsWord([0, range[1] + step - 1]))
      this.#fail(`${name} ends at ${range[1]} in steps of ${step}`);
  }

  #fail(problem: string): never {
    throw new CompilerBug('verify-ranges', `an index leaves 32 bits: ${problem}`, loopAsText(this.#loop));
  }
}
