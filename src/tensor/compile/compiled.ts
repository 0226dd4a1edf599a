// A traced function as programs, and what a call of it does: inputs are read, results and
// assignments are promised, and the run is queued. Where gradients of the results lead somewhere,
// the call has a history (compile/past.ts) and its program keeps what the derivative reads.

import type { Graph, Node } from '../../ir/graph.ts';
import type { Mesh } from '../../ir/mesh/mesh.ts';
import { showValue } from '../../errors.ts';
import { showShape } from '../../ir/shape.ts';
import { fromReal } from '../../ir/value.ts';
import { checkInput, checkNumber } from '../debug.ts';
import { takeValue } from '../handle/assign.ts';
import { Executable, type FindSchedules } from '../evaluate/executable.ts';
import { execute } from '../evaluate/execute.ts';
import { currentSeed, split, takeCompiledCounts } from '../generator.ts';
import type { Handle } from '../handle/handle.ts';
import { freshParameter } from '../handle/leaf.ts';
import { answerOf } from '../handle/number.ts';
import { isDifferentiating } from '../handle/recorded.ts';
import { neededByPending, reclaimSoon } from '../handle/memory.ts';
import type { PartProgram, PartPrograms } from './parts.ts';
import { partPrograms } from './slots.ts';
import { keeping, pastOf, reachOf, type Reach } from './past.ts';
import { evaluatePending, evaluate } from '../evaluate/evaluate.ts';
import { alsoAbout, type About } from '../report/compiles.ts';
import { gradEnabled, currentHandle, leafHandle, nodeFor, attachIfComputed } from '../handle/recording.ts';
import { sameGraphKey } from '../evaluate/graph-key.ts';
import { requireGrad } from '../handle/gradient.ts';
import { StoredValue } from '../storage/storage.ts';
import { Tensor } from '../tensor.ts';
import type { Answered, NumberPart, Origin, Requirement, ScalarOrigin } from '../trace/trace.ts';
import type { Input, Recorded, ResultLeaf, Source, Traced } from '../tracing.ts';
import type { Bound } from '../sizes/family.ts';
import { unflatten } from '../tree.ts';

type Handles = readonly (Handle | undefined)[];

/** The value from outside that an origin names at this call. */
function outside(origin: Origin, handles: Handles): Handle {
  return origin.kind === 'captured' ? currentHandle(origin.handle, 'compile') : handles[origin.leaf]!;
}

/** Checks integers that this call brings. */
function checkCall(needed: Requirement, leaves: readonly unknown[], handles: Handles): void {
  const { origin, range, place } = needed;
  if (origin.kind === 'number') checkNumber(leaves[origin.leaf] as number, range, place);
  else if (origin.kind === 'argument' || origin.kind === 'captured')
    checkInput(outside(origin, handles), range, place);
}

export class Compiled {
  readonly traced: Traced;
  readonly executable: Executable;
  readonly #donated: readonly number[];
  readonly #find: FindSchedules | undefined;
  readonly #about: About | undefined;
  /** The program is one for many sizes, of which these are some. */
  readonly #bound: Bound | undefined;
  readonly #memory: number | undefined;
  #reach: Reach | undefined = undefined;
  /** The history of a result has been asked for. */
  #isAsked = false;
  #keeping: { readonly executable: Executable; readonly kept: readonly Node[] } | undefined = undefined;
  /** The mesh that the graph's own annotations name, once it was looked for. */
  #mesh: { readonly own: Mesh | undefined } | undefined = undefined;
  #parts: PartPrograms | undefined = undefined;

  /**
   * `donated` are leaves of the arguments, `memory` bytes that a run may take. Where one of `others` runs the same graph, its program
   * is shared.
   */
  constructor(
    traced: Traced,
    donated: readonly number[],
    find: FindSchedules | undefined,
    others: readonly Compiled[] = [],
    about?: About,
    bound?: Bound,
    memory?: number,
  ) {
    this.#memory = memory;
    this.traced = traced;
    this.#donated = donated;
    this.#find = find;
    this.#about = about;
    this.#bound = bound;
    if (bound !== undefined) {
      this.executable = bound.executable;
      return;
    }
    const options = optionsOf(traced, traced.graph.outputs, donated);
    const same = others.find((other) => other.#bound === undefined && runsSame(other, traced, options));
    this.executable =
      same?.executable ?? new Executable(traced.graph, withMemory(options, memory), find, about);
  }

  /** The program that it shares with calls of other sizes, if it does. */
  get shared(): { readonly graph: Graph; readonly scalars: ReadonlySet<number> } | undefined {
    const { graph, options } = this.executable;
    return this.#bound && { graph, scalars: options.scalars ?? new Set() };
  }

  /** The programs it may run. */
  executables(): Executable[] {
    const parts = this.#parts?.executables() ?? [];
    return [this.executable, ...(this.#keeping === undefined ? [] : [this.#keeping.executable]), ...parts];
  }

  /** The program of this process, where tensors are split over several. */
  #partProgram(inputs: readonly StoredValue[], targets: readonly Handle[]): PartProgram | undefined {
    const code = partPrograms.filled;
    if (code === undefined) return undefined;
    const { traced } = this;
    const { options } = this.executable;
    const values = {
      inputs: inputs.map(({ part }) => part),
      targets: traced.effects.map(({ part }, i) => {
        const storage = part === 'value' ? targets[i]!.storage : targets[i]!.grad?.storage;
        return storage && (storage.part ?? 'whole');
      }),
    };
    this.#mesh ??= { own: code.meshWithin(traced.graph) };
    const call = code.callParts(traced, options.donate ?? nowhere, values, [this.#mesh.own]);
    if (call === undefined) return undefined;
    if (this.#bound !== undefined) code.noVaryingSizes();
    this.#parts ??= new code.PartPrograms(traced.graph);
    return this.#parts.for(call, options, this.#find, this.#about);
  }

  /** Why the trace is not valid for this call, whose leaves have names; undefined when it is. */
  whyNot(handles: Handles, leaves: readonly unknown[], nameOf: (leaf: number) => string): string | undefined {
    const { gradsRead, asked, recorded } = this.traced;
    const isOther = gradsRead.find(
      ({ origin, hadBefore }) => (outside(origin, handles).grad !== undefined) !== hadBefore,
    );
    if (isOther !== undefined)
      return `a gradient that it reads ${isOther.hadBefore ? 'is gone' : 'is there'}`;
    const changed = recorded.trace.readings.changed();
    if (changed !== undefined) {
      const { holder, key, value } = changed;
      const kind = holder.constructor.name;
      return `${String(key)} of ${kind === 'Object' ? 'an object' : `a ${kind}`} that it captures is not ${showValue(value)} any more`;
    }
    const other = asked.find(({ origin, requiresGrad = outside(origin, handles).requiresGrad, leaf }) => {
      const handle = outside(origin, handles);
      return handle.requiresGrad !== requiresGrad || (leaf !== undefined && handle.leaf !== leaf);
    });
    if (other !== undefined || !isWithinSame(recorded))
      return 'whether a tensor requires gradients, which it asks, has changed';
    const odd = recorded.trace.answers.find((each) => !isAnswered(each, leaves));
    if (odd !== undefined)
      return `${nameOf(odd.leaf)} meets integers, and is ${String(leaves[odd.leaf])} now`;
    return this.holds(handles, leaves) ? undefined : 'an object that it captures has other properties';
  }

  /**
   * Whether the trace holds now, for these values: what it asked of gradients and numbers, and read
   * of layers, is as it was.
   */
  holds(handles: Handles, leaves: readonly unknown[]): boolean {
    const { gradsRead, asked, recorded } = this.traced;
    for (const { origin, hadBefore } of gradsRead) {
      if ((outside(origin, handles).grad !== undefined) !== hadBefore) return false;
    }
    for (const { origin, requiresGrad, leaf } of asked) {
      const handle = outside(origin, handles);
      if (requiresGrad !== undefined && handle.requiresGrad !== requiresGrad) return false;
      if (leaf !== undefined && handle.leaf !== leaf) return false;
    }
    if (!isWithinSame(recorded)) return false;
    if (!recorded.trace.answers.every((each) => isAnswered(each, leaves))) return false;
    return recorded.trace.readings.hold();
  }

  call(leaves: readonly unknown[], handles: Handles): unknown {
    const { traced } = this;
    const bound = this.#bound;
    const inputs = traced.inputs.map((input) => inputStorage(input, handles, bound !== undefined));
    for (const requirement of traced.recorded.trace.requirements) checkCall(requirement, leaves, handles);
    // The inputs at this call, taken before anything is assigned or given up.
    const nodes = inputNodes(traced.inputs, handles);
    // So are the values that it assigns to: a call that fails has changed nothing.
    const targets = traced.effects.map(({ origin }) => outside(origin, handles));
    const parts = this.#partProgram(inputs, targets);
    const history = nodes === undefined || parts !== undefined ? undefined : this.#history(nodes);
    const isCutOff = nodes !== undefined && parts !== undefined && this.#isCutOff(handles);
    const cutOff = isCutOff ? this.#carries(nodes) : undefined;
    const given = giveUp(this.#donated, handles);

    const { executable, kept } = parts ?? history ?? { executable: this.executable, kept: [] };
    const { outputs } = bound === undefined && parts === undefined ? executable.graph : traced.graph;
    const promised = outputs.map(({ dtype, shape }, i) =>
      StoredValue.promised(dtype, shape as readonly number[], parts?.outputs[i]),
    );
    const counter = takeCompiledCounts(traced.counts);
    const scalars = traced.scalars.map((origin) => scalarValue(origin, leaves, counter));
    const count = traced.graph.parameters.length - traced.scalarIndices.size;

    let past: readonly Node[] | undefined;
    const pastNode = (output: number): Node => {
      this.#isAsked = true;
      past ??= pastOf({
        recorded: traced.recorded,
        kept,
        inputs: inputs.map((storage, i) => nodes?.[i] ?? freshParameter(storage, storage)),
        scalars,
        values: promised,
      });
      return past[output]!;
    };
    if (history !== undefined) for (const input of inputs) input.lingering = true;
    /** Gives the node, with its history, of a value that gradients can be asked of. */
    const historyOf = (source: Source): (() => Node) | undefined => {
      if (source.kind === 'input') return nodes?.[source.index] && ((): Node => nodes[source.index]!);
      if (cutOff?.(source.index) === true) return partPrograms.value.noHistory;
      return history?.carries(source.index) === true ? (): Node => pastNode(source.index) : undefined;
    };
    const valueOf = (source: Source): StoredValue =>
      source.kind === 'output' ? promised[source.index]! : inputs[source.index]!;
    const made = (source: Source): Handle => withHistory(leafHandle(valueOf(source)), historyOf(source));

    const results = traced.results.map((leaf) =>
      leaf.kind === 'static' ? leaf.value : new Tensor(marked(made(leaf), leaf)),
    );
    for (const [i, { part, source }] of traced.effects.entries()) {
      const handle = targets[i]!;
      if (part === 'grad') handle.replaceGrad(source === undefined ? undefined : made(source));
      else if (source !== undefined) takeValue(handle, valueOf(source), historyOf(source)?.());
    }
    // One that the function assigned to has its new value.
    for (const handle of given.keys()) if (handle.state.kind === 'donating') handle.donate();
    // Run last, when every value that shares an input's memory is known: the run may overwrite
    // donated values that no other value shares.
    if (promised.length > 0 && bound === undefined)
      execute({ executable, inputs: inputs.slice(0, count), outputs: promised, scalars });
    if (promised.length > 0 && bound !== undefined) {
      execute({
        executable,
        inputs: bound.inputs.map((i) => inputs[i]!),
        outputs: promised,
        scalars: [...bound.scalars.map((i) => scalars[i]!), ...bound.sizes],
        isPartial: true,
      });
    }
    for (const storage of given.values()) if (storage.owners <= 0) storage.lose('donated');
    reclaimSoon();
    return unflatten(traced.structure, results);
  }

  /** Whether gradients of an output lead to inputs that have a node. */
  #carries(nodes: readonly (Node | undefined)[]): History['carries'] {
    const reach = (this.#reach ??= reachOf(this.traced.recorded));
    return (output) => [...reach[output]!].some((input) => nodes[input] !== undefined);
  }

  /**
   * Whether results of a program over several processes, which have no history, look as if they had one. Those of a function that takes
   * gradients itself, of leaves such as the parameters of a model, are read only.
   */
  #isCutOff(handles: Handles): boolean {
    if (!gradEnabled()) return false;
    const { recorded, inputs } = this.traced;
    return !recorded.trace.differentiates || inputs.some(({ origin }) => outside(origin, handles).hasHistory);
  }

  /**
   * How to run a call whose inputs, where they have a node, require gradients; undefined when none
   * leads to a result.
   */
  #history(nodes: readonly (Node | undefined)[]): History | undefined {
    if (!gradEnabled()) return undefined;
    const { traced } = this;
    const carries = this.#carries(nodes);
    const reach = this.#reach!;
    if (!reach.some((_, output) => carries(output))) return undefined;
    // A function that takes gradients inside, as a train step does, is rarely differentiated again:
    // until it is, the derivative may rematerialise what it reads from the inputs, and no second
    // program is compiled. That of a program for many sizes always does.
    const isRematerialised = traced.recorded.trace.differentiates && !this.#isAsked;
    if (isRematerialised || this.#bound !== undefined) {
      return { executable: this.executable, kept: [], carries };
    }
    if (this.#keeping === undefined) {
      const { graph, kept } = keeping(traced.recorded, reach);
      const options = optionsOf(traced, graph.outputs, this.#donated);
      const reason = this.#about && alsoAbout(this.#about, 'it keeps what gradients read');
      this.#keeping = {
        executable: new Executable(graph, withMemory(options, this.#memory), this.#find, reason),
        kept,
      };
    }
    return { ...this.#keeping, carries };
  }
}

interface History {
  readonly executable: Executable;
  readonly kept: readonly Node[];
  /** Whether gradients of an output lead anywhere. */
  carries(output: number): boolean;
}

/** A node for each input whose gradients lead anywhere; undefined when there is none. */
function inputNodes(inputs: readonly Input[], handles: Handles): (Node | undefined)[] | undefined {
  let nodes: (Node | undefined)[] | undefined;
  for (const [i, { origin, part }] of inputs.entries()) {
    const handle = outside(origin, handles);
    if (part === 'value' && handle.requiresGrad) (nodes ??= [])[i] = nodeFor(handle);
  }
  return nodes;
}

function withHistory(handle: Handle, past: (() => Node) | undefined): Handle {
  if (past === undefined) return handle;
  handle.remember(past);
  return handle;
}

/**
 * A result as the function left it: a leaf of its own, or a value whose history `backward` has
 * released.
 */
function marked(handle: Handle, { leaf, released }: Extract<ResultLeaf, Source>): Handle {
  if (leaf) {
    handle.track('none');
    requireGrad(handle, true);
  } else if (released && handle.requiresGrad) {
    handle.track('released');
    attachIfComputed(handle);
  }
  return handle;
}

/**
 * Whether a compiled function runs this very graph already: traces may differ in what does not
 * reach their programs.
 */
function runsSame(other: Compiled, traced: Traced, { donate }: ReturnType<typeof optionsOf>): boolean {
  const pairs = other.executable.options.donate ?? new Map<number, number>();
  const same = (a: readonly unknown[], b: readonly unknown[]): boolean =>
    a.length === b.length && a.every((item, i) => Object.is(item, b[i]));
  return (
    sameGraphKey(other.traced.graphKey, traced.graphKey) &&
    same(other.traced.graphKey.constants, traced.graphKey.constants) &&
    same([...other.traced.scalarIndices], [...traced.scalarIndices]) &&
    same([...pairs].flat(), [...donate].flat())
  );
}

function withMemory<O extends object>(
  options: O,
  memory: number | undefined,
): O & { readonly memory?: number } {
  return memory === undefined ? options : { ...options, memory };
}

const nowhere: ReadonlyMap<number, number> = new Map();

/** How a traced function is compiled: each donated input paired with an output of its type, each used once. */
export function optionsOf(
  traced: Traced,
  outputs: readonly Node[],
  donated: readonly number[],
): { scalars: ReadonlySet<number>; donate: ReadonlyMap<number, number> } {
  const pairs = new Map<number, number>();
  const taken = new Set<number>();
  const { parameters } = traced.graph;
  const tensors = parameters.filter((_, i) => !traced.scalarIndices.has(i));
  tensors.forEach((parameter, i) => {
    const { origin, part } = traced.inputs[i]!;
    if (origin.kind !== 'argument' || part !== 'value' || !donated.includes(origin.leaf)) return;
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

const nothing: ReadonlyMap<Handle, StoredValue> = new Map();

/** Takes the values of donated leaves from their handles. */
function giveUp(donated: readonly number[], handles: Handles): ReadonlyMap<Handle, StoredValue> {
  if (donated.length === 0) return nothing;
  const given = new Map<Handle, StoredValue>();
  for (const leaf of donated) {
    const handle = handles[leaf];
    if (handle !== undefined) given.set(handle, evaluate(handle));
  }
  // What was recorded from a donated value before the call still gets the old value.
  const isNeeded = neededByPending();
  if ([...given.values()].some(isNeeded)) evaluatePending();
  for (const handle of given.keys()) {
    handle.give()!.unshare();
  }
  return given;
}

function inputStorage({ origin, part }: Input, handles: Handles, isOfMany: boolean): StoredValue {
  const handle = outside(origin, handles);
  return evaluate(part === 'value' ? handle : handle.grad!, isOfMany);
}

/** Whether a number is as a trace had it. */
function isAnswered({ leaf, question, answer }: Answered, leaves: readonly unknown[]): boolean {
  return answerOf(leaves[leaf] as number, question) === answer;
}

/** Whether a derivative is being taken around the call as when the function was recorded, where it asked. */
function isWithinSame({ trace: { isWithinDerivative } }: Recorded): boolean {
  return isWithinDerivative === undefined || isWithinDerivative === isDifferentiating();
}

const word = new DataView(new ArrayBuffer(8));

function numberPart(value: number, part: NumberPart): number {
  switch (part) {
    case 'value':
      return value;
    case 'truth':
      return Number(value !== 0);
    case 'f16':
    case 'bf16':
      return Number(fromReal(part)(value));
    case 'low':
    case 'high':
      word.setFloat64(0, value);
      return word.getUint32(part === 'high' ? 0 : 4);
    case 'whole low':
    case 'whole high':
      word.setBigInt64(0, BigInt.asIntN(64, BigInt(value)));
      return word.getUint32(part === 'whole high' ? 0 : 4);
    default:
      return part satisfies never;
  }
}

function scalarValue(origin: ScalarOrigin, leaves: readonly unknown[], counter: bigint): number {
  switch (origin.kind) {
    case 'number':
      return numberPart(leaves[origin.leaf] as number, origin.part);
    case 'seed':
      return split(currentSeed())[origin.high ? 1 : 0];
    case 'counter':
      return split(BigInt.asUintN(64, counter + origin.offset))[origin.high ? 1 : 0];
    default:
      return origin satisfies never;
  }
}
