// The autotuner: the kernels of a graph that have a choice of schedules are measured on the device,
// a few candidates each, and the best is kept under a key (key.ts) in a store (store.ts). Schedules
// that were pinned come first and are not measured.

import { assemble } from '../codegen/lower/assemble.ts';
import { lowerKernel } from '../codegen/lower/kernel.ts';
import { contractProblem, type ContractProblem } from '../codegen/template/contract/problem.ts';
import { candidateTilings, isLegal } from '../codegen/template/contract/choose.ts';
import type { ContractTiling, PinnedTilings } from '../codegen/template/contract/strategies.ts';
import { emitterOf } from '../codegen/emit/emit.ts';
import { compileGraph } from '../compile/chunks/compiler.ts';
import '../compile/chunks/products.ts';
import type { CompileOptions } from '../compile/compile.ts';
import type { Graph } from '../ir/graph.ts';
import type { Device, DeviceFacts } from '../runtime/device.ts';
import type { Program, ProgramScalar } from '../runtime/program.ts';
import type { Kernel } from '../schedule/kernel.ts';
import { unsharedMemory } from '../schedule/memory/plan.ts';
import { targetOf, type Target } from '../schedule/target.ts';
import type { Book } from './book.ts';
import { scheduleKey } from './key.ts';
import { measurePrograms } from './measure.ts';
import { storeAt } from './store.ts';

export interface TuneOptions {
  /**
   * Where measurements are kept: a file's path in Node, a database's name in a page, false for this
   * process only. By default `schedules.json` in the cache folder, and the database `sinter`.
   */
  readonly store?: string | false;
}

/** How measuring goes. */
export interface Measuring {
  /** The target of the kernels, if it is not the device's own. */
  readonly target?: Target;
  /** Called with the number of kernels measured, and of all. */
  readonly onProgress?: (done: number, total: number) => void;
}

/**
 * Schedules for the graph's kernels on the device: pinned ones, and with `tune` those measured now
 * or before.
 */
export async function schedulesFor(
  graph: Graph,
  device: Device,
  options: CompileOptions,
  pinned: Book = new Map(),
  tune?: TuneOptions,
  { target = targetOf(device.facts), onProgress }: Measuring = {},
): Promise<PinnedTilings> {
  const { facts } = device;
  if (tune === undefined || facts.target === 'interpreter') return lookUp([pinned], facts);
  const store = await storeAt(tune.store);
  await store.load();
  const found = new Map<string, ContractTiling>();
  const choices = choicesIn(graph, target, options);
  for (const [i, choice] of choices.entries()) {
    onProgress?.(i, choices.length);
    const key = scheduleKey(choice.problem, facts);
    const known = pinned.get(key) ?? store.book.get(key) ?? found.get(key);
    if (known !== undefined && isLegal(known, choice.problem, target)) continue;
    // Earlier failures must not be taken for a candidate's: they are reported where this call's
    // results are read.
    if (found.size === 0) await device.finish();
    const best = await bestOf(choice, device, target);
    if (best !== undefined) found.set(key, best);
  }
  await store.add(found);
  return lookUp([pinned, store.book], facts);
}

/** Looks schedules up by key, in the first book that has one. */
export function lookUp(books: readonly Book[], facts: DeviceFacts): PinnedTilings {
  return (problem) => {
    const key = scheduleKey(problem, facts);
    return books.find((book) => book.has(key))?.get(key);
  };
}

/** A kernel with more than one legal schedule. */
interface Choice {
  readonly problem: ContractProblem;
  readonly kernel: Kernel;
  readonly scalars: readonly ProgramScalar[];
}

function choicesIn(graph: Graph, target: Target, options: CompileOptions): readonly Choice[] {
  const { inside, program } = compileGraph(graph, target, { ...options, inspect: true, title: () => 'tune' });
  const choices = new Map<string, Choice>();
  for (const kernel of inside?.schedule.kernels ?? []) {
    if (kernel.body.kind !== 'contract') continue;
    const problem = contractProblem(kernel, kernel.body);
    const key = JSON.stringify(problem);
    if (!choices.has(key)) choices.set(key, { problem, kernel, scalars: program.scalars });
  }
  return [...choices.values()];
}

async function bestOf(choice: Choice, device: Device, target: Target): Promise<ContractTiling | undefined> {
  const candidates = candidateTilings(choice.problem, target);
  if (candidates.length < 2) return candidates[0];
  const times = await measurePrograms(
    device,
    candidates.map((schedule) => programOf(choice, schedule, target)),
  );
  const best = fastest(times);
  return best === undefined ? undefined : candidates[best];
}

/** Times within this factor of each other are the machine's noise. */
const noise = 1.05;

/**
 * Which time to take: the first, which is the model's choice, unless another is clearly less;
 * undefined where nothing ran.
 */
export function fastest(times: readonly number[]): number | undefined {
  const shortest = Math.min(...times);
  if (shortest === Infinity) return undefined;
  return times[0]! <= noise * shortest ? 0 : times.indexOf(shortest);
}

/** A program of this kernel alone, under this schedule. */
function programOf({ kernel, scalars }: Choice, schedule: ContractTiling, target: Target): Program {
  const lowered = lowerKernel(kernel, target, unsharedMemory, new Map(), () => schedule);
  const emit = emitterOf(target.id);
  return assemble({
    target: target.id,
    inputs: kernel.reads,
    outputs: kernel.writes.map(({ node }) => node),
    scalars,
    kernels: [lowered],
    packs: new Map(),
    memory: unsharedMemory,
    emit: (loop) => emit(loop, { scalarSlots: scalars.length, relaxedSimd: target.relaxedSimd === true }),
  }).program;
}
