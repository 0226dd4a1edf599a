// Node only: the device `native`, which runs kernels that the machine's C compiler has compiled, over the
// memory of a WebAssembly device. Programs may begin on WebAssembly and go on as code of the machine,
// on the same buffers.

import { DeviceError } from '../../errors.ts';
import type { Device, DeviceAllocation, DeviceFacts, HostFunctions } from '../device.ts';
import type { Koffi } from '../koffi.ts';
import type { Program } from '../program.ts';
import type { Sharing } from '../sharing.ts';
import { SharedEntries } from '../shared.ts';
import type { WasmDevice } from '../wasm/device.ts';
import { widthOf, type CCompiler } from './compiler.ts';
import { openSupport, type Kernels } from './library.ts';
import { loadProgram, type NativeEngine, type NativeProgram } from './load.ts';
import type { Objects } from './objects.ts';

/** Nanoseconds that a thread stays awake for the next job: waking one takes 5 to 50 µs. */
const linger = 100_000;

export interface NativeParts {
  readonly wasm: WasmDevice;
  readonly koffi: Koffi;
  readonly compiler: CCompiler;
  readonly objects: Objects;
  /** The file of the support object. */
  readonly support: string;
  readonly threads: number;
  /** Cores that the process may use. */
  readonly cores: number;
  readonly wait: boolean;
}

export class CDevice implements Device {
  readonly facts: DeviceFacts;
  readonly #wasm: WasmDevice;
  readonly #engine: NativeEngine;
  #isClosed = false;
  #isReported = false;

  constructor(parts: NativeParts) {
    const { wasm, koffi, compiler, objects, threads, cores, wait } = parts;
    const { name, limits } = wasm.facts;
    const count = threads === 1 ? 'one thread' : `${threads} threads`;
    this.facts = {
      name,
      target: 'c',
      ...(!wait && { first: 'wasm' }),
      description: `C by ${compiler.title}, ${widthOf(compiler)}, ${count}`,
      software: true,
      features: compiler.features,
      threads,
      limits,
    };
    this.#wasm = wasm;
    const support = openSupport(koffi, name, parts.support);
    const pool = support.open(threads, threads <= cores ? linger : 0);
    if (pool === 0) {
      throw new DeviceError('E_DEVICE', name, `${threads} threads cannot be started`, {
        hint: 'SINTER_THREADS=1, or fewer other processes',
      });
    }
    this.#engine = {
      ...wasm.engine,
      facts: this.facts,
      koffi,
      objects,
      support,
      pool,
      threads,
      kernels: new SharedEntries<Kernels>((kernels) => kernels.unload()),
      loadMeanwhile: (program) => wasm.load(program),
      report: (error) => this.#report(error),
    };
    wasm.onEnd(() => this.#close());
  }

  get lost(): boolean {
    return this.#wasm.lost;
  }

  allocate(bytes: number): DeviceAllocation {
    return this.#wasm.allocate(bytes);
  }

  write(buffer: DeviceAllocation, bytes: Uint8Array): void {
    this.#wasm.write(buffer, bytes);
  }

  read(buffer: DeviceAllocation, bytes: number): Promise<Uint8Array> {
    return this.#wasm.read(buffer, bytes);
  }

  peek(buffer: DeviceAllocation, bytes: number): Uint8Array | undefined {
    return this.#wasm.peek(buffer, bytes);
  }

  load(program: Program, _host?: HostFunctions, later?: () => Promise<Program>): NativeProgram {
    this.#engine.failures.assertAlive();
    return loadProgram(this.#engine, program, later);
  }

  finish(): Promise<void> {
    return this.#wasm.finish();
  }

  measure(work: () => void): Promise<number> {
    return this.#wasm.measure(work);
  }

  sharing(): Promise<Sharing> {
    return this.#wasm.sharing();
  }

  memory(): { readonly live: number; readonly pooled: number; readonly buffers: number } {
    return this.#wasm.memory();
  }

  destroy(): Promise<void> {
    return this.#wasm.destroy();
  }

  /** Ends threads and compilers, and lets go of objects. */
  #close(): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    const { objects, support, pool, kernels } = this.#engine;
    support.close(pool);
    for (const each of kernels.values()) each.unload();
    kernels.clear();
    objects.close();
  }

  /** Once: the reason is most often the same for all programs. */
  #report(error: DeviceError): void {
    if (this.#isReported) return;
    this.#isReported = true;
    console.warn(`sinter: programs stay on WebAssembly: ${error.message}`);
  }
}
