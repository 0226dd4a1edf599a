// How much code operations become: what a kernel may hold is counted in it, so that texts stay short enough for every compiler behind
// ours. Figures are those of WebAssembly, which has no functions beyond the square root; WGSL and CUDA C are alike where they have
// functions of our own. A core's compiler takes 50,000 registers in one function, and a plain operation some dozens of them.

import { isFloat, type DType } from '../../ir/dtype.ts';
import { facts, type Op } from '../../ir/ops.ts';

/** Operations whose code is long, in plain operations that take as much: ranges are reduced, and special values told apart. */
const longOps: Partial<Readonly<Record<Op, number>>> = {
  log: 2,
  log2: 2,
  log1p: 2,
  erf: 2,
  atan2: 2,
  sinh: 2,
  cosh: 2,
  mod: 4,
  pow: 6,
  sin: 8,
  cos: 8,
  tan: 8,
  randomBits: 10,
};

/** What an operation brings to a kernel's text, in plain operations: four times as much in doubles, quotients of integers more. */
export function codeSize(op: Op, dtype: DType): number {
  const size = longOps[op] ?? 1;
  if (op === 'div') return isFloat(dtype) ? 1 : 4;
  return dtype === 'f64' && facts(op).flops > 4 ? 4 * size : size;
}
