// Vectors of more than four lanes are the affair of C's emitter alone.

import { CompilerBug } from '../../errors.ts';
import { operandsOf } from './builder.ts';
import type { Loop, Value } from './loop.ts';
import { printLoop } from './print.ts';
import { someStatement, valuesOf } from './walk.ts';

/** Throws where a Loop has a vector of more than four lanes. */
export function refuseWide(loop: Loop, pass: string): void {
  if (someStatement(loop.body, (stmt) => valuesOf(stmt).some(isWideVector)))
    throw new CompilerBug(
      pass,
      `${loop.name} has vectors of more than four lanes, which only C has`,
      printLoop(loop),
    );
}

function isWideVector(value: Value): boolean {
  return value.width > 4 || operandsOf(value).some(isWideVector);
}
