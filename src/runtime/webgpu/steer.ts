// Runs whose loops the host steers: their operations are submitted in parts, between which the host reads the guards
// of the loops.

import { everyStep, type Program } from '../program.ts';
import type { WebGpuEngine } from './engine.ts';
import type { GpuOperation, GpuRegion } from './operations.ts';

/** GPUMapMode.READ; Node has no such global. */
const MAP_READ = 1;

/** Whether the host has to read what a run has computed before it knows how it goes on. */
export function isSteered({ steps }: Program): boolean {
  for (const { kind } of everyStep(steps)) if (kind === 'while') return true;
  return false;
}

/** Does work whose errors are caught; false where there were any. */
type Guarded = (work: () => void) => Promise<boolean>;

/** Whether a loop that the host steers is in there. */
function holdsWhile(operation: GpuOperation): boolean {
  return operation.kind === 'while' || (operation.kind === 'repeat' && operation.operations.some(holdsWhile));
}

/**
 * Submits operations in parts, in order, and reads the guard of a loop before each of its turns;
 * false where one failed, which is the last.
 */
export async function steerOperations(
  engine: WebGpuEngine,
  operations: readonly GpuOperation[],
  part: Guarded,
): Promise<boolean> {
  let waiting: GpuOperation[] = [];
  const flushed = async (): Promise<boolean> => {
    const ready = waiting;
    waiting = [];
    return ready.length === 0 || (await part(() => engine.commands.submit(ready)));
  };
  for (const operation of operations) {
    if (!holdsWhile(operation)) {
      waiting.push(operation);
      continue;
    }
    if (operation.kind !== 'while' && operation.kind !== 'repeat') continue;
    if (!(await flushed())) return false;
    for (let time = 0; time < operation.times; time++) {
      if (operation.kind === 'while') {
        const goesOn = await readGuard(engine, operation.guard, part);
        if (goesOn === undefined) return false;
        if (!goesOn) break;
      }
      if (!(await steerOperations(engine, operation.operations, part))) return false;
    }
  }
  return flushed();
}

/** Whether the i32 there is not 0; undefined where it could not be read. */
async function readGuard(
  { gpu, memory, failures, wait }: WebGpuEngine,
  { slab, offset }: GpuRegion,
  part: Guarded,
): Promise<boolean | undefined> {
  if (failures.lost) return undefined;
  const staging = memory.stage(4);
  let mapping: Promise<boolean> | undefined;
  const copied = part(() => {
    const encoder = gpu.createCommandEncoder();
    encoder.copyBufferToBuffer(slab.gpu, offset, staging.gpu, 0, 4);
    gpu.queue.submit([encoder.finish()]);
    mapping = staging.gpu.mapAsync(MAP_READ, 0, 4).then(
      () => true,
      () => false,
    );
  });
  const isMapped = await wait(copied.then(() => mapping ?? false));
  try {
    return isMapped ? new Int32Array(staging.gpu.getMappedRange(0, 4))[0] !== 0 : undefined;
  } finally {
    if (isMapped) staging.gpu.unmap();
    memory.unstage(staging, isMapped);
  }
}
