// The entry of the compiler: Graph in, Program out. This file has the one list of passes, in order, each
// with what it needs and what it guarantees.

import { assemble, storedBytes, type AssembledPlaces } from '../codegen/lower/assemble.ts';
import { emitterOf } from '../codegen/emit/emit.ts';
import { programLoops, type Lowered, type LoopTrips } from '../codegen/lower/lowered.ts';
import { groupShape } from '../codegen/lower/batched-dispatch.ts';
import { lowerKernel, type LoopCache } from '../codegen/lower/kernel.ts';
import type { PinnedTilings } from '../codegen/template/contract/strategies.ts';
import type { Loop } from '../codegen/loop/loop.ts';
import { verifyRanges } from '../codegen/loop/verify-ranges.ts';
import { observerOf } from '../dump/stages.ts';
import type { Observer } from '../dump/stage.ts';
import type { Graph, Node } from '../ir/graph.ts';
import { showType } from '../ir/infer.ts';
import { tracePass } from '../ir/origin/trace.ts';
import type { HostFunctions } from '../runtime/device.ts';
import type { Program, ProgramScalar } from '../runtime/program.ts';
import { withMovedBytes } from '../schedule/cost.ts';
import { offeredIn, pairDonations } from '../schedule/memory/donate.ts';
import { nameKernels, withPrefix } from '../schedule/memory/names.ts';
import { batchDispatches } from '../schedule/merge/batched-dispatch.ts';
import { planMemory } from '../schedule/memory/memory.ts';
import { orderKernels } from '../schedule/memory/order.ts';
import { unsharedMemory, type MemoryPlan } from '../schedule/memory/plan.ts';
import type { Kernel } from '../schedule/kernel.ts';
import { scheduleGraph, type KernelSchedule } from '../schedule/schedule.ts';
import type { FittedGraph, Fitting } from '../schedule/recompute/report.ts';
import { runInputs } from '../schedule/run-inputs.ts';
import { fixpoint } from '../schedule/fixpoint.ts';
import { checkElements } from '../schedule/sizes.ts';
import { passes, type Pass } from '../schedule/passes/pipeline.ts';
import type { Target } from '../schedule/target.ts';
import { budgeting, interpreter, verifiers } from './slots.ts';

export { castDoubleInputs } from '../schedule/passes/double-inputs.ts';
export { passes, type Pass, type PinnedTilings };

export interface CompileOptions {
  /** Indices of rank-0 parameters that are supplied as numbers at each run; none by default. */
  readonly scalars?: ReadonlySet<number>;
  /**
   * Inputs that may be overwritten: parameter index → the output (of its dtype and shape) that may
   * take its place; none by default.
   */
  readonly donate?: ReadonlyMap<number, number>;
  /** Schedules to use instead of the model's; none by default. */
  readonly schedules?: PinnedTilings;
  /** Verify after every pass and every lowered kernel; false by default. */
  readonly check?: boolean;
  /**
   * Bytes that a run may take; values are computed again until it does. Throws E_LIMIT; no limit by
   * default.
   */
  readonly memory?: number;
  /** Which process of its mesh the program is for; by default none, and E_STATE where a graph asks for it. */
  readonly rank?: number;
  /** Hand out the schedule as well; false by default. */
  readonly inspect?: boolean;
  /** What is compiled, in a few words, for those who look at its stages; `graph` by default. */
  readonly title?: () => string;
  /** Hears of every stage as it is reached; nobody by default. */
  readonly observe?: Observer;
}

/** What a kernel does, for reports. */
export interface KernelSummary {
  readonly name: string;
  readonly kind: string;
  readonly reads: readonly string[];
  readonly writes: readonly string[];
  readonly flops: number;
  readonly bytes: number;
  /** How often a run has it run: more than once in a loop. */
  readonly times: number;
  /** Which of the program's kernels it is, and of the schedule's, of which those of loops are none. */
  readonly pipeline: number;
  readonly place: number | undefined;
  /** How it is spread over the machine, in words. */
  readonly schedule: string;
  readonly source: string;
}

export interface CompiledGraph {
  readonly program: Program;
  /** Functions of the program's `host` steps. */
  readonly host?: HostFunctions;
  readonly kernels: readonly KernelSummary[];
  /**
   * With `inspect`, where kernels are generated: the graph that was scheduled, and the schedule.
   */
  readonly inside?: Inside;
  /** Most bytes of intermediates that are needed at once, which no memory plan can do without. */
  readonly live: number;
  /** With `memory`, what that has done. */
  readonly fitting?: Fitting;
}

/** What lies between graph and program. */
export interface Inside {
  readonly graph: Graph;
  readonly schedule: KernelSchedule;
  readonly placed: AssembledPlaces;
  /** Of each of the kernels, those in loops of the program included. */
  readonly loops: readonly Loop[];
  /** The parameters that are the program's scalars, in order. */
  readonly scalars: readonly Node[];
  readonly memory: MemoryPlan;
}

/**
 * Runs the passes. With `check`, the verifier runs after each and names the one that broke the
 * graph.
 */
export function optimise(graph: Graph, target: Target, check = false, observe?: Observer): Graph {
  return passes.reduce((before, pass, place) => {
    const next =
      observe === undefined ? pass.run(before, target) : shown(pass, place, before, target, observe);
    if (check) verifiers.value.verify(next, pass.name);
    return next;
  }, graph);
}

/** Runs a pass and reports it. */
function shown(
  { name, guarantees, run }: Pass,
  place: number,
  before: Graph,
  target: Target,
  observe: Observer,
): Graph {
  const { result: graph, trace } = tracePass(() => run(before, target));
  observe({ kind: 'pass', name, guarantees, place, before, graph, trace });
  return graph;
}

/**
 * Compiles a graph for a target. Parameters named by `scalars` become the program's scalars, in
 * index order.
 */
export function compileGraph(graph: Graph, target: Target, options: CompileOptions = {}): CompiledGraph {
  const observe = observerOf(options.observe, options.title ?? ((): string => 'graph'));
  const compile = (): CompiledGraph =>
    target.id === 'interpreter'
      ? interpreter.value.interpreted(graph, options)
      : generated(graph, target, options, observe);
  if (observe === undefined) return compile();
  observe({ kind: 'recorded', graph, target });
  try {
    return compile();
  } catch (error) {
    observe({ kind: 'error', error });
    throw error;
  }
}

/** Generated kernels: optimise, schedule, plan memory, lower, spell. */
function generated(
  recorded: Graph,
  given: Target,
  options: CompileOptions,
  observe: Observer | undefined,
): CompiledGraph {
  const target = options.rank === undefined ? given : { ...given, rank: options.rank };
  checkElements([...recorded.parameters, ...recorded.outputs] as readonly Node[], target.name);
  const whole = optimise(recorded, target, options.check, observe);
  const fitted = options.memory === undefined ? undefined : fit(whole, target, options, options.memory);
  const graph = fitted?.graph ?? whole;
  const { inputs, single, scalars, slots } = runInputs(graph, options.scalars);
  const offered = offeredIn(graph, options.donate ?? new Map());
  const { schedule, memory, lowered, loops } = lowerGraph(
    graph,
    target,
    slots,
    pairDonations(offered),
    options.schedules,
    observe,
    { prefix: '', mayPack: true, check: options.check === true },
  );
  const stored = lowered.flatMap(({ kernel }) => [...kernel.reads, ...kernel.writes.map(({ node }) => node)]);
  checkElements(stored, target.name);
  if (options.check) {
    const { verifyKernel, verifyLoop } = verifiers.value;
    for (const kernel of schedule.kernels) verifyKernel(kernel);
    for (const loop of loops.values()) verifyLoop(loop, target.limits);
  }
  const emit = emitterOf(target.id);
  const { program, described, placed } = assemble({
    target: target.id,
    inputs,
    outputs: graph.outputs,
    scalars: scalars.map((node) => ({
      name: node.attrs.name,
      dtype: node.dtype as ProgramScalar['dtype'],
      ...(single.includes(node) && { input: inputs.indexOf(node as Node) }),
    })),
    kernels: lowered,
    packs: schedule.packs,
    memory,
    emit: (loop) =>
      emit(loop, {
        scalarSlots: scalars.length,
        relaxedSimd: target.relaxedSimd === true,
        ...(target.vectors !== undefined && { lanes: target.vectors.lanes }),
      }),
  });
  observe?.({
    kind: 'program',
    program,
    sources: described.filter((one) => lowered.includes(one.lowered)).map(({ source }) => source),
  });
  const summaries = described.map(({ lowered: one, index, source, times }) => {
    const { kernel, loop } = one;
    const place = lowered.indexOf(one);
    return {
      name: kernel.name,
      kind: kernel.kind,
      reads: kernel.reads.map((node) => showType(node)),
      writes: kernel.writes.map((write) => showType(write.node)),
      flops: kernel.flops,
      bytes: kernel.bytes,
      times,
      pipeline: index,
      place: place < 0 ? undefined : place,
      schedule: loop.header[0] ?? '',
      get source() {
        return source();
      },
    };
  });
  const compiled = {
    program,
    kernels: summaries,
    live: memory.live,
    ...(fitted && { fitting: fitted.fitting }),
  };
  if (options.inspect !== true) return compiled;
  const inside = { graph, schedule, placed, scalars: scalars as readonly Node[], memory };
  return { ...compiled, inside: { ...inside, loops: described.map(({ lowered: { loop } }) => loop) } };
}

/** The graph with so much computed again that a run takes no more bytes. */
function fit(whole: Graph, target: Target, options: CompileOptions, bytes: number): FittedGraph {
  const { fitMemory, plannedOf } = budgeting.value;
  return fitMemory(whole, bytes, (graph) => {
    const { inputs, slots } = runInputs(graph, options.scalars);
    const offered = pairDonations(offeredIn(graph, options.donate ?? new Map()));
    const { schedule, memory } = lowerGraph(graph, target, slots, offered, options.schedules);
    return plannedOf(graph, inputs, schedule, memory, storedBytes);
  });
}

/**
 * The schedule of a graph, with small kernels put together once it is known what shape they take.
 * `loops` keeps what was lowered to know that.
 */
export function scheduleKernels(
  graph: Graph,
  target: Target,
  slots: ReadonlyMap<Node, number>,
  donations: ReadonlyMap<Node, Node>,
  loops: LoopCache = new Map(),
  mayPack = true,
): KernelSchedule {
  const schedule = scheduleGraph(graph, target, slots, donations, mayPack);
  if (schedule.kernels.length < 2) return schedule;
  const { packs } = schedule;
  const batched = batchDispatches(schedule.kernels, packs, target, (kernel) =>
    groupShape(lowerKernel(kernel, target, unsharedMemory, loops).loop),
  );
  if (batched === undefined) return schedule;
  return { ...schedule, kernels: nameKernels(orderKernels(batched, donations, packs), packs) };
}

/**
 * Kernels with their memory. Results that are written over what they were donated for save a
 * binding: those are counted on.
 */
export function lowerGraph(
  graph: Graph,
  target: Target,
  slots: ReadonlyMap<Node, number>,
  donations: ReadonlyMap<Node, Node>,
  pinned?: PinnedTilings,
  observe?: Observer,
  within: Within = { prefix: '', mayPack: true, check: false },
): { schedule: KernelSchedule; memory: MemoryPlan; lowered: readonly Lowered[]; loops: LoopCache } {
  const outputs = new Set(graph.outputs);
  const { bufferBytes: largestArena, storageBuffers } = target.limits;
  const known: LoopCache = new Map();
  return fixpoint('donations', donations, (offered) => {
    const made = scheduleKernels(graph, target, slots, offered, known, within.mayPack);
    const kernels = made.kernels.map((kernel) => withPrefix(kernel, within.prefix));
    const schedule = { ...made, kernels };
    const { packs } = schedule;
    observe?.({ kind: 'schedule', graph, schedule });
    const turns = new Map<Kernel, LoopTrips>();
    for (const kernel of kernels) {
      const made = turnsOf(kernel, target, pinned, within.check);
      if (made !== undefined) turns.set(kernel, made);
    }
    const loopNeeds = new Map(
      Array.from(turns, ([kernel, { held, memory: own }]) => [kernel, { held, arenas: own.arenas }] as const),
    );
    const demand = {
      outputs,
      donations: offered,
      bytesOf: storedBytes,
      largestArena,
      loops: loopNeeds,
    };
    const memory = planMemory(kernels, packs, demand);
    const loops: LoopCache = new Map();
    const lowered = kernels.map((kernel, place): Lowered => {
      const looped = turns.get(kernel);
      if (looped !== undefined) return { kernel, turns: looped };
      if (kernel.body.kind === 'collective') return { kernel, ...kernel.body };
      const moved = withMovedBytes(kernel, memory.overwrites);
      const made = lowerKernel(moved, target, memory, loops, pinned, known);
      observe?.({ kind: 'loop', place, count: kernels.length, kernel, loop: made.loop });
      return made;
    });
    for (const loop of loops.values()) verifyRanges(loop);
    const taken = new Map([...offered].filter(([result]) => memory.overwrites.has(result)));
    const fits = lowered.every((one) => !('bound' in one) || one.bound.length <= storageBuffers);
    if (fits || taken.size === offered.size) return { settled: { schedule, memory, lowered, loops } };
    return { revised: taken };
  });
}

/** What a graph is lowered for: names begin with `prefix`, and iterations of loops have no packs. */
interface Within {
  readonly prefix: string;
  readonly mayPack: boolean;
  readonly check: boolean;
}

/** The iterations of a loop, by the same pipeline. */
function turnsOf(
  kernel: Kernel,
  target: Target,
  pinned: PinnedTilings | undefined,
  check: boolean,
): LoopTrips | undefined {
  if (kernel.body.kind !== 'iterate') return undefined;
  return programLoops.value.lowerTurns(kernel.body, (recorded, pairs) => {
    const graph = optimise(recorded, target, check);
    const within = { prefix: `${kernel.name}_`, mayPack: false, check };
    const offered = offeredIn(graph, pairs);
    const { memory, lowered, schedule, loops } = lowerGraph(
      graph,
      target,
      new Map(),
      offered,
      pinned,
      undefined,
      within,
    );
    if (check) {
      for (const turned of schedule.kernels) verifiers.value.verifyKernel(turned);
      for (const loop of loops.values()) verifiers.value.verifyLoop(loop, target.limits);
    }
    return { graph, memory, lowered };
  });
}
