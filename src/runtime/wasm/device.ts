// A WebAssembly device behind the Device contract: everything happens where it is asked for, in this thread.

import { DeviceError } from '../../errors.ts';
import type { Backend, Device, DeviceBuffer, DeviceFacts, LoadedProgram } from '../device.ts';
import { Failures } from '../failures.ts';
import type { Move } from '../layout.ts';
import { GpuBuffer, Memory, type Place } from '../memory.ts';
import type { Program } from '../program.ts';
import { Scratch } from '../scratch.ts';
import { Timeline } from '../timeline.ts';
import { Turns } from '../turns.ts';
import { Heap } from './heap.ts';
import { loadProgram, type Engine } from './load.ts';
import { Modules } from './modules.ts';

const facts: DeviceFacts = {
  name: 'wasm',
  description: 'WebAssembly SIMD, one thread',
  software: true,
  features: ['simd128'],
  limits: {
    storageBuffers: 64,
    bufferBytes: 2 ** 31,
    bindingBytes: 2 ** 31,
    workgroupBytes: 16_384,
    workgroupInvocations: 1024,
    workgroupsPerDimension: 2 ** 30,
  },
};

/** Bytes that all buffers together may take: what 32-bit addresses reach, without the first page. */
const budget = 2 ** 32 - 65_536;

export class WasmDevice implements Device {
  readonly facts: DeviceFacts = facts;
  readonly #engine: Engine;
  readonly #turns = new Turns();

  constructor() {
    const { name, limits } = facts;
    const heap = new Heap(name);
    const timeline = new Timeline();
    const failures = new Failures(name);
    const memory = new Memory<number>(name, { bufferBytes: limits.bufferBytes, budget }, timeline, heap);
    const copy = (_: number, copies: readonly Move<number>[]): void => {
      for (const { from, to, bytes } of copies) {
        const start = from.slab.gpu + from.offset;
        heap.bytes.copyWithin(to.slab.gpu + to.offset, start, start + bytes);
      }
    };
    const mover = { timeline, failures, memory, mayShareSlabs: true, copy };
    const scratch = new Scratch(memory);
    const modules = new Modules(heap.memory, name);
    this.#engine = { facts, failures, heap, memory, scratch, modules, mover };
  }

  get lost(): boolean {
    return this.#engine.failures.lost;
  }

  allocate(bytes: number): DeviceBuffer {
    this.#engine.failures.assertAlive();
    return this.#engine.memory.allocate(bytes);
  }

  write(buffer: DeviceBuffer, bytes: Uint8Array): void {
    const { failures, heap, memory } = this.#engine;
    failures.assertAlive();
    const { slab, offset } = this.#place(buffer);
    if (bytes.length > buffer.bytes) {
      throw memory.misuse(`${bytes.length} bytes were written to a buffer of ${buffer.bytes}`);
    }
    heap.bytes.set(bytes, slab.gpu + offset);
  }

  async read(buffer: DeviceBuffer, bytes: number): Promise<Uint8Array> {
    const { failures, heap, memory } = this.#engine;
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

  load(program: Program): LoadedProgram {
    this.#engine.failures.assertAlive();
    return loadProgram(this.#engine, program);
  }

  async finish(): Promise<void> {
    const { failures } = this.#engine;
    failures.assertAlive();
    const at = failures.tickRead();
    await this.#turns.give();
    failures.deliver(at);
  }

  async measure(work: () => void): Promise<number> {
    this.#engine.failures.assertAlive();
    const before = performance.now();
    work();
    return 1e6 * (performance.now() - before);
  }

  memory(): { readonly live: number; readonly pooled: number; readonly buffers: number } {
    return this.#engine.memory.report();
  }

  destroy(): void {
    this.#engine.failures.lose('the device was destroyed');
  }

  #place(buffer: DeviceBuffer): Place<number> {
    const { memory } = this.#engine;
    if (buffer instanceof GpuBuffer) return buffer.place(memory);
    throw memory.misuse('a buffer of another device was used');
  }
}

/** A module of one function that returns a splat (types, functions, code): engines without SIMD refuse it. */
const probe = [
  0, 97, 115, 109, 1, 0, 0, 0, 1, 5, 1, 96, 0, 1, 123, 3, 2, 1, 0, 10, 8, 1, 6, 0, 65, 0, 253, 17, 11,
];

export const wasmBackend: Backend = {
  name: 'wasm',
  async open() {
    if (typeof WebAssembly === 'undefined' || !WebAssembly.validate(Uint8Array.from(probe))) {
      const hint = 'Node 16 or newer, or a browser of 2023 or newer';
      throw new DeviceError('E_DEVICE', 'wasm', 'this JavaScript engine has no WebAssembly SIMD', { hint });
    }
    return new WasmDevice();
  },
};
