// How much code operations become: what a kernel may hold is counted in it, so that texts stay
// short enough for every compiler behind ours. Figures are those of WebAssembly, which has no
// functions beyond the square root; WGSL and CUDA C are alike where they have functions of our own.
// A core's compiler takes 50,000 registers in one function, and a plain operation some dozens of
// them.

import { isFloat, type DType } from '../../ir/dtype.ts';
import { facts, type Op } from '../../ir/ops.ts';

/**
 * What an operation brings to a kernel's text, in plain operations: four times as much in doubles,
 * quotients of integers more.
 */
export function codeSize(op: Op, dtype: DType): number {
  const { flops, codeSize: size = 1 } = facts(op);
  if (op === 'div') return isFloat(dtype) ? 1 : 4;
  return dtype === 'f64' && flops > 4 ? 4 * size : size;
}
