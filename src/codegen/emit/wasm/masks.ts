// Bools in lanes beside lanes of 64 bits. A mask has 32 bits a lane (registers.ts), so that it
// fits most operands of a select; comparisons of 64-bit lanes make masks of 64 bits a lane, and
// selects of 64-bit lanes take such masks. Where one directly follows the other, nothing is
// converted.

import type { Value } from '../../loop/loop.ts';
import type { Emitter } from './emitter.ts';
import type { WasmOperation } from './integers.ts';
import { isLong } from '../../loop/register.ts';
import { laneShape } from './registers.ts';

/** Leaves a pair of bools on the stack as masks of 64 bits. */
export function longMask(to: Emitter, condition: Value): void {
  const { f } = to;
  if (condition.kind === 'op') {
    const { op, args } = condition;
    const [first] = args;
    switch (op) {
      case 'lt':
      case 'le':
      case 'eq':
      case 'ne':
        if (!isLong(first!.type)) break;
        compareLong(to, { ...condition, op });
        return;
      case 'and':
      case 'or':
      case 'xor':
        args.forEach((arg) => longMask(to, arg));
        f.op(`v128.${op}`);
        return;
      case 'not':
        longMask(to, first!);
        f.op('v128.not');
        return;
      default:
        break;
    }
  }
  to.value(condition);
  f.op('i64x2.extend_low_i32x4_s');
}

/** A pair of masks of 64 bits as two of 32. */
export function narrowMask(to: Emitter): void {
  lowWords(to);
}

/** The low words of two lanes of 64 bits, side by side. */
export function lowWords({ f }: Emitter): void {
  const local = f.local('pair', 'v128');
  f.tee(local);
  f.get(local);
  f.shuffle(4, [
    { source: 0, lane: 0 },
    { source: 0, lane: 2 },
  ]);
}

function compareLong(to: Emitter, value: WasmOperation & { readonly op: 'lt' | 'le' | 'eq' | 'ne' }): void {
  const { f } = to;
  const { op, args } = value;
  const { type } = args[0]!;
  const isOrder = op === 'lt' || op === 'le';
  for (const arg of args) {
    to.value(arg);
    if (type !== 'u64' || !isOrder) continue;
    // Signed numbers less 2⁶³ are in the order of unsigned ones.
    f.vector([0, 0x80000000, 0, 0x80000000]);
    f.op('v128.xor');
  }
  if (laneShape(type) === 'f64x2') f.op(`f64x2.${op}`);
  else f.op(isOrder ? `i64x2.${op}_s` : `i64x2.${op}`);
}
