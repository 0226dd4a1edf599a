// The steps of a run with the buffer ranges that they bind, and the code that submits them. Each call into WebGPU
// costs a host about a microsecond, so a dispatch takes three calls at most, and what is set already is not set again.

import type { GpuPlace } from './memory.ts';
import type { Stopwatch } from './stopwatch.ts';

export type GpuOperation =
  | {
      readonly kind: 'dispatch';
      readonly pipeline: GPUComputePipeline;
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

type GpuDispatch = Extract<GpuOperation, { readonly kind: 'dispatch' }>;
type GpuTransfer = Extract<GpuOperation, { readonly kind: 'copy' | 'clear' }>;

/**
 * Operations in one command buffer: loops of many turns take several, so that the GPU begins while
 * the rest is encoded, and none runs as long as drivers allow one to.
 */
const commandLimit = 4096;

/**
 * Encodes and submits operations, with dispatches in as few passes as copies allow. One serves all runs of a
 * device, so a submit makes no object but those of WebGPU.
 */
export class Commands {
  readonly #gpu: GPUDevice;
  readonly #queue: GPUQueue;
  readonly #stopwatch: Stopwatch;
  /** What the queue takes: one command buffer. */
  readonly #finished: GPUCommandBuffer[] = [];
  /** Operations in the current command buffer. */
  #encoded = 0;
  #encoder: GPUCommandEncoder | undefined;
  #pass: GPUComputePassEncoder | undefined;
  /** What is set in the current pass. */
  #pipeline: GPUComputePipeline | undefined;
  #group: GPUBindGroup | undefined;

  constructor(gpu: GPUDevice, stopwatch: Stopwatch) {
    this.#gpu = gpu;
    this.#queue = gpu.queue;
    this.#stopwatch = stopwatch;
  }

  /** Submits operations, none of which is steered. */
  submit(operations: readonly GpuOperation[]): void {
    try {
      this.#encode(operations);
      this.#flush();
    } finally {
      // After an exception the next submit must not go on with what is half encoded.
      this.#encoder = undefined;
      this.#leavePass();
      this.#encoded = this.#finished.length = 0;
    }
  }

  #encode(operations: readonly GpuOperation[]): void {
    for (let at = 0; at < operations.length; at++) {
      const operation = operations[at]!;
      switch (operation.kind) {
        case 'dispatch':
          this.#count();
          this.#dispatch(operation);
          break;
        case 'copy':
        case 'clear':
          this.#count();
          this.#endPass();
          encodeTransfer(this.#open(), operation);
          break;
        case 'repeat':
          for (let time = 0; time < operation.times; time++) this.#encode(operation.operations);
          break;
        case 'while':
          break;
        default:
          operation satisfies never;
      }
    }
  }

  /** Counts one more operation, which begins another command buffer if this one is full. */
  #count(): void {
    if (this.#encoded === commandLimit) this.#flush();
    this.#encoded += 1;
  }

  #dispatch({ pipeline, group, grid }: GpuDispatch): void {
    const pass = (this.#pass ??= this.#open().beginComputePass(this.#stopwatch.pass));
    if (pipeline !== this.#pipeline) {
      pass.setPipeline(pipeline);
      this.#pipeline = pipeline;
    }
    if (group !== this.#group) {
      pass.setBindGroup(0, group);
      this.#group = group;
    }
    // Arguments with default values are left out: each costs time in a call into native code.
    if (grid[2] !== 1) pass.dispatchWorkgroups(grid[0], grid[1], grid[2]);
    else if (grid[1] !== 1) pass.dispatchWorkgroups(grid[0], grid[1]);
    else pass.dispatchWorkgroups(grid[0]);
  }

  #open(): GPUCommandEncoder {
    return (this.#encoder ??= this.#gpu.createCommandEncoder());
  }

  /** Copies and clears are encoded outside of compute passes. */
  #endPass(): void {
    this.#pass?.end();
    this.#leavePass();
  }

  /** What is set ends with the pass. */
  #leavePass(): void {
    this.#pass = this.#pipeline = this.#group = undefined;
  }

  /** Submits what is encoded, if anything is. */
  #flush(): void {
    this.#endPass();
    const encoder = this.#encoder;
    this.#encoder = undefined;
    this.#encoded = 0;
    if (encoder === undefined) return;
    this.#finished[0] = encoder.finish();
    this.#queue.submit(this.#finished);
  }
}

/** Encodes what stands outside of compute passes. */
function encodeTransfer(encoder: GPUCommandEncoder, operation: GpuTransfer): void {
  if (operation.kind === 'copy') {
    const { from, to } = operation;
    encoder.copyBufferToBuffer(from.slab.gpu, from.offset, to.slab.gpu, to.offset, from.bytes);
  } else {
    const { slab, offset, bytes } = operation.region;
    encoder.clearBuffer(slab.gpu, offset, bytes);
  }
}
