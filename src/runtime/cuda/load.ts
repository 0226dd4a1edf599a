// A Program made ready on a CUDA device. `run` only queues: the first run over a set of buffers
// goes to the stream step by step, from the second one on it is a graph and one call of the driver (with
// collectives, a graph between each two of them).
// Graphs are kept for as many sets of buffers as plans.ts says; when there are more, one that is evicted
// gets the new addresses.

import { DeviceError } from '../../errors.ts';
import { givenBuffers, outputBuffers, Plans, type FittedPlan } from '../plans.ts';
import { checkProgram } from '../check.ts';
import type { DeviceAllocation, DeviceFacts, LoadedProgram } from '../device.ts';
import { ProgramLayout, type Mover, type Arrangement } from '../layout.ts';
import { checkLimits, encodeScalars } from '../limits.ts';
import type { BufferPools, MemoryLocation } from '../memory.ts';
import type { Slab } from '../slabs.ts';
import type { Program } from '../program.ts';
import type { Scratch } from '../scratch.ts';
import { gateOf, type Gate, type Timeline } from '../timeline.ts';
import type { CudaContext } from './api/context.ts';
import type { Fences } from './fences.ts';
import type { Dependencies } from './graph.ts';
import type { Marshal, StreamOperation } from './api/marshal.ts';
import type { CompiledFunction, CudaModules } from './modules/modules.ts';
import { operationsOf, queueOperations } from './operations.ts';
import { overlaps, type ByteRange } from './ranges.ts';
import type { RankStream } from './rank-stream.ts';
import {
  dependenciesOf,
  inOrder,
  isFlat,
  isInGraph,
  runStepsOf,
  slotsOf,
  withWaits,
  type RunStep,
} from './run-steps.ts';
import { ScalarBlocks } from './scalars.ts';
import type { Staging } from './staging.ts';
import { RunGraphs, stretchesOf } from './stretches.ts';
import type { TileMaps } from './tile-maps.ts';

/** The parts of a device that its programs work with. */
export interface CudaEngine {
  readonly context: CudaContext;
  readonly facts: DeviceFacts;
  readonly timeline: Timeline;
  readonly fences: Fences;
  readonly staging: Staging;
  readonly memory: BufferPools<number>;
  readonly scratch: Scratch<number>;
  readonly modules: CudaModules;
  readonly marshal: Marshal;
  readonly tileMaps: TileMaps;
  readonly mover: Mover<number>;
  /** Waits for each kernel, so that an error names the one that failed. */
  readonly isSynchronous: boolean;
  readonly rankStream: RankStream;
}

/**
 * The steps of a run for one relation of its buffers: which are copied, and whether any overlap.
 */
interface Form {
  readonly runSteps: readonly RunStep[];
  /** Buffers overlap that the program assumes to be separate. */
  readonly isEntangled: boolean;
  /** Of each stretch between collectives. Asked for by the first graph: most programs of a session run once. */
  dependencies: readonly Dependencies[] | undefined;
}

/** The operations over one set of places, and one of arenas. */
interface Plan extends FittedPlan<number> {
  readonly form: Form;
  readonly operations: readonly StreamOperation[];
  graph: RunGraphs | undefined;
}

/**
 * Loads a program; throws what can be told at once (E_VALIDATION, E_LIMIT, E_OOM), the rest comes
 * with the first read.
 */
export function loadProgram(engine: CudaEngine, program: Program): LoadedProgram {
  checkProgram(program, 'cuda', engine.facts.name);
  checkLimits(program, engine.facts);
  return new CudaProgram(engine, program);
}

class CudaProgram implements LoadedProgram {
  readonly program: Program;
  readonly #engine: CudaEngine;
  readonly #compiled: readonly CompiledFunction[];
  readonly #gate: Gate;
  readonly #arenas: readonly number[];
  readonly #layout: ProgramLayout<number>;
  readonly #forms = new Map<string, Form>();
  readonly #plans: Plans<number, Plan>;
  /** The scalar block on the device, and what the runs put into it. */
  readonly #block: Slab<number> | undefined;
  readonly #scalars: ScalarBlocks | undefined;
  #destroyed = false;

  constructor(engine: CudaEngine, program: Program) {
    this.program = program;
    this.#engine = engine;
    const { scratch, memory, staging, fences, modules, mover } = engine;
    this.#arenas = program.arenas.map((bytes) => Math.max(bytes, 4));
    scratch.claim(this.#arenas);
    if (program.kernels.some((kernel) => kernel.usesScalars)) {
      this.#block = memory.scratch(4 * Math.max(1, program.scalars.length));
      const given = program.scalars.filter(({ input }) => input === undefined).length;
      if (given > 0) this.#scalars = new ScalarBlocks(staging, fences, given);
    }
    this.#compiled = modules.get(program.kernels);
    this.#gate = gateOf(this.#compiled);
    this.#layout = new ProgramLayout(mover, program);
    this.#plans = new Plans(memory, scratch, program);
  }

  run(
    inputs: readonly DeviceAllocation[],
    outputs: readonly DeviceAllocation[],
    scalars: readonly number[],
  ): void {
    const { context, facts, timeline } = this.#engine;
    const { failures } = context;
    failures.assertAlive();
    if (this.#destroyed) throw new DeviceError('E_STATE', facts.name, 'a destroyed program was run');
    const given = givenBuffers<number>(this.program, facts.name, inputs, outputs);
    // Moves buffers that lie in the wrong place.
    const arrangement = this.#plans.arrangementOf(given) ?? this.#layout.arrange(given);
    const words = encodeScalars(this.program, scalars, facts.name);
    const at = failures.tick();
    timeline.push(() => {
      if (!failures.lost) context.attempt(at, () => this.#replay(arrangement, words));
    }, this.#gate);
  }

  destroy(): void {
    if (this.#destroyed) return;
    this.#destroyed = true;
    const { scratch, memory, timeline, context, modules } = this.#engine;
    // Queued after waiting runs, which read their arenas only when they are queued to the stream.
    timeline.push(() => {
      // A lost device releases everything itself.
      if (context.failures.lost) return;
      context.use();
      for (const { graph } of this.#plans.clear()) graph?.destroy();
      this.#scalars?.destroy();
      modules.release(this.#compiled);
      scratch.release(this.#arenas);
      if (this.#block !== undefined) memory.recycle(this.#block);
    });
  }

  allocateOutputs(): DeviceAllocation[] {
    const { memory, context } = this.#engine;
    context.failures.assertAlive();
    return outputBuffers(this.program, memory);
  }

  #replay(arrangement: Arrangement<number>, words: Int32Array): void {
    const { context, fences, isSynchronous, rankStream } = this.#engine;
    this.#checkCompiled();
    const known = this.#plans.known(arrangement);
    const plan = known ?? this.#plan(arrangement);
    const source = this.#scalars?.place(words) ?? 0;
    context.flying.add(this.program);
    try {
      // One operation is one call either way.
      const mayGraph = plan.operations.length > 1 && isFlat(plan.form.runSteps) && !isSynchronous;
      if (known !== undefined && plan.graph === undefined && mayGraph) {
        plan.graph = this.#graph(plan, source);
      }
      if (plan.graph === undefined) queueOperations(this.#engine, plan.operations, source);
      else plan.graph.launch(source);
    } finally {
      // Also where a step has failed: what comes next must not meet what still goes on.
      if (!context.failures.lost) rankStream.await(0);
      const epoch = fences.mark();
      this.#scalars?.used(epoch);
    }
  }

  #graph({ form, operations }: Plan, source: number): RunGraphs {
    const { runSteps, isEntangled } = form;
    form.dependencies ??= stretchesOf(runSteps).map((stretch) =>
      isEntangled || !isInGraph(stretch[0]!) ? inOrder(stretch) : dependenciesOf(this.program, stretch),
    );
    return new RunGraphs(this.#engine, operations, form.dependencies, source);
  }

  #checkCompiled(): void {
    for (const [i, { failure }] of this.#compiled.entries()) {
      if (failure !== undefined) throw failure(this.program.kernels[i]!.name);
    }
  }

  #plan(arrangement: Arrangement<number>): Plan {
    const { scratch } = this.#engine;
    const arenas = this.#arenas.map((_, arena) => scratch.slab(arena));
    const ranges = this.#ranges(arrangement.places, arenas);
    const form = this.#form(ranges);
    const operations = operationsOf(form.runSteps, {
      ...this.#engine,
      program: this.program,
      functions: this.#compiled.map(({ func }) => func),
      ranges,
    });
    const plan: Plan = { arrangement, arenas, form, operations, graph: undefined };
    const last = this.#plans.add(plan);
    if (last?.graph === undefined) return plan;
    if (last.form === form) {
      last.graph.update(operations);
      plan.graph = last.graph;
    } else last.graph.destroy();
    return plan;
  }

  /** The bytes of each slot, by number. */
  #ranges(
    places: readonly MemoryLocation<number>[],
    arenas: readonly Slab<number>[],
  ): Map<number, ByteRange> {
    const { inputs, outputs, packs, buffers, scalars } = this.program;
    const slots = slotsOf(this.program);
    const ranges = new Map<number, ByteRange>();
    const put = (slot: number, { slab, offset }: MemoryLocation<number>, bytes: number): void => {
      ranges.set(slot, { start: slab.gpu + offset, bytes });
    };
    buffers.forEach(({ role, arena, offset, bytes }, i) => {
      if (role === 'scratch') put(i, { slab: arenas[arena!]!, offset: offset! }, bytes);
    });
    packs.forEach(({ buffer }, i) => {
      if (buffers[buffer]!.role === 'scratch') return;
      put(buffer, places[inputs.length + outputs.length + i]!, buffers[buffer]!.bytes);
    });
    outputs.forEach((index, i) => put(index, places[inputs.length + i]!, buffers[index]!.bytes));
    inputs.forEach((index, i) => put(index, places[i]!, buffers[index]!.bytes));
    outputs.forEach((index, i) => {
      put(slots.output(i), places[inputs.length + i]!, buffers[index]!.bytes);
    });
    if (this.#block !== undefined) {
      ranges.set(slots.scalars, { start: this.#block.gpu, bytes: 4 * scalars.length });
    }
    return ranges;
  }

  /**
   * The operations of the run, given which outputs do not alias what they repeat, and what
   * overlaps.
   */
  #form(ranges: ReadonlyMap<number, ByteRange>): Form {
    const { program } = this;
    const slots = slotsOf(program);
    const isCopied = program.outputs.map((index, i) => {
      return ranges.get(index)!.start !== ranges.get(slots.output(i))!.start;
    });
    const isEntangled = overlaps(program, ranges);
    const key = `${isCopied.map(Number).join('')}${isEntangled ? '!' : ''}`;
    let form = this.#forms.get(key);
    if (form === undefined) {
      const isAtOnce = isEntangled || this.#engine.isSynchronous;
      const runSteps = withWaits(program, runStepsOf(program, isCopied), isAtOnce);
      form = { runSteps, isEntangled, dependencies: undefined };
      this.#forms.set(key, form);
    }
    return form;
  }
}
