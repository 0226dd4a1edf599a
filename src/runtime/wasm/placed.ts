// A Program over memory of a heap: where its buffers lie, and what a run does with them in order, as
// operations over addresses. Who runs the operations is another matter: WebAssembly, or code of the
// machine over the same memory. A run is complete when `run` returns.

import { DeviceError } from '../../errors.ts';
import type { Ranks } from '../communicator.ts';
import { givenBuffers, outputBuffers, Plans, type FittedPlan } from '../plans.ts';
import type { DeviceAllocation, DeviceFacts, LoadedProgram } from '../device.ts';
import type { Failures } from '../failures.ts';
import { ProgramLayout, type Mover } from '../layout.ts';
import { encodeScalars } from '../limits.ts';
import type { GpuBuffer, BufferPools, MemoryLocation } from '../memory.ts';
import type { Slab } from '../slabs.ts';
import type { Program, ProgramKernel, ProgramStep } from '../program.ts';
import type { Scratch } from '../scratch.ts';
import { cutsOf, type JobCut, type Grain } from './cut.ts';
import type { Heap } from './heap.ts';

/** The parts of a device that its programs work with, whoever runs them. */
export interface HeapEngine {
  readonly facts: DeviceFacts;
  readonly failures: Failures;
  readonly heap: Heap;
  readonly memory: BufferPools<number>;
  readonly scratch: Scratch<number>;
  readonly grain: Grain | undefined;
  readonly mover: Mover<number>;
  readonly ranks: Ranks;
  /** Ends the device, with this reason. */
  lose(error: DeviceError): void;
}

/** Workgroups of a kernel over buffers at these addresses. */
export interface Dispatch {
  readonly kind: 'dispatch';
  /** Index into the program's kernels. */
  readonly kernel: number;
  readonly groups: number;
  /** Addresses of the buffers, in binding order. */
  readonly buffers: readonly number[];
  /** Where the scalars are, if the kernel takes them. */
  readonly scalars: number | undefined;
  /** How it is spread over threads, if it is. */
  readonly cut: JobCut | undefined;
  /** Where the scratch memory of the threads begins, and how many bytes each has. */
  readonly scratch: { readonly address: number; readonly bytes: number } | undefined;
}

/** A collective, between addresses. */
export type Exchange = Extract<ProgramStep, { readonly kind: 'collective' }>;

/** What a run does, one after the other; `Call` is how its executor runs a dispatch. */
export type Operation<Call> =
  | Call
  | { readonly kind: 'copy'; readonly from: number; readonly to: number; readonly bytes: number }
  | { readonly kind: 'clear'; readonly at: number; readonly bytes: number }
  | Exchange
  | {
      readonly kind: 'repeat';
      readonly times: number;
      /** Where the i32 is that must not be 0 before a turn, if one must not. */
      readonly guard: number | undefined;
      readonly operations: readonly Operation<Call>[];
    };

/** Runs the operations of one program. */
export interface Executor<Prepared> {
  /** Threads, each with scratch memory of its own. */
  readonly threads: number;
  /** Makes the operations over one set of places ready. */
  prepare(operations: readonly Operation<Dispatch>[]): Prepared;
  /** Runs them in order up to the first that fails, and gives its failure. */
  run(prepared: Prepared): DeviceError | undefined;
  /** Ends the program's use of what it runs. */
  release(): void;
}

/** The steps over one set of places, and one of arenas. */
interface Plan<Prepared> extends FittedPlan<number> {
  readonly prepared: Prepared;
}

export class HeapProgram<Prepared> implements LoadedProgram {
  readonly program: Program;
  readonly #engine: HeapEngine;
  readonly #executor: Executor<Prepared>;
  readonly #arenas: readonly number[];
  /** How each step is spread over threads. */
  readonly #cuts: ReadonlyMap<ProgramStep, JobCut>;
  readonly #block: Slab<number> | undefined;
  readonly #layout: ProgramLayout<number>;
  readonly #plans: Plans<number, Plan<Prepared>>;
  #destroyed = false;

  constructor(engine: HeapEngine, program: Program, executor: Executor<Prepared>) {
    this.program = program;
    this.#engine = engine;
    this.#executor = executor;
    const { threads } = executor;
    this.#cuts = cutsOf(program, threads, engine.grain);
    // After the arenas of intermediates: scratch memory of each thread.
    const own = threads * Math.max(0, ...program.kernels.map(scratchOf));
    this.#arenas = [...program.arenas.map((bytes) => Math.max(bytes, 4)), ...(own > 0 ? [own] : [])];
    engine.scratch.claim(this.#arenas);
    if (program.kernels.some(({ usesScalars }) => usesScalars))
      this.#block = engine.memory.scratch(4 * Math.max(1, program.scalars.length));
    this.#layout = new ProgramLayout(engine.mover, program);
    this.#plans = new Plans(engine.memory, engine.scratch, program);
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
    const failure = this.#executor.run(plan.prepared);
    if (failure === undefined) return;
    if (failure.code === 'E_DEVICE_LOST') this.#engine.lose(failure);
    failures.record(at, failure);
  }

  destroy(): void {
    if (this.#destroyed) return;
    this.#destroyed = true;
    const { scratch, memory, failures } = this.#engine;
    this.#plans.clear();
    if (failures.lost) return;
    this.#executor.release();
    scratch.release(this.#arenas);
    if (this.#block !== undefined) memory.recycle(this.#block);
  }

  allocateOutputs(): DeviceAllocation[] {
    this.#engine.failures.assertAlive();
    return outputBuffers(this.program, this.#engine.memory);
  }

  /** The steps over these buffers, after moving those that lie in the wrong place. */
  #planFor(given: readonly GpuBuffer<number>[]): Plan<Prepared> {
    const arrangement = this.#plans.arrangementOf(given) ?? this.#layout.arrange(given);
    const known = this.#plans.known(arrangement);
    if (known !== undefined) return known;
    const arenas = this.#arenas.map((_, arena) => this.#engine.scratch.slab(arena));
    const operations = this.#operations(arrangement.places, arenas);
    const plan = { arrangement, arenas, prepared: this.#executor.prepare(operations) };
    this.#plans.add(plan);
    return plan;
  }

  #operations(
    places: readonly MemoryLocation<number>[],
    arenas: readonly Slab<number>[],
  ): Operation<Dispatch>[] {
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
    const copy = (from: number, to: number, bytes: number): Operation<Dispatch>[] =>
      from === to ? [] : [{ kind: 'copy', from, to, bytes }];
    const block = this.#block?.gpu ?? 0;
    const single = scalars.flatMap(({ input }, slot) =>
      input !== undefined && block !== 0 ? copy(address(inputs[input]!), block + 4 * slot, 4) : [],
    );
    const operationsOf = (step: ProgramStep): Operation<Dispatch>[] => {
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
          const kernel = kernels[step.kernel]!;
          const bytes = scratchOf(kernel);
          return [
            {
              kind: 'dispatch',
              kernel: step.kernel,
              groups,
              buffers: step.buffers.map(address),
              scalars: kernel.usesScalars ? block : undefined,
              cut: this.#cuts.get(step),
              scratch: bytes > 0 ? { address: arenas.at(-1)!.gpu, bytes } : undefined,
            },
          ];
        }
        case 'collective':
          return [{ ...step, from: address(step.from), to: address(step.to) }];
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
}

/** Whether the i32 at an address is not 0. */
export function isSet(heap: Heap, at: number): boolean {
  return heap.bytes.subarray(at, at + 4).some((byte) => byte !== 0);
}

/** Does a collective on the memory of a heap. */
export function exchange({ heap, ranks }: Pick<HeapEngine, 'heap' | 'ranks'>, step: Exchange): void {
  const { from, sends, to, takes } = step;
  ranks.run(step, heap.bytes.subarray(from, from + sends), heap.bytes.subarray(to, to + takes));
}

/** Bytes of one thread's scratch memory, in whole cache lines. */
function scratchOf({ sharedBytes = 0 }: ProgramKernel): number {
  return Math.ceil(sharedBytes / 128) * 128;
}
