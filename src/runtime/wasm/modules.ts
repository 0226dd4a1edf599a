// Kernels as functions: a module each, compiled at once and kept as long as the device, one for equal sources.

import { DeviceError } from '../../errors.ts';
import type { ProgramKernel } from '../program.ts';

/** Runs workgroups from the first to before the last, over addresses of buffers, and of the scalar block. */
export type Run = (...args: number[]) => void;

export class Modules {
  readonly #memory: WebAssembly.Memory;
  readonly #device: string;
  readonly #known = new Map<string, Run>();

  constructor(memory: WebAssembly.Memory, device: string) {
    this.#memory = memory;
    this.#device = device;
  }

  /** Throws E_VALIDATION where the engine refuses the module. */
  get({ name, source }: ProgramKernel): Run {
    const known = this.#known.get(source);
    if (known !== undefined) return known;
    try {
      const bytes = Uint8Array.from(atob(source), (letter) => letter.charCodeAt(0));
      const instance = new WebAssembly.Instance(new WebAssembly.Module(bytes), {
        env: { memory: this.#memory },
      });
      const run = instance.exports['run'];
      if (typeof run !== 'function') throw new Error('the module exports no function run');
      this.#known.set(source, run as Run);
      return run as Run;
    } catch (error) {
      const problem = error instanceof Error ? error.message : String(error);
      throw new DeviceError('E_VALIDATION', this.#device, problem, { kernel: name });
    }
  }
}
