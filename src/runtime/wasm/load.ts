// A Program made ready as WebAssembly: each kernel a module over the device's memory, run here or
// by all threads. A run is complete when `run` returns; operations that other devices queue are
// done in order at once.

import { DeviceError } from '../../errors.ts';
import { givenBuffers, outputBuffers, Plans, type FittedPlan } from '../plans.ts';
import { checkProgram } from '../check.ts';
import type { DeviceAllocation, DeviceFacts, LoadedProgram } from '../device.ts';
import type { Failures } from '../failures.ts';
import { ProgramLayout, type Mover } from '../layout.ts';
import { checkLimits, encodeScalars } from '../limits.ts';
import type { GpuBuffer, BufferPools, MemoryLocation } from '../memory.ts';
import type { Slab } from '../slabs.ts';
import type { Program, ProgramKernel, ProgramStep } from '../program.ts';
import type { Scratch } from '../scratch.ts';
import { cutsOf, type JobCut, type Grain } from './cut.ts';
import type { Heap } from './heap.ts';
import type { LoadedKernel, WasmModules } from './modules.ts';
import type { PoolJob, Pool } from './pool.ts';

/** The parts of a device that its programs work with. */
export interface WasmEngine {
  readonly facts: DeviceFacts;
  readonly failures: Failures;
  readonly heap: Heap;
  readonly memory: BufferPools<number>;
  readonly scratch: Scratch<number>;
  readonly modules: WasmModules;
  /** More threads, where there are any. */
  readonly pool: Pool | undefined;
  readonly grain: Grain | undefined;
  readonly mover: Mover<number>;
  /** Ends the device, with this reason. */
  lose(error: DeviceError): void;
}

type Operation =
  /** Workgroups here, and workgroups by all threads. */
  | {
      readonly kind: 'run';
      readonly name: string;
      readonly kernel: LoadedKernel;
      readonly args: readonly number[];
    }
  | { readonly kind: 'share'; readonly pool: Pool; readonly job: PoolJob }
  | { readonly kind: 'copy'; readonly from: number; readonly to: number; readonly bytes: number }
  | { readonly kind: 'clear'; readonly at: number; readonly bytes: number }
  | {
      readonly kind: 'repeat';
      readonly times: number;
      /** Where the i32 is that must not be 0 before a turn, if one must not. */
      readonly guard: number | undefined;
      readonly operations: readonly Operation[];
    };

/** The steps over one set of places, and one of arenas. */
interface Plan extends FittedPlan<number> {
  readonly operations: readonly Operation[];
}

/** Loads a program; throws what is wrong with it (E_VALIDATION, E_LIMIT, E_OOM). */
export function loadProgram(engine: WasmEngine, program: Program): LoadedProgram {
  checkProgram(program, 'wasm', engine.facts.name);
  checkLimits(program, engine.facts);
  return new WasmProgram(engine, program);
}

class WasmProgram implements LoadedProgram {
  readonly program: Program;
  readonly #engine: WasmEngine;
  readonly #kernels: readonly LoadedKernel[];
  readonly #arenas: readonly number[];
  /** How each step is spread over threads. */
  readonly #cuts: ReadonlyMap<ProgramStep, JobCut>;
  readonly #block: Slab<number> | undefined;
  readonly #layout: ProgramLayout<number>;
  readonly #plans: Plans<number, Plan>;
  #destroyed = false;

  constructor(engine: WasmEngine, program: Program) {
    this.program = program;
    this.#engine = engine;
    this.#kernels = kernelsOf(engine.modules, program);
    const threads = engine.pool?.threads ?? 1;
    this.#cuts = cutsOf(program, threads, engine.grain);
    // After the arenas of intermediates: scratch memory of each thread.
    const own = threads * Math.max(0, ...program.kernels.map(scratchOf));
    this.#arenas = [...program.arenas.map((bytes) => Math.max(bytes, 4)), ...(own > 0 ? [own] : [])];
    engine.scratch.claim(this.#arenas);
    if (program.kernels.some(({ usesScalars }) => usesScalars))
      this.#block = engine.memory.scratch(4 * Math.max(1, program.scalars.length));
    this.#layout = new ProgramLayout(engine.mover, program);
    this.#plans = new Plans(engine.memory, engine.scratch);
  }

  run(
    inputs: readonly DeviceAllocation[],
    outputs: readonly DeviceAllocation[],
    scalars: readonly number[],
  ): void {
    const { facts, failures, heap } = this.#engine;
    failures.assertAlive();
    if (this.#destroyed) throw new DeviceError('E_STATE', facts.name, 'a destroyed program was run');
    const given = givenBuffers<number>(this.program, facts.name, inputs, outputs);
    const words = encodeScalars(this.program, scalars, facts.name);
    const at = failures.tick();
    const plan = this.#planFor(given);
    if (this.#block !== undefined) heap.bytes.set(new Uint8Array(words.buffer), this.#block.gpu);
    const failure = this.#doAll(plan.operations);
    if (failure === undefined) return;
    if (failure.code === 'E_DEVICE_LOST') this.#engine.lose(failure);
    failures.record(at, failure);
  }

  /** Runs operations in order up to the first that fails, and gives its failure. */
  #doAll(operations: readonly Operation[]): DeviceError | undefined {
    for (const operation of operations) {
      if (operation.kind === 'repeat') {
        for (let time = 0; time < operation.times && this.#goesOn(operation.guard); time++) {
          const failure = this.#doAll(operation.operations);
          if (failure !== undefined) return failure;
        }
        continue;
      }
      try {
        this.#do(operation);
      } catch (error) {
        return asDeviceError(error, operation, this.#engine.facts.name);
      }
    }
    return undefined;
  }

  #goesOn(guard: number | undefined): boolean {
    if (guard === undefined) return true;
    return this.#engine.heap.bytes.subarray(guard, guard + 4).some((byte) => byte !== 0);
  }

  #do(operation: Exclude<Operation, { readonly kind: 'repeat' }>): void {
    const { heap } = this.#engine;
    switch (operation.kind) {
      case 'run':
        operation.kernel.run(...operation.args);
        return;
      case 'share':
        operation.pool.run(operation.job);
        return;
      case 'copy': {
        const { from, to, bytes } = operation;
        heap.bytes.copyWithin(to, from, from + bytes);
        return;
      }
      case 'clear':
        heap.bytes.fill(0, operation.at, operation.at + operation.bytes);
        return;
      default:
        operation satisfies never;
    }
  }

  destroy(): void {
    if (this.#destroyed) return;
    this.#destroyed = true;
    const { scratch, memory, failures, modules } = this.#engine;
    this.#plans.clear();
    if (failures.lost) return;
    for (const kernel of this.#kernels) modules.release(kernel);
    scratch.release(this.#arenas);
    if (this.#block !== undefined) memory.recycle(this.#block);
  }

  allocateOutputs(): DeviceAllocation[] {
    this.#engine.failures.assertAlive();
    return outputBuffers(this.program, this.#engine.memory);
  }

  /** The steps over these buffers, after moving those that lie in the wrong place. */
  #planFor(given: readonly GpuBuffer<number>[]): Plan {
    const arrangement = this.#plans.arrangementOf(given) ?? this.#layout.arrange(given);
    const known = this.#plans.known(arrangement);
    if (known !== undefined) return known;
    const arenas = this.#arenas.map((_, arena) => this.#engine.scratch.slab(arena));
    const plan = { arrangement, arenas, operations: this.#operations(arrangement.places, arenas) };
    this.#plans.add(plan);
    return plan;
  }

  #operations(places: readonly MemoryLocation<number>[], arenas: readonly Slab<number>[]): Operation[] {
    const { inputs, outputs, packs, buffers, kernels, steps, scalars } = this.program;
    const addressOf = ({ slab, offset }: MemoryLocation<number>): number => slab.gpu + offset;
    const external = new Map<number, number>();
    packs.forEach(({ buffer }, i) =>
      external.set(buffer, addressOf(places[inputs.length + outputs.length + i]!)),
    );
    outputs.forEach((index, i) => external.set(index, addressOf(places[inputs.length + i]!)));
    inputs.forEach((index, i) => external.set(index, addressOf(places[i]!)));
    const address = (index: number): number => {
      const { role, arena, offset } = buffers[index]!;
      return role === 'scratch' ? arenas[arena!]!.gpu + offset! : external.get(index)!;
    };
    const copy = (from: number, to: number, bytes: number): Operation[] =>
      from === to ? [] : [{ kind: 'copy', from, to, bytes }];
    const block = this.#block?.gpu ?? 0;
    const single = scalars.flatMap(({ input }, slot) =>
      input !== undefined && block !== 0 ? copy(address(inputs[input]!), block + 4 * slot, 4) : [],
    );
    const operationsOf = (step: ProgramStep): Operation[] => {
      switch (step.kind) {
        case 'copy':
          return copy(address(step.from), address(step.to), buffers[step.from]!.bytes);
        case 'clear':
          return [{ kind: 'clear', at: address(step.buffer), bytes: buffers[step.buffer]!.bytes }];
        case 'repeat':
        case 'while': {
          const guard = step.kind === 'while' ? address(step.guard) : undefined;
          return [{ kind: 'repeat', times: step.times, guard, operations: step.steps.flatMap(operationsOf) }];
        }
        case 'dispatch': {
          const groups = step.grid[0] * step.grid[1] * step.grid[2];
          if (groups === 0) return [];
          const args = step.buffers.map(address);
          if (kernels[step.kernel]!.usesScalars) args.push(block);
          const cut = this.#cuts.get(step);
          return [this.#dispatch(step.kernel, groups, args, cut, arenas.at(-1)?.gpu ?? 0)];
        }
        case 'host':
          return [];
        default:
          return step satisfies never;
      }
    };
    // An output that is an input passed through, or another output once more, is copied unless it
    // is the same buffer.
    const repeats = outputs.flatMap((index, i) =>
      copy(address(index), addressOf(places[inputs.length + i]!), buffers[index]!.bytes),
    );
    return [...single, ...steps.flatMap(operationsOf), ...repeats];
  }

  /** `scratch`: where that of the threads begins. */
  #dispatch(
    index: number,
    groups: number,
    args: readonly number[],
    cut: JobCut | undefined,
    scratch: number,
  ): Operation {
    const { pool, modules } = this.#engine;
    const { name } = this.program.kernels[index]!;
    const bytes = scratchOf(this.program.kernels[index]!);
    const kernel = this.#kernels[index]!;
    if (pool === undefined || cut === undefined) {
      const all = [0, groups, ...args, ...(bytes > 0 ? [scratch] : [])];
      return { kind: 'run', name, kernel, args: all };
    }
    const code = modules.codeOf(kernel);
    const own = bytes > 0 ? { scratch: { address: scratch, bytes } } : {};
    return { kind: 'share', pool, job: { kernel, name, code, groups, args, cut, ...own } };
  }
}

/** The kernels of a program; if one is refused, those taken before it are released. */
function kernelsOf(modules: WasmModules, { kernels }: Program): LoadedKernel[] {
  const made: LoadedKernel[] = [];
  try {
    for (const kernel of kernels) made.push(modules.get(kernel));
  } catch (error) {
    for (const kernel of made) modules.release(kernel);
    throw error;
  }
  return made;
}

/** Bytes of one thread's scratch memory, in whole cache lines. */
function scratchOf({ sharedBytes = 0 }: ProgramKernel): number {
  return Math.ceil(sharedBytes / 128) * 128;
}

function asDeviceError(error: unknown, operation: Operation, device: string): DeviceError {
  if (error instanceof DeviceError) return error;
  const problem = error instanceof Error ? error.message : String(error);
  return new DeviceError(
    'E_VALIDATION',
    device,
    problem,
    operation.kind === 'run' ? { kernel: operation.name } : {},
  );
}
