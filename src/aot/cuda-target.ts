// What GPUs the CUDA kernels of a bundle are written for. The sources go to every GPU from the
// oldest of those asked for on, so they take no more than all of these have; for one kind of GPU
// alone they use what it has beyond others.

import { SinterError } from '../errors.ts';
import { archNamed, type ArchName } from '../runtime/cuda/modules/arch.ts';
import { cudaTarget, type Target } from '../schedule/target.ts';

/**
 * Machine code for the two generations in data centres, and PTX for all GPUs that are younger than
 * the first of them.
 */
export const usualArchs: readonly string[] = ['sm_80', 'sm_90', 'compute_80'];

export interface CudaTarget {
  readonly target: Target;
  /** `compute_80` for that and all later GPUs, `compute_90a` for this one alone. */
  readonly arch: string;
}

/** The target of kernels that are compiled for `archs`. Throws E_VALUE at a name that is none. */
export function cudaTargetFor(archs: readonly string[]): CudaTarget {
  const named = archs.map((name): ArchName => {
    const arch = archNamed(name);
    if (arch !== undefined && arch.capability >= 50) return arch;
    throw new SinterError(
      'E_VALUE',
      `'${name}' is not the name of a GPU: expected names such as sm_80, sm_90a or compute_80`,
    );
  });
  const capability = Math.min(...named.map((arch) => arch.capability));
  const isAlone = named.every((arch) => arch.isAlone && arch.capability === capability);
  const { matrixUnits, limits, ...simple } = cudaTarget;
  return {
    arch: `compute_${capability}${isAlone ? 'a' : ''}`,
    target: {
      ...simple,
      limits: { ...limits, workgroupBytes: sharedBytes(capability, isAlone) },
      // What kernels for matrix units are made of begins with compute capability 8.
      ...(capability >= 80 && matrixUnits !== undefined && { matrixUnits }),
      ...(isAlone && capability === 90 && { warpgroups: true }),
    },
  };
}

/**
 * Shared memory that a block may ask for, by the CUDA programming guide's table of compute
 * capabilities.
 */
function sharedBytes(capability: number, isAlone: boolean): number {
  const KiB = 1024;
  if (isAlone && capability < 120) return 227 * KiB;
  // Those of the 12th generation have no more than the 86 and the 89; the 75 has less than the 70.
  return (capability >= 80 ? 99 : capability >= 70 ? 64 : 48) * KiB;
}
