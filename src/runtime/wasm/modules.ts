// Kernels as functions: each is a module that is compiled synchronously, and equal sources share
// one. Workers make instances of their own from the module's bytes, which are copied into the
// shared memory when workers are first used for the kernel.

import { DeviceError } from '../../errors.ts';
import type { ProgramKernel } from '../program.ts';
import { SharedEntries } from '../shared.ts';
import type { Heap } from './heap.ts';
import { withSharedMemory } from './imports.ts';
import type { RunWorkgroups } from './worker.ts';

/** A kernel of a device. */
export interface LoadedKernel {
  /** Its number on this device. */
  readonly id: number;
  /** Cleared when the device is destroyed, because instances keep its memory alive. */
  run: RunWorkgroups;
  readonly module: Uint8Array;
}

/** Where a module lies in the memory. */
export interface Code {
  readonly address: number;
  readonly bytes: number;
}

export class WasmModules {
  readonly #heap: Heap;
  readonly #device: string;
  readonly #shared: boolean;
  /** By their sources. */
  readonly #kernels: SharedEntries<LoadedKernel>;
  readonly #codes = new Map<LoadedKernel, Code>();
  #made = 0;

  /** `shared`: the memory is shared, which each module's import has to declare. */
  constructor(heap: Heap, device: string, shared: boolean) {
    this.#heap = heap;
    this.#device = device;
    this.#shared = shared;
    this.#kernels = new SharedEntries((kernel) => {
      const code = this.#codes.get(kernel);
      if (code !== undefined) this.#heap.destroy(code.address);
      this.#codes.delete(kernel);
    });
  }

  /** The kernel, for one more program. Throws E_VALIDATION where the engine refuses the module. */
  get(kernel: ProgramKernel): LoadedKernel {
    return this.#kernels.take(kernel.source, () => this.#compile(kernel));
  }

  /** Ends one program's use. The engine frees the code of evicted kernels. */
  release(kernel: LoadedKernel): void {
    this.#kernels.release(kernel);
  }

  /** How many kernels there are, those that no program runs included. */
  get count(): number {
    return this.#kernels.count;
  }

  /** The module's bytes in the memory, for other threads. */
  codeOf(kernel: LoadedKernel): Code {
    const known = this.#codes.get(kernel);
    if (known !== undefined) return known;
    const bytes = kernel.module.length;
    const code = { address: this.#heap.create(bytes), bytes };
    this.#heap.bytes.set(kernel.module, code.address);
    this.#codes.set(kernel, code);
    return code;
  }

  /** Drops all instances, and so their references to the memory. */
  clear(): void {
    const gone = (): never => {
      throw new DeviceError('E_DEVICE_LOST', this.#device, 'the device was destroyed');
    };
    for (const kernel of this.#kernels.values()) kernel.run = gone;
    this.#kernels.clear();
    this.#codes.clear();
  }

  #compile({ name, source }: ProgramKernel): LoadedKernel {
    try {
      const emitted = bytesOf(source);
      const module = this.#shared ? withSharedMemory(emitted) : emitted;
      const { memory } = this.#heap;
      const instance = new WebAssembly.Instance(new WebAssembly.Module(module), { env: { memory } });
      const run = instance.exports['run'];
      if (typeof run !== 'function') throw new Error('the module exports no function run');
      return { id: this.#made++, run: run as RunWorkgroups, module };
    } catch (error) {
      const problem = error instanceof Error ? error.message : String(error);
      throw new DeviceError('E_VALIDATION', this.#device, problem, { kernel: name });
    }
  }
}

/** The bytes of a base64 text. */
function bytesOf(source: string): Uint8Array<ArrayBuffer> {
  const letters = atob(source);
  const bytes = new Uint8Array(letters.length);
  for (let i = 0; i < bytes.length; i++) bytes[i] = letters.charCodeAt(i);
  return bytes;
}
