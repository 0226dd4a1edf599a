// A Program made ready as code of the machine: its kernels are one shared object. While that is being
// compiled, runs go to the program that WebAssembly runs over the same memory, if there is one.

import { DeviceError } from '../../errors.ts';
import { checkProgram } from '../check.ts';
import type { DeviceAllocation, LoadedProgram } from '../device.ts';
import type { Koffi } from '../koffi.ts';
import { checkLimits } from '../limits.ts';
import type { Program } from '../program.ts';
import { SharedEntries } from '../shared.ts';
import {
  HeapProgram,
  type Dispatch,
  type Executor,
  type HeapEngine,
  type Operation,
} from '../wasm/placed.ts';
import { openKernels, tableName, type Kernels, type Support } from './library.ts';
import type { Objects } from './objects.ts';
import { planOf } from './plan.ts';

/** The parts of a device that its programs work with. */
export interface NativeEngine extends HeapEngine {
  readonly koffi: Koffi;
  readonly objects: Objects;
  readonly support: Support;
  /** The address of the pool of threads. */
  readonly pool: number;
  readonly threads: number;
  /** Objects that are open, by their files. */
  readonly kernels: SharedEntries<Kernels>;
  /** Programs are compiled before `load` returns. */
  readonly wait: boolean;
  /** Makes the program that runs meanwhile ready. */
  loadMeanwhile(program: Program): LoadedProgram;
  /** Tells the user of a program that stays on WebAssembly. */
  report(error: DeviceError): void;
}

/** Loads a program; throws what is wrong with it (E_VALIDATION, E_LIMIT, E_OOM, E_DEVICE). */
export function loadProgram(engine: NativeEngine, program: Program): NativeProgram {
  const { facts } = engine;
  checkProgram(program, 'c', facts.name);
  checkLimits(program, facts);
  checkNames(program, facts.name);
  const { meanwhile } = program;
  if (meanwhile !== undefined) checkMeanwhile(program, meanwhile, facts.name);
  return new NativeProgram(engine, program);
}

export class NativeProgram implements LoadedProgram {
  readonly program: Program;
  /** Resolves when it is known what runs the program from then on. */
  readonly settled: Promise<void>;
  readonly #engine: NativeEngine;
  #machine: LoadedProgram | undefined;
  #meanwhile: LoadedProgram | undefined;
  #last: 'c' | 'wasm' | undefined;
  #failure: DeviceError | undefined;
  #destroyed = false;

  constructor(engine: NativeEngine, program: Program) {
    this.program = program;
    this.#engine = engine;
    this.settled = Promise.resolve();
    const text = textOf(program);
    const { objects, wait } = engine;
    const { meanwhile } = program;
    try {
      const found = objects.find(objects.keyOf(text));
      if (found !== undefined || meanwhile === undefined || wait) {
        this.#machine = this.#open(found ?? objects.makeNow(text));
        return;
      }
    } catch (error) {
      if (meanwhile === undefined) throw error;
      this.#meanwhile = engine.loadMeanwhile(meanwhile);
      this.#stay(error);
      return;
    }
    this.#meanwhile = engine.loadMeanwhile(meanwhile);
    this.settled = objects.make(text).then(
      (file) => this.#switch(file),
      (error: unknown) => this.#stay(error),
    );
  }

  /** What ran it last; what would run it now, before the first run. */
  get engine(): 'c' | 'wasm' {
    return this.#last ?? (this.#machine === undefined ? 'wasm' : 'c');
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
    this.#current().run(inputs, outputs, scalars);
    this.#last = this.#machine === undefined ? 'wasm' : 'c';
  }

  allocateOutputs(): DeviceAllocation[] {
    return this.#current().allocateOutputs();
  }

  destroy(): void {
    this.#destroyed = true;
    this.#machine?.destroy();
    this.#meanwhile?.destroy();
  }

  #current(): LoadedProgram {
    return (this.#machine ?? this.#meanwhile)!;
  }

  #open(file: string): LoadedProgram {
    const engine = this.#engine;
    return new HeapProgram(engine, this.program, new NativeExecutor(engine, this.program, file));
  }

  #switch(file: string): void {
    if (this.#destroyed || this.#engine.failures.lost) return;
    try {
      this.#machine = this.#open(file);
      this.#meanwhile?.destroy();
      this.#meanwhile = undefined;
    } catch (error) {
      this.#stay(error);
    }
  }

  #stay(error: unknown): void {
    if (this.#destroyed || this.#engine.failures.lost) return;
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
  readonly #engine: NativeEngine;
  readonly #kernels: Kernels;

  constructor(engine: NativeEngine, program: Program, file: string) {
    const { koffi, facts, kernels, threads } = engine;
    this.threads = threads;
    this.#engine = engine;
    this.#kernels = kernels.take(file, () => openKernels(koffi, facts.name, file, program.kernels.length));
  }

  prepare(operations: readonly Operation<Dispatch>[]): BigInt64Array {
    return planOf(operations, this.#kernels.addresses);
  }

  run(plan: BigInt64Array): undefined {
    const { heap, support, pool } = this.#engine;
    // Where the memory lies is asked each time: an engine may move it when it grows.
    if (plan.length > 0) support.run(pool, plan, plan.length, support.address(heap.bytes));
    return undefined;
  }

  release(): void {
    this.#engine.kernels.release(this.#kernels);
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

/** Both programs are called with the same buffers and scalars. */
function checkMeanwhile(program: Program, meanwhile: Program, device: string): void {
  if (callOf(program) === callOf(meanwhile)) return;
  const problem = 'the program that runs meanwhile has other inputs, outputs, scalars or packs';
  throw new DeviceError('E_VALIDATION', device, problem);
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
