// Runs of models that read elements during the run. The stretches of nodes between two reads are compiled
// once each, for the shapes and the elements that the host knows, and run one after the other. Operators that
// decide how many results there are (NonZero, NonMaxSuppression) run on the host in between, and their
// results are data for the next stretch. So another run with the same number of results needs no new program.

import type { HostArray } from '../ir/value.ts';
import { compile } from '../tensor/compile/compile.ts';
import { fromHost } from '../tensor/record.ts';
import type { Tensor } from '../tensor/tensor.ts';
import { Budget, withBudget, type Limits } from './budget.ts';
import { withDoubles } from './element.ts';
import type { GraphPlan, GraphStep } from './plan.ts';
import { hostOf, read } from './ports/inputs.ts';
import type { GraphScope } from './scope.ts';
import { Value } from './value.ts';
import { runStep } from './walk.ts';

/** Values by name that later nodes read, or that the model gives. */
type Live = ReadonlyMap<string, Value>;

/** A read that no top-level node asks for: such a model is walked. */
export class Unchained extends Error {}

/** Known elements up to which they are part of what a stretch is compiled for, instead of data. */
const mostKnown = 256;
/** Programs of one stretch; beyond, a model is walked. */
const mostPrograms = 16;

/** Where a stretch ends: at the end of the plan, before a node that counts, or at a read. */
interface End {
  readonly at: number;
  readonly wanted: string | undefined;
}

/** Nodes from a place on, compiled. */
interface Stretch {
  readonly key: string;
  /** The elements of values that the program depends on. */
  readonly baked: ReadonlyMap<string, HostArray>;
  readonly results: ReadonlyMap<string, Value>;
  readonly end: End;
  readonly call: (inputs: Record<string, Tensor[]>) => Tensor[];
}

export class Chain {
  readonly #plan: GraphPlan;
  readonly #limits: Limits;
  readonly #scope: (values: Live) => GraphScope;
  /** The stretches that begin at a node, the last used first. */
  readonly #stretches = new Map<string, Stretch[]>();
  /** Names that are read from a node on. */
  readonly #needed: readonly ReadonlySet<string>[];

  constructor(plan: GraphPlan, limits: Limits, scope: (values: Live) => GraphScope) {
    this.#plan = plan;
    this.#limits = limits;
    this.#scope = scope;
    const needed: ReadonlySet<string>[] = [new Set(plan.outputs)];
    for (const step of plan.steps.toReversed()) needed.unshift(new Set([...needed[0]!, ...readsOf(step)]));
    this.#needed = needed;
  }

  /** The results of a run. Rejects with Unchained where it has to be walked. */
  async run(given: Live, hasDoubles: boolean): Promise<Value[]> {
    let live = new Map(given);
    let at = 0;
    for (;;) {
      const stretch = this.#find(at, live, hasDoubles) ?? this.#record(at, live, hasDoubles);
      const tensors = stretch.call(leavesOf(live));
      const next = new Map<string, Value>();
      for (const name of this.#needed[stretch.end.at]!) {
        const result = stretch.results.get(name);
        const value = result === undefined ? live.get(name) : withTensors(result, tensors);
        if (value !== undefined) next.set(name, value);
      }
      live = next;
      at = stretch.end.at;
      if (at === this.#plan.steps.length) {
        const scope = this.#scope(live);
        return this.#plan.outputs.map((name) => scope.get(name)!);
      }
      if (stretch.end.wanted === undefined) {
        await this.#count(this.#plan.steps[at]!, live, hasDoubles);
        at += 1;
      } else if (!(await fetch(stretch.end.wanted, live))) {
        // It is asked for although it is at hand, as bodies of loops do: a chain would not come further.
        throw new Unchained();
      }
    }
  }

  /** Computes a node on the host whose number of results its data decide. */
  async #count(step: GraphStep, live: Map<string, Value>, hasDoubles: boolean): Promise<void> {
    for (const name of new Set(step.inputs)) await fetch(name, live);
    const known = new Map([...live].map(([name, value]) => [name, atHand(value)]));
    const scope = this.#scope(known);
    const budget = new Budget(this.#limits);
    const { done, value: results } = withBudget(budget, () =>
      withDoubles(hasDoubles, () => runStep(step, scope).next()),
    );
    if (done !== true) throw new Unchained();
    step.outputs.forEach((name, i) => {
      const value = results[i];
      if (name === '' || value === undefined) return;
      live.set(name, asData(value));
    });
  }

  #find(at: number, live: Live, hasDoubles: boolean): Stretch | undefined {
    const key = keyOf(live, hasDoubles);
    const kept = this.#stretches.get(String(at)) ?? [];
    const place = kept.findIndex(
      (stretch) =>
        stretch.key === key &&
        [...stretch.baked].every(([name, array]) => isSame(live.get(name)?.host(), array)),
    );
    if (place < 0) return undefined;
    const [found] = kept.splice(place, 1);
    kept.unshift(found!);
    return found;
  }

  /** Compiles the nodes from `at` on, as far as they can be recorded. */
  #record(at: number, live: Live, hasDoubles: boolean): Stretch {
    const kept = this.#stretches.get(String(at)) ?? [];
    if (kept.length >= mostPrograms) throw new Unchained();
    const baked = new Map<string, HostArray>();
    let results: ReadonlyMap<string, Value> = new Map();
    let end: End = { at, wanted: undefined };
    const record = (inputs: Record<string, Tensor[]>): Tensor[] => {
      const own = new Map<string, Value>();
      for (const [name, value] of live) own.set(name, inside(name, value, inputs[name] ?? [], baked));
      return withBudget(new Budget(this.#limits), () =>
        withDoubles(hasDoubles, () => {
          const scope = this.#scope(own);
          end = this.#walk(at, scope);
          const made = new Map<string, Value>();
          for (const name of this.#needed[end.at]!) {
            const value = scope.hasOwn(name) ? scope.get(name) : undefined;
            if (value !== undefined && value !== own.get(name) && !this.#plan.stored.has(name))
              made.set(name, value);
          }
          results = made;
          return [...made.values()].flatMap((value) => (isConstant(value) ? [] : [...value.leaves]));
        }),
      );
    };
    const call = compile(record);
    // Recorded here, so that errors are thrown now, and what the program depends on is known.
    const first = call(leavesOf(live));
    const stretch: Stretch = { key: keyOf(live, hasDoubles), baked, results, end, call };
    this.#stretches.set(String(at), [stretch, ...kept]);
    return { ...stretch, call: () => first };
  }

  /** Records nodes until one counts or wants elements that are not at hand. */
  #walk(from: number, scope: GraphScope): End {
    const { steps } = this.#plan;
    for (let at = from; at < steps.length; at++) {
      const step = steps[at]!;
      const { meaning } = step;
      if (meaning.kind === 'row' && meaning.row.counts === true && !isAllKnown(step, scope))
        return { at, wanted: undefined };
      const { done, value } = runStep(step, scope).next();
      if (done !== true) {
        // What a body or a function wants is known by no name out here.
        if (value.step !== step || !scope.hasOwn(value.name)) throw new Unchained();
        return { at, wanted: value.name };
      }
      step.outputs.forEach((name, i) => {
        const result = value[i];
        if (name !== '' && result !== undefined) scope.set(name, result);
      });
    }
    return { at: steps.length, wanted: undefined };
  }
}

/** The names that a node reads, its sub-graphs included. */
function readsOf({ inputs, meaning }: GraphStep): string[] {
  if (meaning.kind !== 'control') return [...inputs];
  const inner = [...meaning.bodies.values()].flatMap((body) => [
    ...body.steps.flatMap(readsOf),
    ...body.outputs,
  ]);
  return [...inputs, ...inner];
}

function isAllKnown({ inputs }: GraphStep, scope: GraphScope): boolean {
  return inputs.every((name) => name === '' || scope.get(name)?.known !== undefined);
}

/** Elements that a program was compiled for. */
function isConstant({ known }: Value): boolean {
  return known !== undefined && known.data.length <= mostKnown;
}

/** What a stretch is compiled for: types and shapes, and elements of what is known. */
function keyOf(live: Live, hasDoubles: boolean): string {
  const parts = [...live].map(([name, value]) => `${name}:${describe(value)}`);
  return `${hasDoubles} ${parts.join(' ')}`;
}

function describe(value: Value): string {
  const { type, shape, items, keys, words, isAbsent } = value;
  if (isAbsent) return 'none';
  if (items !== undefined) return `(${items.map(describe).join(';')})`;
  const elements = isConstant(value) ? `=${showAll(value.known!)}` : '';
  const beyond =
    words === undefined && keys === undefined ? '' : JSON.stringify([words, keys?.names.map(String)]);
  return `${type}[${shape.join(',')}]${elements}${beyond}`;
}

/** All elements as text; 0 and −0 are two. */
function showAll({ data }: HostArray): string {
  const shown = (item: number | bigint): string => (Object.is(item, -0) ? '-0' : String(item));
  return Array.from<number | bigint, string>(data, shown).join(',');
}

/** The tensors that go into a stretch, by the names of their values. */
function leavesOf(live: Live): Record<string, Tensor[]> {
  return Object.fromEntries(
    [...live].map(([name, value]) => [name, isConstant(value) ? [] : [...value.leaves]]),
  );
}

/** A value within a recording, whose elements, if they are read, are what the program depends on. */
function inside(
  name: string,
  value: Value,
  tensors: readonly Tensor[],
  baked: Map<string, HostArray>,
): Value {
  const { type, words, known } = value;
  if (isConstant(value)) return Value.known(type, known!, words);
  const [tensor] = tensors;
  if (!value.isTensor || tensor === undefined) return value.withLeaves([...tensors]);
  const array = value.host();
  const take = (): HostArray => {
    baked.set(name, array!);
    return array!;
  };
  return Value.of(tensor, type, array === undefined ? undefined : take, words);
}

/** A result of a stretch with the tensors of a call, taken from the front. */
function withTensors(result: Value, tensors: Tensor[]): Value {
  // Anew: the tensor of what is known may belong to the recording.
  if (isConstant(result)) return Value.known(result.type, result.known!, result.words);
  return result.withLeaves(tensors);
}

/** Reads a value, so that the host has its elements from here on; whether there was something to read. */
async function fetch(name: string, live: Map<string, Value>): Promise<boolean> {
  const value = live.get(name);
  if (value === undefined || !value.isTensor || value.host() !== undefined) return false;
  live.set(name, asData(Value.known(value.type, await read(value), value.words)));
  return true;
}

/** Known elements as data whose elements the host has at hand. */
function asData(value: Value): Value {
  const { known, type, words } = value;
  if (known === undefined) return value;
  const tensor = fromHost(known.data, known.shape, known.dtype);
  return Value.of(tensor, type, () => known, words);
}

/** A value as known as the host has it. */
function atHand(value: Value): Value {
  const array = value.isTensor ? value.host() : undefined;
  return array === undefined ? value : Value.known(value.type, array, value.words);
}

function isSame(now: HostArray | undefined, before: HostArray): boolean {
  return (
    now !== undefined &&
    now.data.length === before.data.length &&
    now.data.every((item: number | bigint, i: number) => Object.is(item, before.data[i]))
  );
}

/** Inputs as values whose elements can be asked for where the host has them. */
export function liveOf(
  given: ReadonlyMap<string, { readonly type: Value['type']; readonly tensor: Tensor }>,
  decisive: ReadonlySet<string>,
): Live {
  return new Map(
    [...given].map(([name, { type, tensor }]) => {
      const array = hostOf(tensor);
      if (array !== undefined && decisive.has(name)) return [name, Value.known(type, array)];
      return [name, Value.of(tensor, type, array === undefined ? undefined : () => array)];
    }),
  );
}
