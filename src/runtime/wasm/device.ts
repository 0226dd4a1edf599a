// A WebAssembly device behind the Device contract: every operation is done before its call returns,
// by this thread and by others that share its memory.

import { DeviceError } from '../../errors.ts';
import { ranksOf, type Communicator } from '../communicator.ts';
import type { Backend, Device, DeviceAllocation, DeviceFacts, LoadedProgram } from '../device.ts';
import { Failures } from '../failures.ts';
import type { Move } from '../layout.ts';
import { GpuBuffer, BufferPools, type MemoryLocation } from '../memory.ts';
import type { Program } from '../program.ts';
import type { Sharing } from '../sharing.ts';
import { Scratch } from '../scratch.ts';
import { Timeline } from '../timeline.ts';
import { Turns } from '../turns.ts';
import { Heap, heapBytes } from './heap.ts';
import { loadProgram, type WasmEngine } from './load.ts';
import { WasmModules } from './modules.ts';
import type { Grain } from './cut.ts';
import { mostBuffers } from './names.ts';
import type { Pool } from './pool.ts';
import { WasmSharing } from './sharing.ts';
import { checkAllowed } from './allowed.ts';
import { threadCount, threadsFromEnvironment, type Spawn } from './threading.ts';

const limits: DeviceFacts['limits'] = {
  storageBuffers: mostBuffers,
  bufferBytes: 2 ** 31,
  bindingBytes: 2 ** 31,
  workgroupBytes: 2 ** 21,
  workgroupInvocations: 1024,
  workgroupsPerDimension: 2 ** 30,
};

export interface WasmOptions {
  /**
   * As many as `SINTER_THREADS` says, or as the machine has cores, where it is not said; by default
   * as many as `SINTER_THREADS` says or the machine has cores.
   */
  readonly threads?: number | undefined;
  /** How finely work is cut for them; by default as the device's threads ask for. */
  readonly grain?: Grain;
  /** Milliseconds without any progress after which a thread is considered dead; 10,000 by default. */
  readonly patience?: number;
  /**
   * How workers are started, instead of how they usually are; by default as Node or the page starts
   * them.
   */
  readonly spawn?: Spawn;
}

export class WasmDevice implements Device {
  readonly facts: DeviceFacts;
  /** The parts that its programs work with, those of the native device too. */
  readonly engine: WasmEngine;
  #ended: (() => void) | undefined;
  #sharing: Sharing | undefined;
  #communicator: Communicator | undefined;
  readonly #turns = new Turns();

  private constructor(name: string, heap: Heap, pool?: Pool, why?: string, grain?: Grain) {
    const threads = pool?.threads ?? 1;
    const count = threads === 1 ? 'one thread' : `${threads} threads`;
    const description = `WebAssembly SIMD, ${count}${why === undefined ? '' : `: ${why}`}`;
    const features = featuresHere();
    const facts: DeviceFacts = {
      name,
      target: 'wasm',
      description,
      software: true,
      features,
      threads,
      limits,
    };
    this.facts = facts;
    const timeline = new Timeline();
    const failures = new Failures(name);
    const memory = new BufferPools<number>(
      name,
      { bufferBytes: limits.bufferBytes, budget: heapBytes },
      timeline,
      heap,
    );
    const copy = (_: number, copies: readonly Move<number>[]): void => {
      for (const { from, to, bytes } of copies) {
        const start = from.slab.gpu + from.offset;
        heap.bytes.copyWithin(to.slab.gpu + to.offset, start, start + bytes);
      }
    };
    const mover = { timeline, failures, memory, mayShareSlabs: true, copy };
    const scratch = new Scratch(memory);
    const modules = new WasmModules(heap, name, pool !== undefined);
    const lose = (error: DeviceError): void => void this.#end(error);
    const ranks = ranksOf(name, () => this.communicator);
    this.engine = { facts, failures, heap, memory, scratch, modules, pool, grain, mover, ranks, lose };
  }

  /** Opens a device of this name. Rejects with E_DEVICE where `SINTER_THREADS` makes no sense. */
  static async open(name: string, options: WasmOptions = {}): Promise<WasmDevice> {
    const { count, why } = threadCount(options.threads ?? threadsFromEnvironment(name));
    if (count === 1) return new WasmDevice(name, new Heap(name, false), undefined, why);
    // Few pages have threads: the others do not download what starts them.
    const { onDeath, Pool, spawn: usual } = await import('./threads.ts');
    const heap = new Heap(name, true);
    const { spawn = usual, patience, grain } = options;
    try {
      const pool = await Pool.open(name, count, heap.memory, spawn, patience);
      const device = new WasmDevice(name, heap, pool, undefined, grain);
      onDeath(pool, (reason) => void device.#end(reason));
      return device;
    } catch (error) {
      const reason = error instanceof Error ? error.message : String(error);
      return new WasmDevice(name, new Heap(name, false), undefined, `no worker starts here (${reason})`);
    }
  }

  /** Calls back once when it ends, before its memory goes. */
  onEnd(ended: () => void): void {
    this.#ended = ended;
  }

  get lost(): boolean {
    return this.engine.failures.lost;
  }

  allocate(bytes: number): DeviceAllocation {
    this.engine.failures.assertAlive();
    return this.engine.memory.allocate(bytes);
  }

  write(buffer: DeviceAllocation, bytes: Uint8Array): void {
    const { failures, heap, memory } = this.engine;
    failures.assertAlive();
    const { slab, offset } = this.#place(buffer);
    if (bytes.length > buffer.bytes) {
      throw memory.misuse(`${bytes.length} bytes were written to a buffer of ${buffer.bytes}`);
    }
    heap.bytes.set(bytes, slab.gpu + offset);
  }

  async read(buffer: DeviceAllocation, bytes: number): Promise<Uint8Array> {
    const { failures, heap, memory } = this.engine;
    failures.assertAlive();
    const { slab, offset } = this.#place(buffer);
    if (!(Number.isInteger(bytes) && bytes >= 0 && bytes <= buffer.bytes)) {
      throw memory.misuse(`${bytes} bytes were read from a buffer of ${buffer.bytes}`);
    }
    const at = failures.tickRead();
    const start = slab.gpu + offset;
    const taken = heap.bytes.slice(start, start + bytes);
    await this.#turns.give();
    failures.deliver(at);
    return taken;
  }

  /** A run is complete when it returns, so memory holds what reads would give. */
  peek(buffer: DeviceAllocation, bytes: number): Uint8Array | undefined {
    const { failures, heap } = this.engine;
    if (!failures.none || bytes > buffer.bytes) return undefined;
    const { slab, offset } = this.#place(buffer);
    return heap.bytes.subarray(slab.gpu + offset, slab.gpu + offset + bytes);
  }

  load(program: Program): LoadedProgram {
    this.engine.failures.assertAlive();
    return loadProgram(this.engine, program);
  }

  get communicator(): Communicator | undefined {
    return this.#communicator;
  }

  join(communicator: Communicator): void {
    this.#communicator = communicator;
  }

  async finish(): Promise<void> {
    const { failures } = this.engine;
    failures.assertAlive();
    const at = failures.tickRead();
    await this.#turns.give();
    failures.deliver(at);
  }

  async measure(work: () => void): Promise<number> {
    this.engine.failures.assertAlive();
    const before = performance.now();
    work();
    return 1e6 * (performance.now() - before);
  }

  sharing(): Promise<Sharing> {
    this.#sharing ??= new WasmSharing(this.engine);
    return Promise.resolve(this.#sharing);
  }

  memory(): { readonly live: number; readonly pooled: number; readonly buffers: number } {
    return this.engine.memory.report();
  }

  destroy(): Promise<void> {
    return this.#end('the device was destroyed');
  }

  /** Gives back threads and memory; resolves when the threads are gone. */
  async #end(reason: string | DeviceError): Promise<void> {
    const { failures, pool, modules, heap } = this.engine;
    failures.lose(reason);
    this.#ended?.();
    modules.clear();
    heap.release();
    await pool?.close();
  }

  #place(buffer: DeviceAllocation): MemoryLocation<number> {
    const { memory } = this.engine;
    if (buffer instanceof GpuBuffer) return buffer.place(memory);
    throw memory.misuse('a buffer of another device was used');
  }
}

/** What of WebAssembly this engine has, that kernels may use. */
function featuresHere(): readonly string[] {
  return WebAssembly.validate(Uint8Array.from(relaxedProbe)) ? ['simd128', 'relaxed-simd'] : ['simd128'];
}

/** A module of one function that multiplies and adds splats (`f32x4.relaxed_madd`). */
const relaxedProbe = [
  0, 97, 115, 109, 1, 0, 0, 0, 1, 5, 1, 96, 0, 1, 123, 3, 2, 1, 0, 10, 19, 1, 17, 0, 65, 0, 253, 17, 65, 0,
  253, 17, 65, 0, 253, 17, 253, 133, 2, 11,
];

/**
 * A module of one function that returns a splat (types, functions, code): engines without SIMD
 * refuse it.
 */
const probe = [
  0, 97, 115, 109, 1, 0, 0, 0, 1, 5, 1, 96, 0, 1, 123, 3, 2, 1, 0, 10, 8, 1, 6, 0, 65, 0, 253, 17, 11,
];

/** With as many threads as `SINTER_THREADS` says or the machine has cores. */
export const wasmBackend: Backend = { name: 'wasm', open: () => open('wasm') };

/** The backend of `wasm:2`, with so many threads. */
export function wasmBackendOf(name: string, threads: number): Backend {
  return { name, open: () => open(name, threads) };
}

async function open(name: string, threads?: number): Promise<Device> {
  if (typeof WebAssembly === 'undefined' || !WebAssembly.validate(Uint8Array.from(probe))) {
    const hint = 'Node 16 or newer, or a browser of 2023 or newer';
    throw new DeviceError('E_DEVICE', name, 'this JavaScript engine has no WebAssembly SIMD', { hint });
  }
  checkAllowed(name);
  return WasmDevice.open(name, { threads });
}
