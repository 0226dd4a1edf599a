// Loops as text in messages of bugs. The text is a slot, which the chunk of verifiers fills: pages that do not load it name kinds
// and kernels alone.

import { Slot } from '../../slot.ts';
import type { Loop, Stmt, Value } from './loop.ts';
import type { printLoop, printStmt, printValue } from './print.ts';

/** The functions that print. */
export interface LoopText {
  readonly printLoop: typeof printLoop;
  readonly printStmt: typeof printStmt;
  readonly printValue: typeof printValue;
}

export const loopText: Slot<LoopText> = new Slot('the text of Loops');

/** A Loop, or its name. */
export function loopAsText(loop: Loop): string {
  return loopText.filled?.printLoop(loop) ?? loop.name;
}

/** A statement, or its kind. */
export function stmtAsText(stmt: Stmt): string {
  return loopText.filled?.printStmt(stmt) ?? stmt.kind;
}

/** A value, or its kind. */
export function valueAsText(value: Value): string {
  return loopText.filled?.printValue(value) ?? value.kind;
}
