// Instruction sets for which a model in C has kernels of their own, in a file of their own. The portable file asks the
// processor at each call which of them it has.

import { cTarget, vectorsOf, withVectors, type Target } from '../../schedule/target.ts';

export type CIsa = 'avx512' | 'avx2';

export interface IsaFacts {
  /** What the compiler is told for the file of this set. */
  readonly flag: string;
  /** What a processor must have, as `__builtin_cpu_supports` calls it: all that the flag lets the compiler use. */
  readonly features: readonly string[];
}

/** The best first. */
export const isas: Readonly<Record<CIsa, IsaFacts>> = {
  avx512: {
    flag: '-march=x86-64-v4',
    features: ['avx512f', 'avx512bw', 'avx512cd', 'avx512dq', 'avx512vl', 'avx2', 'fma', 'bmi', 'bmi2'],
  },
  avx2: { flag: '-march=x86-64-v3', features: ['avx2', 'fma', 'bmi', 'bmi2'] },
};

export const isaNames: readonly CIsa[] = Object.keys(isas) as CIsa[];

/** What kernels of a set are compiled for. */
export function targetFor(isa: CIsa): Target {
  return withVectors(cTarget, vectorsOf(isas[isa].features));
}
