// compile: a function traced once per signature of its arguments and then run as one Program. Tensors it captures are inputs,
// read anew at each call; what it assigns to them is handed back. Numbers among the arguments and random draws are run-time
// scalars. A call gives tensors at once; only reading their data waits.

import { showValue, TensorError } from '../errors.ts';
import { showShape } from '../ir/shape.ts';
import { Executable } from './executable.ts';
import { execute } from './execute.ts';
import { currentSeed, split, takeCounts } from './generator.ts';
import type { Handle } from './handle.ts';
import { readByPending, reclaimSoon } from './memory.ts';
import { flushAll, realise } from './realise.ts';
import { expectFunction } from './expect.ts';
import { asTensor } from './record.ts';
import { currentTrace, gradEnabled, here, leafHandle } from './recording.ts';
import { takeValue } from './assign.ts';
import { Storage } from './storage.ts';
import { handleOf, Tensor } from './tensor.ts';
import type { Origin, ScalarOrigin } from './trace.ts';
import { traceFlat, type Input, type Source, type Traced } from './trace-function.ts';
import { flatten, showStructure, unflatten, type Flat } from './tree.ts';

export interface CompileFunctionOptions {
  /** Arguments whose tensors are given up by a call, so that results may take their memory; using them later is an error. */
  readonly donate?: readonly number[];
}

interface Specialisation {
  readonly traced: Traced;
  readonly executable: Executable;
}

/**
 * A function that runs `fn` as compiled programs: one per structure, dtypes and shapes of the arguments (trees of tensors;
 * numbers arrive in `fn` as rank-0 f32 tensors and may change freely, strings and booleans are static). Inside another
 * traced function, or where results carry gradients, `fn` itself is called.
 */
export function compile<A extends unknown[], R>(
  fn: (...args: A) => R,
  options: CompileFunctionOptions = {},
): (...args: A) => R {
  expectFunction('compile', fn);
  const donate = donated(options);
  const known = new Map<string, Specialisation[]>();
  const callable = fn as unknown as (...args: never[]) => unknown;
  return (...args) => {
    for (const index of donate) {
      if (!(index in args))
        throw new TensorError('E_VALUE', 'compile', `there is no argument ${index} to donate`);
    }
    const flat = flatten(args, 'compile');
    const handles = flat.leaves.map((leaf) =>
      leaf instanceof Tensor ? here(handleOf(leaf), 'compile') : undefined,
    );
    if (currentTrace() !== undefined) return inlined(callable, flat) as R;
    const signature = signatureOf(flat, handles);
    const bucket = known.get(signature) ?? [];
    known.set(signature, bucket);
    let found = bucket.find(({ traced }) => holds(traced, handles));
    if (found === undefined) {
      const traced = traceFlat(callable, flat);
      found = { traced, executable: new Executable(traced.graph, optionsOf(traced, flat, donate)) };
      bucket.push(found);
    }
    // A donated argument cannot be part of a history; elsewhere gradients reach through the call.
    if (found.traced.tracked && donate.size === 0 && gradEnabled()) return inlined(callable, flat) as R;
    return call(found, flat, handles, donate) as R;
  };
}

function donated({ donate = [] }: CompileFunctionOptions): Set<number> {
  if (!Array.isArray(donate) || !donate.every((index) => Number.isSafeInteger(index) && index >= 0)) {
    const problem = `donate must list places of arguments, got ${showValue(donate)}`;
    throw new TensorError('E_VALUE', 'compile', problem, 'donate: [0] for the first argument');
  }
  return new Set(donate);
}

/** Calls the function itself, numbers as tensors as they would be when traced. */
function inlined(fn: (...args: never[]) => unknown, flat: Flat): unknown {
  const leaves = flat.leaves.map((leaf) => (typeof leaf === 'number' ? asTensor(leaf, 'f32') : leaf));
  return fn(...(unflatten(flat.structure, leaves) as never[]));
}

function signatureOf(flat: Flat, handles: readonly (Handle | undefined)[]): string {
  const leaves = flat.leaves.map((leaf, i) => {
    const handle = handles[i];
    if (handle !== undefined) {
      const grads = handle.leaf ? ' leaf' : handle.requiresGrad ? ' tracked' : '';
      return `${showShape(handle.shape, handle.dtype)}${handle.weak ? ' weak' : ''}${grads}`;
    }
    if (typeof leaf === 'number') return 'number';
    if (typeof leaf === 'function' || typeof leaf === 'symbol') {
      throw new TensorError('E_VALUE', 'compile', `a ${typeof leaf} cannot be an argument${flat.paths[i]}`);
    }
    return `${typeof leaf} ${JSON.stringify(String(leaf))}`;
  });
  return `${gradEnabled() ? 'grad' : 'no grad'} ${showStructure(flat.structure)} ${leaves.join(';')}`;
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
  flat: Flat,
  donate: ReadonlySet<number>,
): { scalars: ReadonlySet<number>; donate: ReadonlyMap<number, number> } {
  const pairs = new Map<number, number>();
  const taken = new Set<number>();
  const { parameters, outputs } = traced.graph;
  const tensors = parameters.filter((_, i) => !traced.scalarIndices.has(i));
  tensors.forEach((parameter, i) => {
    const { origin, part } = traced.inputs[i]!;
    if (origin.kind !== 'argument' || part !== 'value' || !isDonated(flat, origin.leaf, donate)) return;
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
  { traced, executable }: Specialisation,
  flat: Flat,
  handles: readonly (Handle | undefined)[],
  donate: ReadonlySet<number>,
): unknown {
  const inputs = traced.inputs.map((input) => inputStorage(input, handles));
  const given = new Set<Handle>();
  handles.forEach((handle, leaf) => {
    if (handle !== undefined && isDonated(flat, leaf, donate)) given.add(handle);
  });
  const givenUp = new Set([...given].map(realise));
  // What was recorded from a donated value before the call still gets the old value.
  if (givenUp.size > 0 && [...readByPending()].some((storage) => givenUp.has(storage))) flushAll();
  for (const handle of given) {
    handle.storage!.unshare();
    handle.storage = undefined;
  }

  const outputs = traced.graph.outputs.map(({ dtype, shape }) =>
    Storage.promised(dtype, shape as readonly number[]),
  );
  const counter = takeCounts(traced.counts);
  const scalars = traced.scalars.map((origin) => scalarValue(origin, flat, counter));
  const valueOf = (source: Source): Storage =>
    source.kind === 'output' ? outputs[source.index]! : inputs[source.index]!;
  const leaves = traced.results.map((leaf) =>
    leaf.kind === 'static' ? leaf.value : new Tensor(leafHandle(valueOf(leaf))),
  );
  for (const { origin, part, source } of traced.effects) {
    const handle = outside(origin, handles);
    if (part === 'grad') handle.grad = source === undefined ? undefined : leafHandle(valueOf(source));
    else if (source !== undefined) takeValue(handle, valueOf(source));
  }
  // One that the function assigned to has its new value.
  for (const handle of given) if (handle.storage === undefined) handle.gone = 'donated';
  // Run last, when all that stands on an input is known: the run may write over donated values that nothing stands on.
  const count = traced.graph.parameters.length - traced.scalarIndices.size;
  if (outputs.length > 0) execute({ executable, inputs: inputs.slice(0, count), outputs, scalars });
  for (const storage of givenUp) if (storage.owners <= 0) storage.lose('donated');
  reclaimSoon();
  return unflatten(traced.structure, leaves);
}

function inputStorage({ origin, part }: Input, handles: readonly (Handle | undefined)[]): Storage {
  const handle = outside(origin, handles);
  return realise(part === 'value' ? handle : handle.grad!);
}

function scalarValue(origin: ScalarOrigin, flat: Flat, counter: bigint): number {
  switch (origin.kind) {
    case 'number':
      return flat.leaves[origin.leaf] as number;
    case 'seed':
      return split(currentSeed())[origin.high ? 1 : 0];
    case 'counter':
      return split(BigInt.asUintN(64, counter + origin.offset))[origin.high ? 1 : 0];
    default:
      return origin satisfies never;
  }
}
