// A CUDA device behind the Device contract: one stream for everything that must keep its order, one
// memory, one cache of kernels. Writes and runs return at once; reads wait for what came before
// them.

import { noStream, ranksOf, type Communicator } from '../communicator.ts';
import type { Device, DeviceAllocation, DeviceFacts, LoadedProgram } from '../device.ts';
import { Failures } from '../failures.ts';
import type { Move } from '../layout.ts';
import { GpuBuffer, BufferPools, type MemoryLocation } from '../memory.ts';
import type { Program } from '../program.ts';
import type { Sharing } from '../sharing.ts';
import { Scratch } from '../scratch.ts';
import { Timeline } from '../timeline.ts';
import { CudaClock } from './clock.ts';
import type { CudaCompiler } from './modules/compiler.ts';
import { CudaContext } from './api/context.ts';
import type { Cubins } from './modules/cubins.ts';
import { Fences } from './fences.ts';
import type { Gpu } from './api/gpu.ts';
import { Images } from './modules/images.ts';
import { loadProgram, type CudaEngine } from './load.ts';
import { Marshal } from './api/marshal.ts';
import { CudaModules } from './modules/modules.ts';
import { DeviceMemory } from './source.ts';
import { RankStream } from './rank-stream.ts';
import { Staging } from './staging.ts';
import { TileMaps } from './tile-maps.ts';

/** What a device is made of. */
export interface CudaParts {
  readonly gpu: Gpu;
  readonly facts: DeviceFacts;
  readonly compiler: CudaCompiler;
  readonly cubins: Cubins;
  /** Bytes all buffers together may take, beyond what the driver refuses itself. */
  readonly budget: number;
  readonly isSynchronous: boolean;
}

export class CudaDevice implements Device {
  readonly facts: DeviceFacts;
  readonly #engine: CudaEngine;
  #communicator: Communicator | undefined;
  #sharing: Sharing | undefined;
  readonly #source: DeviceMemory;
  readonly #clock: CudaClock;
  readonly #images: Images;
  #closing = false;

  constructor({ gpu, facts, compiler, cubins, budget, isSynchronous }: CudaParts) {
    this.facts = facts;
    const { name, limits } = facts;
    const timeline = new Timeline();
    const failures = new Failures(name);
    const context = new CudaContext(gpu, failures);
    const ranks = ranksOf(name, () => this.#communicator);
    context.onLost = () => void this.#close();
    const fences = new Fences(context);
    const staging = new Staging(context, fences);
    this.#source = new DeviceMemory(context, gpu.hasPools);
    const sizes = { bufferBytes: limits.bufferBytes, budget };
    const memory = new BufferPools<number>(name, sizes, timeline, this.#source);
    const mover = {
      timeline,
      failures,
      memory,
      mayShareSlabs: true,
      copy: (at: number, copies: readonly Move<number>[]) => this.#copy(at, copies),
    };
    this.#clock = new CudaClock(context, fences, timeline);
    this.#images = new Images(context, fences);
    this.#engine = {
      context,
      facts,
      timeline,
      fences,
      staging,
      memory,
      scratch: new Scratch(memory),
      modules: new CudaModules(context, this.#images, compiler, cubins),
      marshal: new Marshal(gpu.driver),
      tileMaps: new TileMaps(context),
      mover,
      isSynchronous,
      rankStream: new RankStream(context, ranks),
    };
  }

  get communicator(): Communicator | undefined {
    return this.#communicator;
  }

  join(communicator: Communicator): void {
    if (communicator.size > 1 && communicator.onStream === undefined)
      throw noStream(this.facts.name, communicator);
    this.#communicator = communicator;
    this.#engine.context.collectives = communicator.onStream;
  }

  get lost(): boolean {
    return this.#engine.context.failures.lost;
  }

  allocate(bytes: number): DeviceAllocation {
    this.#engine.context.failures.assertAlive();
    return this.#engine.memory.allocate(bytes);
  }

  write(buffer: DeviceAllocation, bytes: Uint8Array): void {
    const { context, memory, timeline, staging } = this.#engine;
    const { failures } = context;
    failures.assertAlive();
    const { slab, offset } = this.#place(buffer);
    if (bytes.length > buffer.bytes) {
      throw memory.misuse(`${bytes.length} bytes were written to a buffer of ${buffer.bytes}`);
    }
    const at = failures.tick();
    const upload = (data: Uint8Array): void => {
      if (!failures.lost) context.attempt(at, () => staging.upload(slab.gpu + offset, data));
    };
    if (timeline.idle) upload(bytes);
    else {
      const copy = bytes.slice();
      timeline.push(() => upload(copy));
    }
  }

  async read(buffer: DeviceAllocation, bytes: number): Promise<Uint8Array> {
    const { context, memory, timeline, fences, staging } = this.#engine;
    const { failures } = context;
    failures.assertAlive();
    const { slab, offset } = this.#place(buffer);
    if (!(Number.isInteger(bytes) && bytes >= 0 && bytes <= buffer.bytes)) {
      throw memory.misuse(`${bytes} bytes were read from a buffer of ${buffer.bytes}`);
    }
    const at = failures.tickRead();
    const copied = await new Promise<{ epoch: number; result?: () => Uint8Array }>((resolve) => {
      timeline.push(() => {
        if (failures.lost || bytes === 0) return resolve({ epoch: fences.latest });
        let result: (() => Uint8Array) | undefined;
        context.attempt(at, () => {
          result = staging.download(slab.gpu + offset, bytes);
        });
        const epoch = fences.mark();
        return resolve(result === undefined ? { epoch } : { epoch, result });
      });
    });
    await this.#wait(at, copied.epoch);
    const taken = copied.result?.();
    failures.deliver(at);
    return taken ?? new Uint8Array(0);
  }

  load(program: Program): LoadedProgram {
    this.#engine.context.failures.assertAlive();
    return loadProgram(this.#engine, program);
  }

  async finish(): Promise<void> {
    const { context, timeline, fences } = this.#engine;
    const { failures } = context;
    failures.assertAlive();
    const at = failures.tickRead();
    await timeline.drained();
    await this.#wait(at, fences.latest);
    failures.deliver(at);
  }

  measure(work: () => void): Promise<number | undefined> {
    this.#engine.context.failures.assertAlive();
    return this.#clock.measure(work);
  }

  async sharing(): Promise<Sharing> {
    const { CudaSharing } = await import('./sharing.ts');
    return (this.#sharing ??= new CudaSharing(this.#engine));
  }

  memory(): { readonly live: number; readonly pooled: number; readonly buffers: number } {
    return this.#engine.memory.report();
  }

  destroy(): void {
    this.#engine.context.failures.lose('the device was destroyed');
    void this.#close();
  }

  /** Releases everything once queued work has ended. */
  async #close(): Promise<void> {
    if (this.#closing) return;
    this.#closing = true;
    const { context, fences, staging, timeline } = this.#engine;
    try {
      await timeline.drained();
      await fences.idle();
    } catch {
      // A failed context is released without waiting.
    }
    context.driver.cu.cuCtxSetCurrent(context.handle);
    this.#clock.destroy();
    this.#source.close();
    staging.destroy();
    fences.destroy();
    this.#images.destroy();
    context.close();
  }

  /** Waits for an epoch; what fails meanwhile is recorded as failing at `at`. */
  async #wait(at: number, epoch: number): Promise<void> {
    const { context, fences } = this.#engine;
    try {
      if (!context.failures.lost) await fences.wait(epoch);
    } catch (error) {
      context.attempt(at, () => {
        throw error;
      });
    }
  }

  #copy(at: number, copies: readonly Move<number>[]): void {
    const { context, fences } = this.#engine;
    const { driver, stream } = context;
    context.attempt(at, () => {
      for (const { from, to, bytes } of copies) {
        const [source, target] = [from, to].map(({ slab, offset }) => slab.gpu + offset) as [number, number];
        const result = driver.cu.cuMemcpyDtoDAsync_v2(target, source, bytes, stream);
        context.check(result, 'cuMemcpyDtoDAsync_v2', `moving ${bytes} bytes`);
      }
      fences.mark();
    });
  }

  #place(buffer: DeviceAllocation): MemoryLocation<number> {
    const { memory } = this.#engine;
    if (buffer instanceof GpuBuffer) return buffer.place(memory);
    throw memory.misuse('a buffer of another device was used');
  }
}
