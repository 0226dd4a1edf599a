// Warp groups of Hopper: their sizes, the registers that invocations of each kind keep, and the rings of slots through which
// tiles come to those that multiply.

import { constant, operation, type LoopBuilder } from '../../loop/builder.ts';
import type { Value } from '../../loop/loop.ts';

/** Invocations of a warp group, and of a warp. */
export const warpgroup = 128;
export const warp = 32;
/** Rows of one multiplication. */
export const wgmmaRows = 64;
/** Registers of an invocation that has tiles copied, and of one of two warp groups that multiply. */
export const groupRegisters = { copies: 40, multiplies: 232 } as const;

/** The slot of a turn, and the parity of how often the ring was gone round before. */
export function turnOf(b: LoopBuilder, turn: Value, slots: number): readonly [slot: Value, parity: Value] {
  const slot = b.let(operation('mod', [turn, constant(slots)], 'i32'), 'slot');
  const rounds = operation('div', [turn, constant(slots)], 'i32');
  return [slot, b.let(operation('mod', [rounds, constant(2)], 'i32'), 'parity')];
}
