// WebGPU forbids copies within one buffer: they go by another, which has room for the largest.

import { everyStep, type Program } from '../program.ts';

/** The largest copy between two scratch buffers of one arena. */
export function bounceBytes({ steps, buffers }: Program): number {
  let largest = 0;
  for (const step of everyStep(steps)) {
    if (step.kind !== 'copy') continue;
    const from = buffers[step.from]!;
    const to = buffers[step.to]!;
    const within = from.role === 'scratch' && to.role === 'scratch' && from.arena === to.arena;
    if (within && from.offset !== to.offset) largest = Math.max(largest, from.bytes);
  }
  return largest;
}
