// The target of C: the processor of this machine, with the vector registers that it has.

import type { DeviceFacts } from '../runtime/device.ts';
import type { Target, VectorProfile } from './machine.ts';
import { wasmTarget } from './target.ts';

/** C on the processor of this machine, which shares the memory of WebAssembly and its schedules. */
export const cTarget: Target = { ...wasmTarget, id: 'c', name: 'native' };

/** The target for an open device. */
export function cTargetOf({ features, limits, threads }: DeviceFacts): Target {
  return {
    ...withVectors(cTarget, vectorsOf(features)),
    limits: { ...limits },
    ...(threads !== undefined && { threads }),
  };
}

/** Vector registers of a processor with these features; undefined where they have four lanes. */
function vectorsOf(features: readonly string[]): VectorProfile | undefined {
  if (features.includes('avx512f')) return { lanes: 16, registers: 32 };
  if (features.includes('avx2') && features.includes('fma')) return { lanes: 8, registers: 16 };
  return undefined;
}

/**
 * The target with registers of so many lanes: an iteration of a loop has as many of them as it has
 * of four lanes elsewhere.
 */
export function withVectors(target: Target, vectors: VectorProfile | undefined): Target {
  const { serial } = target;
  if (vectors === undefined || serial === undefined) return target;
  const times = vectors.lanes / 4;
  return {
    ...target,
    vectors,
    serial: {
      ...serial,
      unroll: serial.unroll * times,
      work: serial.work * times,
      inRegister: times,
    },
  };
}
