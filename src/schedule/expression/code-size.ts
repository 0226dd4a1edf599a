// How much code an operation becomes. The size of kernels is bounded in this unit, so that every
// compiler that takes our sources can compile them. Figures are those of WebAssembly, which has no
// functions beyond the square root; those of WGSL and CUDA C are similar where we emit functions of
// our own. Compilers for the CPU allow 50,000 registers in one function, and a plain operation
// takes some dozens of them.

import { isFloat, isWide, type DType } from '../../ir/dtype.ts';
import { facts, type Op } from '../../ir/ops.ts';

/**
 * The code that an operation becomes, in plain operations: long ones take four times as much in
 * f64, quotients of integers four. Those of 64 bits, and remainders, are a loop over the bits where
 * integers have words.
 */
export function codeSize(op: Op, dtype: DType): number {
  const { flops, codeSize: size = 1 } = facts(op);
  if (isWide(dtype) && (op === 'div' || op === 'mod')) return 32;
  if (op === 'div') return isFloat(dtype) ? 1 : 4;
  return dtype === 'f64' && flops > 4 ? 4 * size : size;
}
