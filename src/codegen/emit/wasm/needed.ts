// Which Loops have to be rewritten before they are spelled: those with vectors of 64-bit lanes.

import type { Loop } from '../../loop/loop.ts';
import { someStatement, valuesOf } from '../../loop/walk.ts';
import { needsHalving } from './registers.ts';

/** Whether `halveVectors` may change a Loop. */
export function hasWideVectors(loop: Loop): boolean {
  return someStatement(loop.body, (stmt) => valuesOf(stmt).some(needsHalving));
}
