// Which Loops have to be rewritten before they are spelled: those that call functions.

import { elementwiseRows, type ElementwiseOp } from '../../../../ir/ops.ts';
import { operandsOf } from '../../../loop/builder.ts';
import type { Loop, LoopOp, Value } from '../../../loop/loop.ts';
import { someStatement, valuesOf } from '../../../loop/walk.ts';

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
