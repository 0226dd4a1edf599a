// The steps of a run with the buffer ranges that they bind, and the code that submits them: in one command
// buffer, or in parts if the host steers loops, between which it reads their guards.

import { everyStep, type Program } from '../program.ts';
import type { WebGpuEngine } from './engine.ts';
import type { GpuPlace } from './memory.ts';
import type { CompiledPipeline } from './pipelines.ts';

export type GpuOperation =
  | {
      readonly kind: 'dispatch';
      readonly compiled: CompiledPipeline;
      readonly group: GPUBindGroup;
      readonly grid: readonly [number, number, number];
    }
  | { readonly kind: 'copy'; readonly from: GpuRegion; readonly to: GpuRegion }
  | { readonly kind: 'clear'; readonly region: GpuRegion }
  | { readonly kind: 'repeat'; readonly times: number; readonly operations: readonly GpuOperation[] }
  | {
      readonly kind: 'while';
      readonly guard: GpuRegion;
      readonly times: number;
      readonly operations: readonly GpuOperation[];
    };

export interface GpuRegion extends GpuPlace {
  readonly bytes: number;
}

type Single = Exclude<GpuOperation, { readonly kind: 'repeat' | 'while' }>;

/** GPUMapMode.READ; Node has no such global. */
const MAP_READ = 1;

/**
 * Operations in one command buffer: loops of many turns take several, so that the GPU begins while
 * the rest is encoded, and none runs as long as drivers allow one to.
 */
const commandLimit = 4096;

/** Whether the host has to read what a run has computed before it knows how it goes on. */
export function isSteered({ steps }: Program): boolean {
  for (const { kind } of everyStep(steps)) if (kind === 'while') return true;
  return false;
}

/** Submits operations, none of which is steered, with dispatches in as few passes as copies allow. */
export function submitOperations(
  { gpu, stopwatch }: WebGpuEngine,
  operations: readonly GpuOperation[],
): void {
  let encoder = gpu.createCommandEncoder();
  let pass: GPUComputePassEncoder | undefined;
  let current: CompiledPipeline | undefined;
  let encoded = 0;
  const encode = (operation: GpuOperation): void => {
    if (operation.kind === 'while') return;
    if (operation.kind === 'repeat') {
      for (let time = 0; time < operation.times; time++) operation.operations.forEach(encode);
      return;
    }
    encoded += 1;
    if (encoded > commandLimit) {
      pass?.end();
      pass = current = undefined;
      gpu.queue.submit([encoder.finish()]);
      encoder = gpu.createCommandEncoder();
      encoded = 1;
    }
    if (operation.kind !== 'dispatch') {
      pass?.end();
      pass = current = undefined;
      encodeTransfer(encoder, operation);
      return;
    }
    pass ??= encoder.beginComputePass(stopwatch.pass);
    if (operation.compiled !== current) {
      current = operation.compiled;
      pass.setPipeline(current.pipeline!);
    }
    pass.setBindGroup(0, operation.group);
    dispatch(pass, operation.grid);
  };
  operations.forEach(encode);
  pass?.end();
  gpu.queue.submit([encoder.finish()]);
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
    return ready.length === 0 || (await part(() => submitOperations(engine, ready)));
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

/**
 * Arguments with default values are left out, because each argument costs time in a call into
 * native code.
 */
function dispatch(pass: GPUComputePassEncoder, [x, y, z]: readonly [number, number, number]): void {
  if (z !== 1) pass.dispatchWorkgroups(x, y, z);
  else if (y !== 1) pass.dispatchWorkgroups(x, y);
  else pass.dispatchWorkgroups(x);
}

/** Copies and clears are encoded outside of compute passes. */
function encodeTransfer(
  encoder: GPUCommandEncoder,
  operation: Exclude<Single, { readonly kind: 'dispatch' }>,
): void {
  if (operation.kind === 'copy') {
    const { from, to } = operation;
    encoder.copyBufferToBuffer(from.slab.gpu, from.offset, to.slab.gpu, to.offset, from.bytes);
  } else {
    const { slab, offset, bytes } = operation.region;
    encoder.clearBuffer(slab.gpu, offset, bytes);
  }
}
