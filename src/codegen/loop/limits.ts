// Whether a Loop fits a device: what it launches, binds and keeps in workgroup memory, against the device's limits.

import { CompilerBug } from '../../errors.ts';
import { dtypeBytes } from '../../ir/dtype.ts';
import type { Loop } from './loop.ts';
import { printLoop } from './print.ts';

/** Limits of a device that a Loop must keep. */
export interface LoopLimits {
  readonly storageBuffers: number;
  readonly workgroupBytes: number;
  readonly workgroupInvocations: number;
  readonly workgroupsPerDimension: number;
}

/** Throws CompilerBug with the limit that is passed, and by how much. */
export function checkLimits(loop: Loop, limits: LoopLimits): void {
  const most = (what: string, value: number, limit: number): void => {
    if (value > limit)
      throw new CompilerBug(
        'verify-loop',
        `${loop.name}: ${value} ${what}, at most ${limit}`,
        printLoop(loop),
      );
  };
  for (const groups of loop.grid) most('workgroups in one dimension', groups, limits.workgroupsPerDimension);
  const [x, y, z] = loop.workgroup;
  most('invocations in a workgroup', x * y * z, limits.workgroupInvocations);
  most('deep workgroup', z, 64);
  const shared = loop.buffers.filter((buffer) => buffer.space === 'workgroup');
  const barriers = (loop.mbarriers ?? []).reduce((sum, { size }) => sum + 8 * size, 0);
  const bytes = shared.reduce(
    (sum, { dtype, size }) => sum + 16 * Math.ceil((dtypeBytes(dtype) * size) / 16),
    barriers,
  );
  most('bytes of workgroup memory', bytes, limits.workgroupBytes);
  most('storage buffers', loop.buffers.length - shared.length, limits.storageBuffers);
}
