// Targets for tests: the real profiles choose among schedules by size, and what fits a test is small. With these thresholds small
// programs run through every variant.

import {
  cudaTarget,
  gpuTarget,
  softwareTarget,
  wasmTarget,
  type RowProfile,
  type Target,
} from '../../src/schedule/target.ts';

/** A GPU that shares even short rows among two invocations or more, with little to fill. */
function sharing(name: string, rows: Partial<RowProfile>): Target {
  return {
    ...gpuTarget,
    name,
    cores: { count: 8, invocations: 1 },
    workgroupSize: 8,
    rows: { alone: 1, share: 2, registers: 0, shared: 0, fuse: Infinity, split: 64, ...rows },
  };
}

/** Where the elements of a row wait between two sweeps, and how its invocations come together. */
export const rowTargets: Readonly<Record<string, Target>> = {
  'rows in registers': sharing('registers', { registers: 64 }),
  'rows in workgroup memory': sharing('workgroup', { shared: 16_384 }),
  'rows streamed': sharing('streamed', {}),
  'rows streamed in fewer sweeps': sharing('fused', { fuse: 0 }),
  // SwiftShader's subgroups have four invocations.
  'rows joined by subgroups of 4': {
    ...sharing('subgroups', { registers: 64 }),
    subgroups: { min: 4, max: 4 },
  },
  'rows joined by subgroups of any size': {
    ...sharing('unknown subgroups', { share: 4, fuse: 0 }),
    subgroups: { min: 1, max: 4 },
  },
  'rows on a core': {
    ...wasmTarget,
    name: 'core',
    cores: { count: 2, invocations: 1 },
    elementsPerInvocation: 64,
    serial: { unroll: 4, work: 32, width: 2 },
    rows: { ...wasmTarget.rows, shared: 16_384 },
  },
};

/** The software adapter's schedules, with blocks of a few elements. */
export const smallBlocks: Target = {
  ...softwareTarget,
  name: 'small blocks',
  cores: { count: 2, invocations: 1 },
  elementsPerInvocation: 8,
  workgroupSize: 2,
  rows: { ...softwareTarget.rows, registers: 0, fuse: 0 },
};

/** Every profile there is, and those of tests. */
export const allTargets: readonly Target[] = [
  gpuTarget,
  softwareTarget,
  wasmTarget,
  cudaTarget,
  smallBlocks,
  ...Object.values(rowTargets),
];
