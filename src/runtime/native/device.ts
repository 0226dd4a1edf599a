// Node only: the device `native`, which runs kernels that the machine's C compiler has compiled, over the
// memory of a WebAssembly device. Programs may begin on WebAssembly and go on as code of the machine,
// on the same buffers.

import type { DeviceError } from '../../errors.ts';
import type { Communicator } from '../communicator.ts';
import type { Device, DeviceAllocation, DeviceFacts, HostFunctions } from '../device.ts';
import type { Program } from '../program.ts';
import type { Sharing } from '../sharing.ts';
import type { WasmDevice } from '../wasm/device.ts';
import { loadProgram, type NativeEngine, type NativeProgram } from './load.ts';
import type { NativeTools } from './tools.ts';

export interface NativeParts {
  readonly wasm: WasmDevice;
  readonly threads: number;
  readonly wait: boolean;
  /** Finds what programs of C need, without keeping the process; rejects with E_DEVICE. */
  open(signal: AbortSignal): Promise<NativeTools>;
}

export class CDevice implements Device {
  readonly #wasm: WasmDevice;
  readonly #engine: NativeEngine;
  readonly #open: NativeParts['open'];
  readonly #ending = new AbortController();
  #facts: DeviceFacts;
  #tools: NativeTools | undefined;
  #opening: Promise<NativeTools> | undefined;
  #hasFailed = false;
  #isReported = false;

  constructor({ wasm, threads, wait, open }: NativeParts) {
    const { name, limits, features } = wasm.facts;
    this.#facts = {
      name,
      target: 'c',
      ...(!wait && { first: 'wasm' }),
      description: `C by the compiler of this machine, ${countOf(threads)}`,
      software: true,
      features,
      threads,
      limits,
    };
    this.#wasm = wasm;
    this.#open = open;
    this.#engine = {
      ...wasm.engine,
      threads,
      tools: () => this.#openTools(),
      openedTools: () => this.#tools,
      loadMeanwhile: (program) => wasm.load(program),
      replacing: new Set(),
      report: (error) => this.#report(error),
    };
    wasm.onEnd(() => this.#close());
  }

  get facts(): DeviceFacts {
    return this.#facts;
  }

  async whole(): Promise<void> {
    // A compiler may have been installed since.
    if (this.#hasFailed) this.#opening = undefined;
    this.#hasFailed = false;
    await keepingTheProcess(this.#openTools());
  }

  async settled(): Promise<void> {
    const { replacing } = this.#engine;
    while (replacing.size > 0) await keepingTheProcess(Promise.all(replacing));
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

  get communicator(): Communicator | undefined {
    return this.#wasm.communicator;
  }

  join(communicator: Communicator): void {
    this.#wasm.join(communicator);
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

  /** Once for all programs: what one lacks, the next one would lack. */
  #openTools(): Promise<NativeTools> {
    this.#opening ??= this.#openNow();
    return this.#opening;
  }

  async #openNow(): Promise<NativeTools> {
    const { signal } = this.#ending;
    try {
      const tools = await this.#open(signal);
      if (signal.aborted) tools.close();
      else this.#take(tools);
      return tools;
    } catch (error) {
      this.#hasFailed = true;
      throw error;
    }
  }

  #take(tools: NativeTools): void {
    const { title, features } = tools.compiler;
    const { first, threads = 1 } = this.#facts;
    const before = first === undefined ? '' : '; programs begin on WebAssembly';
    this.#facts = {
      ...this.#facts,
      description: `C by ${title}, ${widthOf(features)}, ${countOf(threads)}${before}`,
      features: [...features, ...this.#wasm.facts.features],
    };
    tools.enlargePages(this.#wasm.engine.heap);
    this.#tools = tools;
  }

  #close(): void {
    if (this.#ending.signal.aborted) return;
    this.#ending.abort();
    this.#tools?.close();
  }

  /** Once: the reason is most often the same for all programs. */
  #report(error: DeviceError): void {
    if (this.#isReported) return;
    this.#isReported = true;
    const other = '\n  SINTER_DEVICE=wasm keeps to WebAssembly and looks for no compiler';
    console.warn(`sinter: programs stay on WebAssembly: ${error.message}${other}`);
  }
}

/** Waits for compilers, which run beside the process without keeping it. */
async function keepingTheProcess(work: Promise<unknown>): Promise<void> {
  const timer = setInterval(() => undefined, 2 ** 30);
  try {
    await work;
  } finally {
    clearInterval(timer);
  }
}

function countOf(threads: number): string {
  return threads === 1 ? 'one thread' : `${threads} threads`;
}

/** The widest of the vectors that there are, as people call them. */
const widths: readonly (readonly [feature: string, name: string])[] = [
  ['avx512f', 'AVX-512'],
  ['avx2', 'AVX2'],
  ['avx', 'AVX'],
  ['sve', 'SVE'],
  ['neon', 'NEON'],
  ['rvv', 'RVV'],
  ['sse4.2', 'SSE4.2'],
];

function widthOf(features: readonly string[]): string {
  return widths.find(([feature]) => features.includes(feature))?.[1] ?? 'no vectors';
}
