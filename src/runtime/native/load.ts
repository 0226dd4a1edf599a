// A Program made ready as code of the machine: its kernels are one shared object. A program may begin as
// WebAssembly over the same memory, and be replaced when its object has been compiled.

import { DeviceError } from '../../errors.ts';
import { checkProgram } from '../check.ts';
import type { DeviceAllocation, LoadedProgram } from '../device.ts';
import { checkLimits } from '../limits.ts';
import type { Program } from '../program.ts';
import type { Heap } from '../wasm/heap.ts';
import {
  HeapProgram,
  type Dispatch,
  type Executor,
  type HeapEngine,
  type Operation,
} from '../wasm/placed.ts';
import { openKernels, tableName, type Kernels } from './library.ts';
import { planOf } from './plan.ts';
import type { NativeTools } from './tools.ts';

/** The parts of a device that its programs work with. */
export interface NativeEngine extends HeapEngine {
  readonly threads: number;
  /** What compiled programs need, found when they ask for it first; rejects with E_DEVICE. */
  tools(): Promise<NativeTools>;
  /** The same where it has been found. */
  openedTools(): NativeTools | undefined;
  /** Loads a program of WebAssembly, over the same memory. */
  loadMeanwhile(program: Program): LoadedProgram;
  /** Tells the user of a program that stays on WebAssembly. */
  report(error: DeviceError): void;
}

/**
 * Loads a program of target `c`, which is compiled before this returns, or one of target `wasm`, which
 * may be replaced later. Throws what is wrong with it (E_VALIDATION, E_LIMIT, E_OOM, E_DEVICE).
 */
export function loadProgram(
  engine: NativeEngine,
  program: Program,
  later?: () => Promise<Program>,
): NativeProgram {
  if (program.target === 'wasm') return new NativeProgram(engine, engine.loadMeanwhile(program), later);
  check(engine, program);
  const tools = engine.openedTools();
  if (tools === undefined) {
    const problem = 'a program of C came before the compiler had been found';
    throw new DeviceError('E_DEVICE', engine.facts.name, problem, { hint: 'await device.whole() before' });
  }
  const file = tools.objects.makeNow(textOf(program));
  return new NativeProgram(engine, opened(engine, tools, program, file));
}

function check({ facts }: NativeEngine, program: Program): void {
  checkProgram(program, 'c', facts.name);
  checkLimits(program, facts);
  checkNames(program, facts.name);
}

function opened(engine: NativeEngine, tools: NativeTools, program: Program, file: string): LoadedProgram {
  return new HeapProgram(engine, program, new NativeExecutor(engine, tools, program, file));
}

/** Runs of a program on WebAssembly before it is worth a compiler. */
const runsBeforeReplacing = 3;

export class NativeProgram implements LoadedProgram {
  readonly #engine: NativeEngine;
  #current: LoadedProgram;
  #settled: Promise<void> = Promise.resolve();
  #last: 'c' | 'wasm' | undefined;
  #later: (() => Promise<Program>) | undefined;
  #runs = 0;
  #failure: DeviceError | undefined;
  #destroyed = false;

  constructor(engine: NativeEngine, current: LoadedProgram, later?: () => Promise<Program>) {
    this.#engine = engine;
    this.#current = current;
    this.#later = later;
  }

  /** What the next run runs. */
  get program(): Program {
    return this.#current.program;
  }

  /** What ran it last; what would run it now, before the first run. */
  get engine(): 'c' | 'wasm' {
    return this.#last ?? this.#here();
  }

  /** Resolves when it is known what runs the program from then on. */
  get settled(): Promise<void> {
    return this.#settled;
  }

  /** Why it stays on WebAssembly. */
  get failure(): DeviceError | undefined {
    return this.#failure;
  }

  run(
    inputs: readonly DeviceAllocation[],
    outputs: readonly DeviceAllocation[],
    scalars: readonly number[],
  ): void {
    this.#current.run(inputs, outputs, scalars);
    this.#last = this.#here();
    this.#runs += 1;
    if (this.#later === undefined || this.#runs < runsBeforeReplacing) return;
    this.replace(this.#later);
    this.#later = undefined;
  }

  allocateOutputs(): DeviceAllocation[] {
    return this.#current.allocateOutputs();
  }

  /**
   * Compiles a program that computes the same beside this process; runs use it from when it is ready.
   * If it cannot be made or compiled, runs stay as they are, and the device warns once.
   */
  replace(make: () => Promise<Program>): void {
    // Not within the run that asks for it.
    this.#settled = new Promise((resolve) => void setImmediate(resolve))
      .then(() => this.#replace(make))
      .catch((error: unknown) => this.#stay(error));
  }

  destroy(): void {
    this.#destroyed = true;
    this.#current.destroy();
  }

  #here(): 'c' | 'wasm' {
    return this.#current.program.target === 'c' ? 'c' : 'wasm';
  }

  async #replace(make: () => Promise<Program>): Promise<void> {
    if (this.#isOver()) return;
    const engine = this.#engine;
    // Before the program is made: the compiler's vectors are what it is made for.
    const tools = await engine.tools();
    if (this.#isOver()) return;
    const program = await make();
    if (this.#isOver()) return;
    check(engine, program);
    if (callOf(program) !== callOf(this.program)) {
      const problem = 'the program that replaces another has other inputs, outputs, scalars or packs';
      throw new DeviceError('E_VALIDATION', engine.facts.name, problem);
    }
    const file = await tools.objects.make(textOf(program));
    if (this.#isOver()) return;
    const before = this.#current;
    this.#current = opened(engine, tools, program, file);
    before.destroy();
  }

  #isOver(): boolean {
    return this.#destroyed || this.#engine.failures.lost;
  }

  #stay(error: unknown): void {
    if (this.#isOver()) return;
    const { name } = this.#engine.facts;
    this.#failure =
      error instanceof DeviceError
        ? error
        : new DeviceError('E_DEVICE', name, String(error), { cause: error });
    this.#engine.report(this.#failure);
  }
}

class NativeExecutor implements Executor<BigInt64Array> {
  readonly threads: number;
  readonly #heap: Heap;
  readonly #tools: NativeTools;
  readonly #kernels: Kernels;

  constructor({ heap, threads }: NativeEngine, tools: NativeTools, program: Program, file: string) {
    const { koffi, objects, kernels } = tools;
    this.threads = threads;
    this.#heap = heap;
    this.#tools = tools;
    this.#kernels = kernels.take(file, () => openKernels(koffi, objects, file, program.kernels.length));
  }

  prepare(operations: readonly Operation<Dispatch>[]): BigInt64Array {
    return planOf(operations, this.#kernels.addresses);
  }

  run(plan: BigInt64Array): undefined {
    const { support, pool } = this.#tools;
    // Where the memory lies is asked each time: an engine may move it when it grows.
    if (plan.length > 0) support.run(pool, plan, plan.length, support.address(this.#heap.bytes));
    return undefined;
  }

  release(): void {
    this.#tools.kernels.release(this.#kernels);
  }
}

/** All kernels in one text, and the function that gives their addresses. */
function textOf({ kernels }: Program): string {
  const sources = kernels.map(({ source }) => source);
  const table = kernels.map(({ name }) => `(uintptr_t)${name}`);
  return `#include <stdint.h>
${sources.join('\n')}
__attribute__((visibility("default"))) uintptr_t ${tableName}(int32_t i) {
  static const uintptr_t kernels[] = { ${[...table, '0'].join(', ')} };
  return kernels[i];
}
`;
}

/** Names become part of the text. */
function checkNames({ kernels }: Program, device: string): void {
  for (const { name } of kernels) {
    if (/^[A-Za-z_]\w*$/.test(name)) continue;
    throw new DeviceError('E_VALIDATION', device, 'the name is none of C', { kernel: name });
  }
}

/** What a caller sees of a program. */
function callOf({ inputs, outputs, buffers, donated, scalars, packs }: Program): string {
  const seen = (index: number): unknown => {
    const { bytes, dtype, shape, role } = buffers[index]!;
    return [bytes, dtype, shape, role, inputs.indexOf(index), outputs.indexOf(index)];
  };
  const layouts = packs
    .filter(({ buffer }) => buffers[buffer]!.role !== 'scratch')
    .map(({ buffer, members }) => [
      buffers[buffer]!.bytes,
      buffers[buffer]!.role,
      members.map((member) => [member.offset, seen(member.buffer)]),
    ]);
  return JSON.stringify([inputs.map(seen), outputs.map(seen), donated, scalars, layouts]);
}
