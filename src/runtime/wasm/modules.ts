// Kernels as functions: a module each, compiled at once and kept as long as the device, one for equal sources. Workers make instances of
// their own, from bytes that lie in the memory from the first time on that they help with a kernel.

import { DeviceError } from '../../errors.ts';
import type { ProgramKernel } from '../program.ts';
import type { Heap } from './heap.ts';
import { withSharedMemory } from './imports.ts';
import type { Run } from './worker.ts';

/** A kernel of a device. */
export interface Kernel {
  /** Its number on this device. */
  readonly id: number;
  /** Until the device is destroyed: instances keep its memory. */
  run: Run;
  readonly module: Uint8Array;
}

/** A kernel that programs share. */
export interface SharedKernel extends Kernel {
  /** Equal sources are one kernel. */
  readonly source: string;
  /** Programs that run it. */
  users: number;
}

/** Kernels of destroyed programs that are kept, for the next program may have them too. */
const mostIdle = 128;

/** Where a module lies in the memory. */
export interface Code {
  readonly address: number;
  readonly bytes: number;
}

export class Modules {
  readonly #heap: Heap;
  readonly #device: string;
  readonly #shared: boolean;
  readonly #known = new Map<string, SharedKernel>();
  readonly #codes = new Map<Kernel, Code>();
  /** Those that no program runs, the one that was left longest ago first. */
  readonly #idle = new Set<SharedKernel>();
  #made = 0;

  /** `shared`: the memory is, and modules have to say so. */
  constructor(heap: Heap, device: string, shared: boolean) {
    this.#heap = heap;
    this.#device = device;
    this.#shared = shared;
  }

  /** The kernel, for one more program. Throws E_VALIDATION where the engine refuses the module. */
  get({ name, source }: ProgramKernel): SharedKernel {
    const known = this.#known.get(source);
    if (known !== undefined) {
      known.users += 1;
      this.#idle.delete(known);
      return known;
    }
    try {
      const emitted = bytesOf(source);
      const module = this.#shared ? withSharedMemory(emitted) : emitted;
      const { memory } = this.#heap;
      const instance = new WebAssembly.Instance(new WebAssembly.Module(module), { env: { memory } });
      const run = instance.exports['run'];
      if (typeof run !== 'function') throw new Error('the module exports no function run');
      const kernel: SharedKernel = { id: this.#made++, run: run as Run, module, source, users: 1 };
      this.#known.set(source, kernel);
      return kernel;
    } catch (error) {
      const problem = error instanceof Error ? error.message : String(error);
      throw new DeviceError('E_VALIDATION', this.#device, problem, { kernel: name });
    }
  }

  /** One program fewer runs it. Of those that none runs the oldest are let go, with the engine's code. */
  release(kernel: SharedKernel): void {
    kernel.users -= 1;
    if (kernel.users > 0 || this.#known.get(kernel.source) !== kernel) return;
    this.#idle.add(kernel);
    for (const oldest of this.#idle) {
      if (this.#idle.size <= mostIdle) return;
      this.#idle.delete(oldest);
      this.#known.delete(oldest.source);
      const code = this.#codes.get(oldest);
      if (code !== undefined) this.#heap.destroy(code.address);
      this.#codes.delete(oldest);
    }
  }

  /** How many kernels there are, those that no program runs included. */
  get count(): number {
    return this.#known.size;
  }

  /** The module's bytes in the memory, for other threads. */
  codeOf(kernel: Kernel): Code {
    const known = this.#codes.get(kernel);
    if (known !== undefined) return known;
    const bytes = kernel.module.length;
    const code = { address: this.#heap.create(bytes), bytes };
    this.#heap.bytes.set(kernel.module, code.address);
    this.#codes.set(kernel, code);
    return code;
  }

  /** Lets go of all instances, and so of the memory. */
  clear(): void {
    const gone = (): never => {
      throw new DeviceError('E_DEVICE_LOST', this.#device, 'the device was destroyed');
    };
    for (const kernel of this.#known.values()) kernel.run = gone;
    this.#known.clear();
    this.#idle.clear();
    this.#codes.clear();
  }
}

/** The bytes of a base64 text. */
function bytesOf(source: string): Uint8Array<ArrayBuffer> {
  const letters = atob(source);
  const bytes = new Uint8Array(letters.length);
  for (let i = 0; i < bytes.length; i++) bytes[i] = letters.charCodeAt(i);
  return bytes;
}
