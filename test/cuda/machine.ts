// A machine with CUDA for tests of the runtime: the product's own backend on the stand-in, with what tests turn and read in it.

import * as fs from 'node:fs';
import * as os from 'node:os';
import * as path from 'node:path';
import koffi from 'koffi';
import type { CudaOptions } from '../../src/runtime/cuda/node.ts';
import { openCuda } from '../../src/runtime/cuda/open.ts';
import type { Device } from '../../src/runtime/device.ts';
import { standIn } from './standin/standin.ts';

const { load } = koffi;

/** Why there is no such machine; undefined where there is. */
export function reasonWithout(): string | undefined {
  const found = standIn();
  return found.available ? undefined : found.reason;
}

/** The stand-in, with its settings and counters by name, and a folder of its own for compiled kernels. */
export class Machine {
  readonly library: string;
  readonly cubins: string;
  readonly #set: (name: string, value: number) => number;
  readonly #get: (name: string) => number | bigint;
  readonly #inject: (name: string, result: number, skip: number, times: number) => void;
  readonly #heal: () => void;

  constructor() {
    const found = standIn();
    if (!found.available) throw new Error(found.reason);
    this.library = found.library;
    const functions = load(found.library);
    this.#set = functions.func('standin_set', 'int', ['str', 'int64_t']);
    this.#get = functions.func('standin_get', 'int64_t', ['str']);
    this.#inject = functions.func('standin_inject', 'void', ['str', 'int', 'int', 'int']);
    this.#heal = functions.func('standin_heal', 'void', []);
    this.set('silent', 1);
    this.cubins = fs.mkdtempSync(path.join(os.tmpdir(), 'sinter-cubins-'));
  }

  set(setting: string, value: number): void {
    if (this.#set(setting, value) !== 0) throw new Error(`no setting ${setting}`);
  }

  get(counter: string): number {
    return Number(this.#get(counter));
  }

  /** What the counter grows by while `work` is done. */
  async count(counter: string, work: () => Promise<void> | void): Promise<number> {
    const before = this.get(counter);
    await work();
    return this.get(counter) - before;
  }

  /** After `skip` calls of the function (`kernel`: after so many kernels), the next `times` fail with this result. */
  inject(name: string, result: number, skip = 0, times = 1): void {
    this.#inject(name, result, skip, times);
  }

  heal(): void {
    this.#heal();
  }

  open(options: CudaOptions & { readonly ordinal?: number } = {}): Promise<Device> {
    const { ordinal = 0, env = {}, ...others } = options;
    const both = { SINTER_CUDA_DRIVER: this.library, NVRTC_PATH: this.library };
    return openCuda(ordinal, { cubins: this.cubins, ...others, env: { ...both, ...env } });
  }

  close(): void {
    fs.rmSync(this.cubins, { recursive: true, force: true });
  }
}
