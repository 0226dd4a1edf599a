// Traces a function for a bundle: which of its arguments callers give, which are weights, which
// tensors a call changes, and what it returns. Weights are the tensors of the state tree, and
// whatever else the function captures.

import { SinterError } from '../errors.ts';
import { dtypeKind } from '../ir/dtype.ts';
import type { Graph } from '../ir/graph.ts';
import { storedType } from '../ir/stored.ts';
import type {
  CheckPort,
  EntryInput,
  Formula,
  ScalarSource,
  BundleTensorType,
} from '../bundle-runtime/manifest.ts';
import { Tensor } from '../tensor/tensor.ts';
import {
  traceFlat,
  withAllParameters,
  type Check,
  type Source,
  type Traced,
  type ScalarOrigin,
} from '../tensor/tracing.ts';
import { valueOf, type Value } from '../tensor/values.ts';
import { unchecked } from '../tensor/debug.ts';
import { flatten, step, type Flat } from '../tensor/tree.ts';
import { argumentNames, outputName, placesOf, twin } from './names.ts';
import type { WeightTable } from './weights.ts';

/**
 * A function of a bundle: with a state, `(state, ...inputs) => { state, ...outputs }`; the state
 * may be left out of the result.
 */
export interface EntryPoint {
  readonly name: string;
  readonly fn: (...args: never[]) => unknown;
  /**
   * Examples of what it is called with, without the state: their dtypes and shapes are what callers
   * must give.
   */
  readonly inputs: readonly unknown[];
  /** Whether its programs check labels and indices; they do by default. */
  readonly checks?: boolean;
}

/** A function as it was recorded, before it is known which tensors are which weights. */
export interface Recording {
  readonly point: EntryPoint;
  readonly flat: Flat;
  /** With parameters for what is read alone, and for what is handed through too. */
  readonly partial: Traced;
  readonly traced: Traced;
  readonly hasState: boolean;
}

/** A recorded entry, from which its programs are compiled. */
export interface TracedEntry {
  readonly inputs: readonly EntryInput[];
  /** The examples of the inputs. */
  readonly examples: readonly (Tensor | number)[];
  readonly outputs: readonly NamedTensor[];
  readonly wiring: Wiring;
  readonly graph: Graph;
  /** Which outputs of the recording the graph's are. */
  readonly kept: readonly number[];
  readonly scalars: ReadonlySet<number>;
  /** Parameters that outputs may take the place of. */
  readonly donate: ReadonlyMap<number, number>;
}

/** The roles of the graph's parameters and outputs in the entry. */
export interface Wiring {
  /** What the graph's parameters are that are no run-time scalars, in order. */
  readonly wires: readonly Wire[];
  /** What the run-time scalars are. */
  readonly sources: readonly ScalarSource[];
  /** Where the entry's outputs are, in their order. */
  readonly results: readonly EntryResult[];
  /** Weights that have a new value after a call. */
  readonly updates: readonly { readonly weight: number; readonly from: EntryResult }[];
  /** Groups of random words that a call draws. */
  readonly draws: Formula;
  /** Labels and indices that a call checks. */
  readonly checks: readonly Checking[];
}

/** A check of a program, and where it finds the outmost integer. */
export type Checking = Omit<CheckPort, 'buffer'> & { readonly from: EntryResult };

/** An output of the graph, or one of its parameters handed through. */
export type EntryResult = { readonly output: number } | { readonly input: number };

/** An argument, by its place among the entry's inputs, or a weight. */
export type Wire = { readonly argument: number } | { readonly weight: number };

type NamedTensor = BundleTensorType & { readonly name: string };

/**
 * Traces an entry. `state`: the tree that all entries share, if there is one. Throws E_UNSUPPORTED
 * at what no bundle can do.
 */
export function traceEntry(point: EntryPoint, state: unknown, weights: WeightTable): TracedEntry {
  return wiredEntry(recordEntry(point, state), weights);
}

export function recordEntry(point: EntryPoint, state: unknown): Recording {
  const hasState = state !== undefined;
  const { fn, inputs: examples } = point;
  const flat = flatten(hasState ? [state, ...examples] : examples, 'build');
  const trace = (): Traced => traceFlat(fn, flat, 'build', false, undefined, true);
  const partial = point.checks === false ? unchecked(trace) : trace();
  return { point, flat, partial, traced: withAllParameters(partial, flat.leaves), hasState };
}

/** What a recording takes and gives, with its weights in a table. */
export function wiredEntry({ point, flat, traced, hasState }: Recording, weights: WeightTable): TracedEntry {
  const names = argumentNames(point.fn, flat, hasState);
  const isOfState = (leaf: number): boolean => hasState && flat.paths[leaf]!.startsWith('[0]');

  // What callers give, in the order of the leaves.
  const inputs: EntryInput[] = [];
  const examples: (Tensor | number)[] = [];
  const placeOfLeaf = new Map<number, number>();
  flat.leaves.forEach((leaf, i) => {
    if (isOfState(i)) return;
    const name = names[i]!;
    if (leaf instanceof Tensor || typeof leaf === 'number') examples.push(leaf);
    if (leaf instanceof Tensor)
      placeOfLeaf.set(i, inputs.push({ name, kind: 'tensor', ...typeOf(leaf) }) - 1);
    else if (typeof leaf === 'number') placeOfLeaf.set(i, inputs.push({ name, kind: 'number' }) - 1);
  });
  expectDistinctNames(point, 'takes', inputs);
  const weightOf = (value: Value, leaf: number | undefined): number =>
    leaf === undefined
      ? weights.captured(value)
      : weights.ofState(flat.paths[leaf]!.slice('[0]'.length), value);
  const wires = traced.inputs.map(({ origin, part }): Wire => {
    if (part === 'grad') throw unsupported(point, 'reads gradients that were there before the call');
    if (origin.kind === 'captured') return { weight: weightOf(origin.handle, undefined) };
    if (!isOfState(origin.leaf)) return { argument: placeOfLeaf.get(origin.leaf)! };
    return { weight: weightOf(valueOf(flat.leaves[origin.leaf] as Tensor), origin.leaf) };
  });
  const { outputs, updates } = results({ point, traced, wires, flat, hasState }, weights);
  expectDistinctNames(point, 'returns', outputs);
  const checks = traced.checks.map(checkingOf);
  const kept = [
    ...new Set(
      [...outputs, ...updates, ...checks].flatMap(({ from }) => ('output' in from ? [from.output] : [])),
    ),
  ];
  const renumbered = new Map(kept.map((output, i) => [output, i]));
  const asKept = (from: EntryResult): EntryResult =>
    'output' in from ? { output: renumbered.get(from.output)! } : from;
  const tensors = traced.graph.parameters.filter((_, i) => !traced.scalarIndices.has(i));
  const wiring: Wiring = {
    wires,
    sources: traced.scalars.map((origin) => scalarSource(origin, flat, placeOfLeaf)),
    results: outputs.map(({ from }) => asKept(from)),
    updates: updates.map(({ weight, from }) => ({ weight, from: asKept(from) })),
    draws: Number(traced.counts),
    checks: checks.map((check) => ({ ...check, from: asKept(check.from) })),
  };
  // A parameter that is returned unchanged must not be donated.
  const passed = new Set(
    [...wiring.results, ...wiring.updates.map(({ from }) => from)].flatMap((from) =>
      'input' in from ? [from.input] : [],
    ),
  );
  const donate = new Map<number, number>();
  for (const { weight, from } of wiring.updates) {
    if (!('output' in from)) continue;
    const input = wiring.wires.findIndex((wire) => 'weight' in wire && wire.weight === weight);
    if (input >= 0 && !passed.has(input)) donate.set(tensors[input]!.attrs.index, from.output);
  }
  const graph = { parameters: traced.graph.parameters, outputs: kept.map((i) => traced.graph.outputs[i]!) };
  return {
    inputs,
    examples,
    outputs: outputs.map(({ name, dtype, shape }) => ({ name, dtype, shape })),
    wiring,
    graph,
    kept,
    scalars: traced.scalarIndices,
    donate,
  };
}

interface Recorded extends Omit<Recording, 'partial'> {
  readonly wires: readonly Wire[];
}

interface Results {
  readonly outputs: readonly (NamedTensor & { readonly from: EntryResult })[];
  readonly updates: Wiring['updates'];
}

function from(source: Source): EntryResult {
  return source.kind === 'output' ? { output: source.index } : { input: source.index };
}

function checkingOf({ range, dtype, source }: Check): Checking {
  const signed = dtypeKind(dtype) === 'int';
  const { op, what, start, end, where } = range;
  // Nothing is below 0 where there are no signs.
  const first = signed ? start : Math.max(start, 0);
  return { what: `${op}: ${what}`, where, first, end, signed, from: from(source) };
}

/** The function's outputs: results for callers, and new values of weights. */
function results({ point, traced, wires, flat, hasState }: Recorded, weights: WeightTable): Results {
  const outputs: Results['outputs'][number][] = [];
  const updates: Wiring['updates'][number][] = [];
  const update = (weight: number, source: Source): void => {
    const wire = source.kind === 'input' ? wires[source.index] : undefined;
    if (wire !== undefined && 'weight' in wire && wire.weight === weight) return;
    weights.change(weight);
    updates.push({ weight, from: from(source) });
  };
  const statePaths = new Map(
    flat.paths.flatMap((path, leaf) =>
      hasState && path.startsWith('[0]') ? [[path.slice('[0]'.length), leaf]] : [],
    ),
  );
  const stateReturned: string[] = [];
  placesOf(traced.structure).forEach((place, i) => {
    const leaf = traced.results[i]!;
    if (hasState && place[0] === 'state') {
      const own = place.slice(1).map(step).join('');
      stateReturned.push(own);
      const at = statePaths.get(own);
      const before = at === undefined ? undefined : flat.leaves[at];
      if (leaf.kind === 'static' && !(before instanceof Tensor)) return;
      if (leaf.kind === 'static' || !(before instanceof Tensor))
        throw unsupported(
          point,
          `returns a state with ${own}, which is not a tensor of the state that it takes`,
        );
      update(weights.ofState(own, valueOf(before)), leaf);
      return;
    }
    if (leaf.kind === 'static')
      throw unsupported(point, `returns ${String(leaf.value)}, which is not a tensor`);
    const name = outputName(place);
    const node =
      leaf.kind === 'output'
        ? traced.graph.outputs[leaf.index]!
        : traced.graph.parameters.filter((_, k) => !traced.scalarIndices.has(k))[leaf.index]!;
    outputs.push({ name, ...storedType(node), from: from(leaf) });
  });
  if (stateReturned.length > 0) {
    const lost = [...statePaths.keys()].find((path) => !stateReturned.includes(path));
    if (lost !== undefined) throw unsupported(point, `returns a state without ${lost}`);
  }
  for (const { origin, part, source } of traced.effects) {
    if (part === 'grad' || source === undefined) continue;
    if (origin.kind === 'argument')
      throw unsupported(point, `assigns to its argument ${flat.paths[origin.leaf]}`);
    update(weights.captured(origin.handle), source);
  }
  return { outputs, updates };
}

function scalarSource(
  origin: ScalarOrigin,
  flat: Flat,
  placeOfLeaf: ReadonlyMap<number, number>,
): ScalarSource {
  switch (origin.kind) {
    case 'number': {
      const argument = placeOfLeaf.get(origin.leaf);
      return argument === undefined ? { word: wordOf(flat.leaves[origin.leaf] as number) } : { argument };
    }
    case 'seed':
      return { seed: origin.high ? 1 : 0 };
    case 'counter':
      return { counter: origin.high ? 1 : 0, offset: Number(origin.offset) };
    default:
      return origin satisfies never;
  }
}

/** The bits of an f32. */
function wordOf(value: number): number {
  return new Int32Array(Float32Array.of(value).buffer)[0]!;
}

function typeOf(tensor: Tensor): BundleTensorType {
  return storedType(tensor);
}

/** Throws E_UNSUPPORTED where two inputs, or two outputs, would go by one name. */
function expectDistinctNames(
  point: EntryPoint,
  verb: string,
  ports: readonly { readonly name: string }[],
): void {
  const name = twin(ports.map((port) => port.name));
  if (name === undefined) return;
  const problem = `${verb} two values called ${JSON.stringify(name)}`;
  throw new SinterError(
    'E_UNSUPPORTED',
    `build: ${point.name} ${problem}: calls tell them apart by name\n  try: another key for one of them`,
  );
}

function unsupported({ name }: EntryPoint, problem: string): SinterError {
  return new SinterError('E_UNSUPPORTED', `build: ${name} ${problem}: a bundle cannot do that`);
}
