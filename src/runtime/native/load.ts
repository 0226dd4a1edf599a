// A Program made ready as code of the machine: its kernels are one shared object. A program may begin as
// WebAssembly over the same memory, and be replaced when its object has been compiled.

import { DeviceError } from '../../errors.ts';
import { checkProgram } from '../check.ts';
import type { DeviceAllocation, LoadedProgram } from '../device.ts';
import { checkLimits } from '../limits.ts';
import type { Program } from '../program.ts';
import type { CEngine } from './executor.ts';
import type { NativeTools } from './tools.ts';

/** The parts of a device that its programs work with. */
export interface NativeEngine extends CEngine {
  /** What compiled programs need, found when they ask for it first; rejects with E_DEVICE. */
  tools(): Promise<NativeTools>;
  /** The same where it has been found. */
  openedTools(): NativeTools | undefined;
  /** Loads a program of WebAssembly, over the same memory. */
  loadMeanwhile(program: Program): LoadedProgram;
  /** Programs that are being replaced, until each is known to run as C or to stay. */
  readonly replacing: Set<Promise<void>>;
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
  return new NativeProgram(engine, tools.loadNow(engine, program));
}

function check({ facts }: NativeEngine, program: Program): void {
  checkProgram(program, 'c', facts.name);
  checkLimits(program, facts);
  checkNames(program, facts.name);
}

/** Runs of a program on WebAssembly before it is worth a compiler. */
const runsBeforeReplacing = 3;

/** Operations on floats of a program whose first run takes long enough that it is worth one then. */
const longRun = 1e8;

/** How often a program runs on WebAssembly before it is compiled. */
function runsBefore({ steps, kernels }: Program): number {
  let flops = 0;
  for (const step of steps) if (step.kind === 'dispatch') flops += kernels[step.kernel]!.flops;
  return flops >= longRun ? 1 : runsBeforeReplacing;
}

export class NativeProgram implements LoadedProgram {
  readonly #engine: NativeEngine;
  #current: LoadedProgram;
  #settled: Promise<void> = Promise.resolve();
  #last: 'c' | 'wasm' | undefined;
  #later: (() => Promise<Program>) | undefined;
  #runsLeft: number;
  #failure: DeviceError | undefined;
  #destroyed = false;

  constructor(engine: NativeEngine, current: LoadedProgram, later?: () => Promise<Program>) {
    this.#engine = engine;
    this.#current = current;
    this.#later = later;
    this.#runsLeft = runsBefore(current.program);
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
    this.#runsLeft -= 1;
    if (this.#later === undefined || this.#runsLeft > 0) return;
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
    const settled = new Promise((resolve) => void setImmediate(resolve))
      .then(() => this.#replace(make))
      .catch((error: unknown) => this.#stay(error));
    const { replacing } = this.#engine;
    replacing.add(settled);
    void settled.then(() => replacing.delete(settled));
    this.#settled = settled;
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
    const next = await tools.load(engine, program);
    if (this.#isOver()) return next.destroy();
    const before = this.#current;
    this.#current = next;
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
