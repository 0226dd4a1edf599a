// Shares WebAssembly with other code: modules of the caller may import the memory of the device and work on
// addresses of its buffers. The memory belongs to the heap of the device, so memory of others cannot be
// wrapped.

import { DeviceError } from '../../errors.ts';
import type { DeviceAllocation } from '../device.ts';
import { GpuBuffer, type MemoryLocation } from '../memory.ts';
import type { NativeDevice, NativeMemory, Sharing } from '../sharing.ts';
import type { WasmEngine } from './load.ts';

export class WasmSharing implements Sharing {
  /** Vectors may lie anywhere; slabs begin at multiples of 256. */
  readonly alignment = 16;
  readonly queues = 1;
  readonly #engine: WasmEngine;

  constructor(engine: WasmEngine) {
    this.#engine = engine;
  }

  get native(): NativeDevice {
    return { api: 'wasm', memory: this.#engine.heap.memory };
  }

  async wrap(): Promise<DeviceAllocation> {
    const { facts, failures } = this.#engine;
    failures.assertAlive();
    const problem = "the device's memory is its own: there is none of others in it";
    throw new DeviceError('E_UNSUPPORTED', facts.name, problem, {
      hint: 'DeviceBuffer.allocate, and what its view() or handle() gives',
    });
  }

  part(buffer: DeviceAllocation, offset: number, bytes: number): DeviceAllocation {
    return this.#own(buffer).part(this.#engine.memory, offset, bytes);
  }

  place(buffer: DeviceAllocation): NativeMemory {
    const { slab, offset } = this.#placeOf(buffer);
    const { memory } = this.#engine.heap;
    return { api: 'wasm', memory, pointer: slab.gpu + offset, size: buffer.bytes };
  }

  room(buffer: DeviceAllocation): number {
    const { slab, offset } = this.#placeOf(buffer);
    return slab.bytes - offset;
  }

  view(buffer: DeviceAllocation): Uint8Array {
    const { slab, offset } = this.#placeOf(buffer);
    const start = slab.gpu + offset;
    return this.#engine.heap.bytes.subarray(start, start + buffer.bytes);
  }

  writeProblem(): string | undefined {
    return undefined;
  }

  copy(from: DeviceAllocation, to: DeviceAllocation, bytes: number): void {
    const [source, target] = [this.#placeOf(from), this.#placeOf(to)];
    const start = source.slab.gpu + source.offset;
    this.#engine.heap.bytes.copyWithin(target.slab.gpu + target.offset, start, start + bytes);
  }

  async submitted(): Promise<void> {
    this.#engine.failures.assertAlive();
  }

  trim(keep: number): void {
    this.#engine.memory.shrink(keep);
  }

  keepAtMost(bytes: number): void {
    this.#engine.memory.keepAtMost(bytes);
  }

  #own(buffer: DeviceAllocation): GpuBuffer<number> {
    const { failures, memory } = this.#engine;
    failures.assertAlive();
    if (buffer instanceof GpuBuffer) return buffer as GpuBuffer<number>;
    throw memory.misuse('a buffer of another device was used');
  }

  #placeOf(buffer: DeviceAllocation): MemoryLocation<number> {
    return this.#own(buffer).place(this.#engine.memory);
  }
}
