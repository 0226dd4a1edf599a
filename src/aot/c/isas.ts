// Instruction sets for which a model in C has kernels of their own, in a file of their own. The portable file asks the
// processor at each call which of them it has.

import { cTarget, vectorsOf, withVectors, type Target } from '../../schedule/target.ts';

export type CIsa = 'avx512' | 'avx2';

/** By set, the best first: what a processor must have, as flags of compilers and `__builtin_cpu_supports` call it. */
const features: Readonly<Record<CIsa, readonly string[]>> = {
  avx512: ['avx512f', 'avx512bw', 'avx512dq', 'avx512vl', 'avx2', 'fma', 'bmi', 'bmi2'],
  avx2: ['avx2', 'fma', 'bmi', 'bmi2'],
};

export const isaNames: readonly CIsa[] = Object.keys(features) as CIsa[];

/** What kernels of a set are compiled for. */
export function targetFor(isa: CIsa): Target {
  return withVectors(cTarget, vectorsOf(features[isa]));
}

/**
 * What the compiler is told for the file of a set: no instruction but those that `isPresentText` asks for. Every processor
 * with AVX2 has f16c, which compilers do not all ask for.
 */
export function flagsFor(isa: CIsa): string {
  return ['-march=x86-64', ...features[isa].map((feature) => `-m${feature}`), '-mf16c'].join(' ');
}

/** Whether the processor has a set, as C. */
export function isPresentText(isa: CIsa): string {
  return features[isa].map((feature) => `__builtin_cpu_supports("${feature}")`).join(' &&\n         ');
}
