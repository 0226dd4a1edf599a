// compile: a function traced once per signature of its arguments and then run as one Program. Tensors it captures are inputs,
// read anew at each call; what it assigns to them is handed back. Numbers among the arguments and random draws are run-time
// scalars. A call gives tensors at once; only reading their data waits.

import { showValue, TensorError } from '../errors.ts';
import { showShape } from '../ir/shape.ts';
import { readBook, type Schedules } from '../tune/book.ts';
import { schedulesFor, type TuneOptions } from '../tune/tune.ts';
import { faceOf, handlesOf, leavesLike, type Face } from './argument.ts';
import { Executable, type FindSchedules } from './executable.ts';
import { execute } from './execute.ts';
import { currentSeed, split, takeCounts } from './generator.ts';
import type { Handle } from './handle.ts';
import { readByPending, reclaimSoon } from './memory.ts';
import { flushAll, realise } from './realise.ts';
import { expectFunction, expectSynchronous } from './expect.ts';
import { asTensor } from './record.ts';
import { currentTrace, gradEnabled, here, leafHandle } from './recording.ts';
import { takeValue } from './assign.ts';
import { Storage } from './storage.ts';
import { Tensor } from './tensor.ts';
import type { Origin, ScalarOrigin } from './trace.ts';
import type { CalledWith, Traceable } from './traceable.ts';
import { traceFlat, type Input, type Source, type Traced } from './trace-function.ts';
import { flatten, unflatten, type Flat } from './tree.ts';

export interface CompileFunctionOptions {
  /** Arguments whose tensors are given up by a call, so that results may take their memory; using them later is an error. */
  readonly donate?: readonly number[];
  /** Measures a few ways to run each kernel that has a choice, once for a kind of kernel, its sizes and the device, and keeps
   *  the best: see `TuneOptions`. The first call then waits in the background. */
  readonly tune?: boolean | TuneOptions;
  /** Choices to use instead, as `measuredSchedules` gave them. They hold for the device they were measured on. */
  readonly schedules?: Schedules;
}

/** A trace that holds for arguments like those it was made for. */
interface Specialisation {
  readonly fn: (...args: never[]) => unknown;
  readonly face: Face;
  readonly gradEnabled: boolean;
  readonly traced: Traced;
  readonly executable: Executable;
  /** Leaves of the arguments that are donated. */
  readonly donated: readonly number[];
  /** Gradients reach through a call, so the function itself is called; not with a donation: that can be in no history. */
  readonly isInlined: boolean;
}

/**
 * A function that runs `fn` as compiled programs: one per structure, dtypes and shapes of the arguments (trees of tensors;
 * numbers arrive in `fn` as rank-0 f32 tensors and may change freely; strings and booleans are static). Inside another
 * traced function, or where results carry gradients, `fn` itself is called.
 */
export function compile<A extends unknown[], R>(
  fn: Traceable<A, R>,
  options: CompileFunctionOptions = {},
): (...args: Extract<CalledWith<A>, unknown[]>) => R {
  expectFunction('compile', fn);
  const donate = donated(options);
  const find = findSchedules(options);
  /** The most recently used first. */
  const known: Specialisation[] = [];
  const callable = fn as unknown as (...args: never[]) => unknown;
  return (...args) => {
    for (const index of donate) {
      if (!(index in args))
        throw new TensorError('E_VALUE', 'compile', `there is no argument ${index} to donate`);
    }
    const isTraced = currentTrace() !== undefined;
    const recalled = isTraced ? undefined : recall(known, args);
    if (recalled !== undefined) return call(...recalled) as R;
    const flat = flatten(args, 'compile');
    const handles = handlesOf(flat.leaves);
    if (isTraced) return inlined(callable, flat) as R;
    const made = specialise(callable, flat, handles, donate, find);
    known.unshift(made);
    return call(made, flat.leaves, handles) as R;
  };
}

/** The specialisation for these arguments, with their leaves, if there is one; it becomes the most recently used. */
function recall(known: Specialisation[], args: readonly unknown[]): Parameters<typeof call> | undefined {
  for (let i = 0; i < known.length; i++) {
    const found = known[i]!;
    const leaves = found.gradEnabled === gradEnabled() ? leavesLike(found.face, args) : undefined;
    if (leaves === undefined) continue;
    const handles = handlesOf(leaves);
    if (!holds(found.traced, handles)) continue;
    if (i > 0) known.unshift(...known.splice(i, 1));
    return [found, leaves, handles];
  }
  return undefined;
}

function specialise(
  fn: (...args: never[]) => unknown,
  flat: Flat,
  handles: readonly (Handle | undefined)[],
  donate: ReadonlySet<number>,
  find: FindSchedules | undefined,
): Specialisation {
  const face = faceOf(flat, handles);
  const traced = traceFlat(fn, flat);
  const donated = flat.leaves.flatMap((_, leaf) => (isDonated(flat, leaf, donate) ? [leaf] : []));
  const executable = new Executable(traced.graph, optionsOf(traced, new Set(donated)), find);
  const isInlined = traced.tracked && donate.size === 0 && gradEnabled();
  return { fn, face, gradEnabled: gradEnabled(), traced, executable, donated, isInlined };
}

function donated({ donate = [] }: CompileFunctionOptions): Set<number> {
  if (!Array.isArray(donate) || !donate.every((index) => Number.isSafeInteger(index) && index >= 0)) {
    const problem = `donate must list places of arguments, got ${showValue(donate)}`;
    throw new TensorError('E_VALUE', 'compile', problem, 'donate: [0] for the first argument');
  }
  return new Set(donate);
}

function findSchedules({ tune = false, schedules }: CompileFunctionOptions): FindSchedules | undefined {
  const isOptions = typeof tune === 'object' && tune !== null;
  const store = isOptions ? tune.store : undefined;
  if (
    !(isOptions || typeof tune === 'boolean') ||
    !(store === undefined || store === false || typeof store === 'string')
  ) {
    const problem = `tune must be a boolean or { store }, a path or false, got ${showValue(isOptions ? store : tune)}`;
    throw new TensorError('E_VALUE', 'compile', problem, 'tune: true');
  }
  const book = schedules === undefined ? undefined : readBook('compile: schedules', schedules);
  if (tune === false && book === undefined) return undefined;
  const measured = tune === false ? undefined : tune === true ? {} : tune;
  return (graph, device, options) => schedulesFor(graph, device, options, book, measured);
}

/** Calls the function itself, numbers as tensors as they would be when traced. */
function inlined(fn: (...args: never[]) => unknown, flat: Pick<Flat, 'structure' | 'leaves'>): unknown {
  const leaves = flat.leaves.map((leaf) => (typeof leaf === 'number' ? asTensor(leaf, 'f32') : leaf));
  const result = fn(...(unflatten(flat.structure, leaves) as never[]));
  expectSynchronous('compile', result);
  return result;
}

/** The value from outside that an origin names at this call. */
function outside(origin: Origin, handles: readonly (Handle | undefined)[]): Handle {
  return origin.kind === 'captured' ? here(origin.handle, 'compile') : handles[origin.leaf]!;
}

function holds(traced: Traced, handles: readonly (Handle | undefined)[]): boolean {
  return traced.gradsRead.every(
    ({ origin, hadBefore }) => (outside(origin, handles).grad !== undefined) === hadBefore,
  );
}

/** Whether a leaf of the arguments belongs to a donated one. */
function isDonated(flat: Flat, leaf: number, donate: ReadonlySet<number>): boolean {
  const argument = /^\[(\d+)\]/.exec(flat.paths[leaf]!)?.[1];
  return argument !== undefined && donate.has(Number(argument));
}

/** Pairs each donated input with an output of its type, each used once. */
function optionsOf(
  traced: Traced,
  donated: ReadonlySet<number>,
): { scalars: ReadonlySet<number>; donate: ReadonlyMap<number, number> } {
  const pairs = new Map<number, number>();
  const taken = new Set<number>();
  const { parameters, outputs } = traced.graph;
  const tensors = parameters.filter((_, i) => !traced.scalarIndices.has(i));
  tensors.forEach((parameter, i) => {
    const { origin, part } = traced.inputs[i]!;
    if (origin.kind !== 'argument' || part !== 'value' || !donated.has(origin.leaf)) return;
    // An input that is also handed through keeps its memory.
    if (isHandedThrough(traced, i)) return;
    const type = showShape(parameter.shape, parameter.dtype);
    const output = outputs.findIndex(
      (node, k) => !taken.has(k) && showShape(node.shape, node.dtype) === type && node.op !== 'parameter',
    );
    if (output < 0) return;
    taken.add(output);
    pairs.set(parameter.attrs.index, output);
  });
  return { scalars: traced.scalarIndices, donate: pairs };
}

function isHandedThrough(traced: Traced, input: number): boolean {
  const isInput = (source: { readonly kind: string; readonly index?: number } | undefined): boolean =>
    source?.kind === 'input' && source.index === input;
  return traced.results.some(isInput) || traced.effects.some((effect) => isInput(effect.source));
}

function call(
  { fn, face, traced, executable, donated, isInlined }: Specialisation,
  leaves: readonly unknown[],
  handles: readonly (Handle | undefined)[],
): unknown {
  if (isInlined) return inlined(fn, { structure: face.structure, leaves });
  const inputs = traced.inputs.map((input) => inputStorage(input, handles));
  const given = giveUp(donated, handles);

  const outputs = traced.graph.outputs.map(({ dtype, shape }) =>
    Storage.promised(dtype, shape as readonly number[]),
  );
  const counter = takeCounts(traced.counts);
  const scalars = traced.scalars.map((origin) => scalarValue(origin, leaves, counter));
  const valueOf = (source: Source): Storage =>
    source.kind === 'output' ? outputs[source.index]! : inputs[source.index]!;
  const results = traced.results.map((leaf) =>
    leaf.kind === 'static' ? leaf.value : new Tensor(leafHandle(valueOf(leaf))),
  );
  for (const { origin, part, source } of traced.effects) {
    const handle = outside(origin, handles);
    if (part === 'grad') handle.grad = source === undefined ? undefined : leafHandle(valueOf(source));
    else if (source !== undefined) takeValue(handle, valueOf(source));
  }
  // One that the function assigned to has its new value.
  for (const handle of given.keys()) if (handle.storage === undefined) handle.gone = 'donated';
  // Run last, when all that stands on an input is known: the run may write over donated values that nothing stands on.
  const count = traced.graph.parameters.length - traced.scalarIndices.size;
  if (outputs.length > 0) execute({ executable, inputs: inputs.slice(0, count), outputs, scalars });
  for (const storage of given.values()) if (storage.owners <= 0) storage.lose('donated');
  reclaimSoon();
  return unflatten(traced.structure, results);
}

const nothing: ReadonlyMap<Handle, Storage> = new Map();

/** Takes the values of donated leaves from their handles. */
function giveUp(
  donated: readonly number[],
  handles: readonly (Handle | undefined)[],
): ReadonlyMap<Handle, Storage> {
  if (donated.length === 0) return nothing;
  const given = new Map<Handle, Storage>();
  for (const leaf of donated) {
    const handle = handles[leaf];
    if (handle !== undefined) given.set(handle, realise(handle));
  }
  // What was recorded from a donated value before the call still gets the old value.
  const needed = readByPending();
  if (needed.size > 0 && [...given.values()].some((storage) => needed.has(storage))) flushAll();
  for (const handle of given.keys()) {
    handle.storage!.unshare();
    handle.storage = undefined;
  }
  return given;
}

function inputStorage({ origin, part }: Input, handles: readonly (Handle | undefined)[]): Storage {
  const handle = outside(origin, handles);
  return realise(part === 'value' ? handle : handle.grad!);
}

function scalarValue(origin: ScalarOrigin, leaves: readonly unknown[], counter: bigint): number {
  switch (origin.kind) {
    case 'number':
      return leaves[origin.leaf] as number;
    case 'seed':
      return split(currentSeed())[origin.high ? 1 : 0];
    case 'counter':
      return split(BigInt.asUintN(64, counter + origin.offset))[origin.high ? 1 : 0];
    default:
      return origin satisfies never;
  }
}
