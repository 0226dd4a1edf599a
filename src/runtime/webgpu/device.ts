// A WebGPU device behind the Device contract: one timeline for everything that must keep its order,
// one memory, one cache of pipelines. Writes and runs return at once; reads wait for what came
// before them.

import type { Device, DeviceAllocation, DeviceFacts, LoadedProgram } from '../device.ts';
import { GpuBuffer } from '../memory.ts';
import type { Program } from '../program.ts';
import type { Sharing } from '../sharing.ts';
import { WebGpuSharing } from './sharing.ts';
import { GpuFailures } from './failures.ts';
import type { WebGpuEngine, Wait } from './engine.ts';
import { loadProgram } from './load.ts';
import { GpuMemory, type GpuPlace, type GpuSlab } from './memory.ts';
import { Commands } from './operations.ts';
import { Pipelines } from './pipelines.ts';
import { Scratch } from '../scratch.ts';
import { Stopwatch } from './stopwatch.ts';
import { Timeline } from '../timeline.ts';

/** GPUMapMode.READ; Node has no such global. */
const MAP_READ = 1;

/**
 * Wraps a GPUDevice; it must have been made with the limits that `facts` name. One that is shared
 * with its owner is not destroyed, and its owner's mistakes are not taken for ours.
 */
export class WebGpuDevice implements Device {
  readonly facts: DeviceFacts;
  readonly #engine: WebGpuEngine;
  #sharing: Sharing | undefined;
  readonly #wait: Wait;
  readonly #isShared: boolean;

  constructor(
    gpu: GPUDevice,
    facts: DeviceFacts,
    budget: number,
    wait: Wait = (promise) => promise,
    isShared = false,
  ) {
    this.#isShared = isShared;
    this.facts = facts;
    this.#wait = wait;
    const { name, limits } = facts;
    const timeline = new Timeline();
    const failures = new GpuFailures(gpu, name, isShared);
    const sizes = { bufferBytes: limits.bufferBytes, budget };
    const memory = new GpuMemory(gpu, name, sizes, timeline, failures);
    const scratch = new Scratch(memory);
    const pipelines = new Pipelines(gpu, name, failures);
    const stopwatch = new Stopwatch(gpu, timeline);
    const commands = new Commands(gpu, stopwatch);
    this.#engine = { gpu, facts, timeline, failures, memory, scratch, pipelines, stopwatch, commands, wait };
  }

  get lost(): boolean {
    return this.#engine.failures.lost;
  }

  allocate(bytes: number): DeviceAllocation {
    this.#engine.failures.assertAlive();
    return this.#engine.memory.allocate(bytes);
  }

  write(buffer: DeviceAllocation, bytes: Uint8Array): void {
    const { gpu, failures, memory, timeline } = this.#engine;
    failures.assertAlive();
    const place = this.#place(buffer);
    const padded = Math.ceil(bytes.length / 4) * 4;
    if (padded > buffer.bytes) {
      throw memory.misuse(`${bytes.length} bytes were written to a buffer of ${buffer.bytes}`);
    }
    // Deno ends its process at writes of nothing.
    if (padded === 0) return;
    const at = failures.tick();
    const upload = (data: Uint8Array): void => {
      if (failures.lost) return;
      void failures.guard(at, failures.describe, () => {
        gpu.queue.writeBuffer(place.slab.gpu, place.offset, data as Uint8Array<ArrayBuffer>, 0, data.length);
      });
    };
    // Dawn crashes on shared memory, and WebGPU writes whole words only.
    const direct = padded === bytes.length && bytes.buffer instanceof ArrayBuffer;
    if (direct && timeline.idle) upload(bytes);
    else {
      const copy = new Uint8Array(padded);
      copy.set(bytes);
      timeline.push(() => upload(copy));
    }
  }

  async read(buffer: DeviceAllocation, bytes: number): Promise<Uint8Array> {
    const { failures, memory } = this.#engine;
    failures.assertAlive();
    const place = this.#place(buffer);
    if (!(Number.isInteger(bytes) && bytes >= 0 && bytes <= buffer.bytes)) {
      throw memory.misuse(`${bytes} bytes were read from a buffer of ${buffer.bytes}`);
    }
    const length = Math.max(4, Math.ceil(bytes / 4) * 4);
    const staging = memory.stage(length);
    const at = failures.tickRead();
    const mapped = await this.#wait(this.#copyOut(place, staging, length, at));
    try {
      failures.deliver(at);
      if (!mapped) throw memory.misuse(`a buffer of ${buffer.bytes} bytes could not be mapped`);
      return new Uint8Array(staging.gpu.getMappedRange(0, length)).slice(0, bytes);
    } finally {
      if (mapped) staging.gpu.unmap();
      memory.unstage(staging, mapped);
    }
  }

  load(program: Program): LoadedProgram {
    this.#engine.failures.assertAlive();
    return loadProgram(this.#engine, program);
  }

  async finish(): Promise<void> {
    const { gpu, failures, timeline } = this.#engine;
    failures.assertAlive();
    const at = failures.tickRead();
    await this.#wait(timeline.drained());
    // An empty scope is popped after all earlier ones.
    const popped = failures.guard(at, failures.describe, () => {});
    await this.#wait(Promise.all([popped, gpu.queue.onSubmittedWorkDone()]));
    failures.deliver(at);
  }

  measure(work: () => void): Promise<number | undefined> {
    this.#engine.failures.assertAlive();
    return this.#engine.stopwatch.measure(work);
  }

  sharing(): Promise<Sharing> {
    this.#sharing ??= new WebGpuSharing(this.#engine);
    return Promise.resolve(this.#sharing);
  }

  memory(): { readonly live: number; readonly pooled: number; readonly buffers: number } {
    return this.#engine.memory.report();
  }

  destroy(): void {
    this.#engine.failures.lose('the device was destroyed');
    if (!this.#isShared) this.#engine.gpu.destroy();
  }

  #place(buffer: DeviceAllocation): GpuPlace {
    const { memory } = this.#engine;
    if (buffer instanceof GpuBuffer) return buffer.place(memory);
    throw memory.misuse('a buffer of another device was used');
  }

  /** Copies into staging when its turn comes, and maps that; false when it could not be mapped. */
  async #copyOut(from: GpuPlace, staging: GpuSlab, bytes: number, at: number): Promise<boolean> {
    const { gpu, failures, timeline } = this.#engine;
    let mapping: Promise<boolean> | undefined;
    const copied = await new Promise<{ all: Promise<unknown> }>((resolve) => {
      timeline.push(() => {
        const all = failures.guard(at, failures.describe, () => {
          const encoder = gpu.createCommandEncoder();
          encoder.copyBufferToBuffer(from.slab.gpu, from.offset, staging.gpu, 0, bytes);
          gpu.queue.submit([encoder.finish()]);
          mapping = staging.gpu.mapAsync(MAP_READ, 0, bytes).then(
            () => true,
            () => false,
          );
        });
        resolve({ all });
      });
    });
    await copied.all;
    return (await mapping) ?? false;
  }
}
