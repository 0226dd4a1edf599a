// Models whose sizes are left open. A function is spelled at several sizes. Its files are the same but for
// numbers, and each number that differs has a formula of the sizes (aot/formula.ts), which nodes of the file
// compute from the shapes of its inputs.

import {
  Formulas,
  mostDivisor,
  showFormula,
  valueOf,
  type Formula,
  type Sizes,
} from '../../../aot/formula.ts';
import { countOf, drawnFromAll, randomNumbers, showSizes } from '../../../aot/points.ts';
import { CompilerBug, SinterError, TensorError } from '../../../errors.ts';
import { generalise, match } from '../../../ir/sizes/recording.ts';
import type { FixedShape } from '../../../ir/shape.ts';
import { VaryingSizes, type SizeValues } from '../../../ir/sizes/size.ts';
import type { SizeRecording, SizeStructure } from '../../../ir/sizes/structure.ts';
import { Dim } from '../../../tensor/sizes/dim.ts';
import { jointsOf, trialSizesOf, unconstrained } from '../../../tensor/sizes/trial-sizes.ts';
import type { Initializer, OpenVal, Val } from '../emitter.ts';
import type { SpelledGraph } from '../graph.ts';
import { openConstant, SizeNodes, Unfollowed, type SizeSource } from './sizes.ts';
import type { MessageDraft } from '../../schema.ts';

/** A function as a model at some sizes. */
export interface ModelAt {
  readonly recording: SizeRecording;
  readonly spelled: SpelledGraph;
  readonly inputs: readonly Val[];
  readonly outputs: readonly Val[];
  /** What each parameter of the recording is: equal texts for the same argument, or for equal elements. */
  readonly sources: () => readonly string[];
}

/** A model of all sizes. */
export interface OpenModel extends SpelledGraph {
  readonly inputs: readonly OpenVal[];
  readonly outputs: readonly OpenVal[];
}

interface Trial extends ModelAt {
  readonly sizes: Sizes;
  /** What of its file has to be the same at all sizes. */
  readonly text: string;
}

/**
 * The model of a function for all sizes of its dims. `fixed` are sizes of its inputs that do not vary; `isRight` runs
 * a model at some sizes, and says whether it computes what the function does. Rejects with E_UNSUPPORTED, naming the
 * operator, where the function does something else at some of the sizes that are tried, where a number has no formula,
 * or where the format fixes a number that varies.
 */
export async function openModel(
  dims: readonly Dim[],
  fixed: ReadonlySet<number>,
  at: (sizes: Sizes) => Promise<ModelAt>,
  isRight: (model: OpenModel, sizes: Sizes) => Promise<boolean>,
): Promise<OpenModel> {
  const trials = new Trials(dims, at);
  const { regular, odd, structure } = await trials.sorted(fixed);
  const names = dims.map(({ name }) => name);
  const sizes = regular.map((trial) => trial.sizes);
  const formulas = new Formulas(names, sizes, countOf(dims) === regular.length + odd.length);
  const { model, claims } = new Merge(names, regular, formulas, refusalOf(dims)).model();
  const others = await trials.others(claims, regular[0]!);
  for (const sizes of await trials.doubts([...odd, ...others], structure, regular, formulas)) {
    if (await isRight(model, sizes)) continue;
    throw refusalOf(dims)(
      `does something else at ${showSizes(sizes)} than at ${showSizes(regular[0]!.sizes)}`,
      `a range without this size, as in dim('${names[0]}', { min: 2 }), or no condition on a size in the function`,
    );
  }
  return model;
}

/**
 * Sizes to hold the file to: the smallest and the largest, the ends of each range and what lies beside them, and
 * random ones. Formulas of several sizes take more of them.
 */
function tried(dims: readonly Dim[]): Sizes[] {
  const random = randomNumbers(1);
  const drawn = (): Sizes => drawnFromAll(dims, random);
  const ends = (end: 'min' | 'max'): Sizes => Object.fromEntries(dims.map((dim) => [dim.name, dim[end]]));
  const all = [ends('min'), ends('max')];
  for (const { name, min, max, multipleOf } of dims)
    for (const size of [min, min + multipleOf, min + 2 * multipleOf, max])
      all.push({ ...drawn(), [name]: Math.min(size, max) });
  for (let i = 0; i < 4 + 4 * dims.length; i++) all.push(drawn());
  return [...new Map(all.map((sizes) => [JSON.stringify(sizes), sizes])).values()];
}

type Refusal = (problem: string, hint?: string) => SinterError;

function refusalOf(dims: readonly Dim[]): Refusal {
  const names = dims.map(({ name }) => name).join(', ');
  return (problem, hint = `leave a size out of dims, which has ${names}`) =>
    new SinterError('E_UNSUPPORTED', `exportOnnx: the function ${problem}\n  try: ${hint}`);
}

/** A number of the file that has a formula: what it is at a trial has to be what the formula gives. */
interface Claim {
  readonly formula: Formula;
  readonly read: (trial: Trial) => number | undefined;
}

/** The function at sizes of its ranges. */
class Trials {
  readonly #dims: readonly Dim[];
  readonly #at: (sizes: Sizes) => Promise<ModelAt>;
  readonly #refusal: Refusal;
  readonly #numbers = new VaryingSizes();

  constructor(dims: readonly Dim[], at: (sizes: Sizes) => Promise<ModelAt>) {
    this.#dims = dims;
    this.#at = at;
    this.#refusal = refusalOf(dims);
  }

  /** Trials whose files differ in numbers alone, the others, and the structure of the recordings of the first. */
  async sorted(fixed: ReadonlySet<number>): Promise<{
    readonly regular: readonly Trial[];
    readonly odd: readonly Trial[];
    readonly structure: SizeStructure;
  }> {
    const { witnesses, structure } = await this.#witnesses(fixed);
    const [first] = witnesses as [Trial];
    const regular = [...witnesses];
    const odd: Trial[] = [];
    const known = new Set(witnesses.map(({ sizes }) => JSON.stringify(sizes)));
    const usual = emptyOf(first);
    for (const sizes of tried(this.#dims)) {
      if (known.has(JSON.stringify(sizes))) continue;
      const trial = await this.#trial(sizes);
      // Files say something else where there is nothing to compute, and runtimes end there.
      const empty = usual === undefined ? emptyOf(trial) : undefined;
      if (empty !== undefined)
        throw this.#refusal(
          `has a tensor without elements at ${showSizes(sizes)}: ${empty} makes it`,
          `a range without this size, as in dim('${this.#dims[0]!.name}', { min: 2 })`,
        );
      (trial.text === first.text ? regular : odd).push(trial);
    }
    return { regular, odd, structure };
  }

  /** The function at a few sizes that have nothing in common, where it is one structure. */
  async #witnesses(
    fixed: ReadonlySet<number>,
  ): Promise<{ readonly witnesses: readonly Trial[]; readonly structure: SizeStructure }> {
    // At the smallest size, often 1, views may change nothing: it is no good witness.
    const larger = this.#dims.map(({ name, min, max, multipleOf }) => {
      return new Dim(name, Math.min(max, min + multipleOf), max, multipleOf);
    });
    const joints = jointsOf(larger, unconstrained);
    let difference = '';
    for (let turn = 0; turn < 3; turn++) {
      const witnesses: Trial[] = [];
      for (const sizes of trialSizesOf(joints, fixed, turn))
        witnesses.push(await this.#trial(Object.fromEntries(sizes)));
      const structure = generalise(
        witnesses.map(({ recording }) => recording),
        this.#numbers,
      );
      const other = witnesses.find(({ text }) => text !== witnesses[0]!.text);
      if ('parts' in structure && other === undefined) return { witnesses, structure };
      difference =
        'parts' in structure
          ? differenceOf(witnesses[0]!.spelled, other!.spelled)
          : `${structure.node.op} at one, ${structure.other?.op ?? 'nothing'} at another`;
    }
    throw this.#refusal(`is other operations at other sizes: ${difference}`);
  }

  async #trial(sizes: Sizes): Promise<Trial> {
    try {
      const model = await this.#at(sizes);
      return { ...model, sizes, text: textOf(model) };
    } catch (error) {
      if (!(error instanceof TensorError)) throw error;
      const [first] = error.message.split('\n');
      throw new SinterError(
        'E_UNSUPPORTED',
        `exportOnnx: the function cannot be recorded at ${showSizes(sizes)}: ${first}\n` +
          `  try: dim('${this.#dims[0]!.name}', { min, max, multipleOf }) with a range of sizes that it takes`,
        { cause: error },
      );
    }
  }

  /**
   * Sizes at which it has to be seen that the file computes what the function does: there the function's own file
   * would be another, as at size 1, and its recording is not the structure with the numbers that formulas give.
   */
  async doubts(
    odd: readonly Trial[],
    structure: SizeStructure,
    regular: readonly Trial[],
    formulas: Formulas,
  ): Promise<Sizes[]> {
    if (odd.length === 0) return [];
    const seen = regular.map((trial) => this.#fit(structure, trial));
    const all = seen.every((values) => values !== undefined) ? seen : undefined;
    const isClear = (trial: Trial): boolean => {
      const values = all && this.#fit(structure, trial);
      if (values === undefined || trial.sources().join() !== regular[0]!.sources().join()) return false;
      return [...values].every(([number, value]) => {
        const formula = formulas.find(all!.map((own) => own.get(number)!));
        return formula !== undefined && Object.is(valueOf(formula, trial.sizes), value);
      });
    };
    const unclear = new Map<string, Trial>();
    for (const trial of odd) if (!isClear(trial)) unclear.set(trial.text, trial);
    const small: Sizes[] = [];
    for (const [text, { sizes }] of unclear) {
      const near = this.#smaller(sizes);
      small.push((await this.#trial(near)).text === text ? near : sizes);
    }
    return small;
  }

  /** Sizes at the same ends of ranges, and small ones instead of the others. */
  #smaller(sizes: Sizes): Sizes {
    const small = this.#dims.map(({ name, min, max, multipleOf }, i) => {
      const size = sizes[name]!;
      return [name, size === min ? min : Math.min(size, max, min + (i + 2) * multipleOf)] as const;
    });
    return Object.fromEntries(small);
  }

  /** The numbers of a trial; undefined where it is another computation. */
  #fit(structure: SizeStructure, trial: Trial): SizeValues | undefined {
    const matched = match(structure, trial.recording, this.#numbers);
    return matched?.leaves.every((leaf, i) => leaf === i) === true ? matched.values : undefined;
  }

  /** Holds formulas to sizes that they were not found from; gives the trials whose files are others. */
  async others(claims: readonly Claim[], first: Trial): Promise<Trial[]> {
    const random = randomNumbers(3);
    const all = Array.from({ length: 4 }, () => drawnFromAll(this.#dims, random));
    // Whole parts of quotients repeat: a row of sizes meets each of their rests.
    if (JSON.stringify(claims.map(({ formula }) => formula)).includes('"floor"'))
      for (const { name, min, max, multipleOf } of this.#dims)
        for (let i = 0; i < mostDivisor && min + i * multipleOf <= max; i++)
          all.push({ ...drawnFromAll(this.#dims, random), [name]: min + i * multipleOf });
    const odd: Trial[] = [];
    for (const sizes of all) {
      const trial = await this.#trial(sizes);
      if (trial.text !== first.text) {
        odd.push(trial);
        continue;
      }
      for (const { formula, read } of claims) {
        const value = read(trial);
        if (Object.is(valueOf(formula, sizes), value)) continue;
        const problem = `${showFormula(formula)} is not ${value} at ${showSizes(sizes)}`;
        throw this.#refusal(`has a number that no formula known here gives: ${problem}`);
      }
    }
    return odd;
  }
}

/** What of a file has to be the same at all sizes: everything but whole numbers, shapes and elements. */
function textOf({ spelled, inputs, outputs }: ModelAt): string {
  const initializers = spelled.initializers.map(({ name, type, shape }) => [name, type, shape.length]);
  const ports = [...inputs, ...outputs].map(({ name, dtype, shape }) => [name, dtype, shape.length]);
  return JSON.stringify([spelled.nodes, initializers, ports], (_, value: unknown) => {
    if (typeof value === 'bigint') return '#';
    return value instanceof Uint8Array ? [...value] : value;
  });
}

/** An operation of a tensor without elements. */
function emptyOf({ recording }: ModelAt): string | undefined {
  return recording.parts.find(({ node }) => (node.shape as FixedShape).includes(0))?.node.op;
}

/** The first operators that differ. */
function differenceOf(one: SpelledGraph, other: SpelledGraph): string {
  const at = one.nodes.findIndex((node, i) => node.opType !== other.nodes[i]?.opType);
  if (at < 0) return `${one.nodes.length} operators at one, ${other.nodes.length} at another`;
  return `${one.nodes[at]!.opType} at one, ${other.nodes[at]?.opType ?? 'nothing'} at another`;
}

/** Files that differ in numbers alone as one, whose numbers are computed. */
class Merge {
  readonly #names: readonly string[];
  readonly #trials: readonly Trial[];
  readonly #formulas: Formulas;
  readonly #refusal: Refusal;
  readonly #claims: Claim[] = [];
  /** Names that stand for others in the merged file. */
  readonly #renamed = new Map<string, string>();

  constructor(names: readonly string[], trials: readonly Trial[], formulas: Formulas, refusal: Refusal) {
    this.#names = names;
    this.#trials = trials;
    this.#formulas = formulas;
    this.#refusal = refusal;
  }

  model(): { readonly model: OpenModel; readonly claims: readonly Claim[] } {
    const [first] = this.#trials as [Trial];
    const inputs = this.#ports(({ inputs }) => inputs);
    const outputs = this.#ports(({ outputs }) => outputs);
    const taken = [
      ...[...first.inputs, ...first.outputs, ...first.spelled.initializers].map(({ name }) => name),
      ...first.spelled.nodes.flatMap(namesOf),
    ];
    const sizes = new SizeNodes(
      (name) => sourceOf(name, inputs),
      this.#trials.map((trial) => trial.sizes),
      taken,
    );
    const kept: Initializer[] = [];
    const equal = new Map<string, string>();
    first.spelled.initializers.forEach((one, i) => {
      const made = this.#initializer(i, sizes);
      if (typeof made === 'string') {
        this.#renamed.set(one.name, made);
        return;
      }
      // Constants of trials are not shared, so that equal sizes are no equal constants.
      const key =
        made.data.length <= 64 ? `${made.type}[${made.shape.join()}] ${made.data.join()}` : made.name;
      const twin = equal.get(key);
      if (twin === undefined) {
        equal.set(key, made.name);
        kept.push(made);
      } else this.#renamed.set(made.name, twin);
    });
    const nodes = first.spelled.nodes.map((_, i) =>
      this.#node(this.#trials.map(({ spelled }) => spelled.nodes[i]!)),
    );
    const model = {
      nodes: [...sizes.nodes, ...nodes],
      initializers: [...kept, ...sizes.initializers],
      inputs,
      outputs,
    };
    return { model, claims: this.#claims };
  }

  /** The formula of a number that `read` finds in a trial; `what` it is, for refusals. */
  #formula(read: (trial: Trial) => number, what: string): Formula {
    const values = this.#trials.map(read);
    const formula = this.#formulas.find(values);
    if (formula === undefined) {
      const seen = [...new Set(values)].slice(0, 4).join(', ');
      throw this.#refusal(
        `has ${what} that no formula known here gives of ${this.#names.join(', ')}: ${seen}, …`,
      );
    }
    this.#claims.push({ formula, read });
    return formula;
  }

  #ports(of: (trial: Trial) => readonly Val[]): OpenVal[] {
    return of(this.#trials[0]!).map(({ shape, ...port }, i) => ({
      ...port,
      shape: shape.map((_, axis) => {
        const formula = this.#formula((trial) => of(trial)[i]!.shape[axis]!, `a size of ${port.name}`);
        return typeof formula === 'number' ? formula : showFormula(formula);
      }),
    }));
  }

  /** An initializer of the merged file, or the name of the value that computes it. */
  #initializer(i: number, sizes: SizeNodes): Initializer | string {
    const all = this.#trials.map(({ spelled }) => spelled.initializers[i]!);
    const [first] = all as [Initializer];
    const isSame = all.every(
      ({ type, shape, data }) =>
        type === first.type && `${shape}` === `${first.shape}` && sameBytes(data, first.data),
    );
    if (isSame) {
      this.#claims.push({
        formula: 1,
        read: (trial) => Number(sameBytes(trial.spelled.initializers[i]!.data, first.data)),
      });
      return first;
    }
    const readers = this.#trials[0]!.spelled.nodes.flatMap((node) => readersOf(node, first.name));
    const what = `a constant of ${readers[0]?.op ?? 'an output'}`;
    try {
      return openConstant(sizes, all, {
        isShape: readers.every(({ op, input }) => op === 'Reshape' && input === 1),
        formula: (read) => this.#formula((trial) => read(trial.spelled.initializers[i]!), what),
      });
    } catch (error) {
      if (!(error instanceof Unfollowed)) throw error;
      throw this.#refusal(
        `makes a tensor whose elements follow from ${this.#names.join(', ')}: ${what}`,
        'arange and arithmetic instead of elements computed in JavaScript',
      );
    }
  }

  #node(all: readonly MessageDraft<'Node'>[]): MessageDraft<'Node'> {
    const [first] = all as [MessageDraft<'Node'>];
    return {
      ...first,
      input: (first.input ?? []).map((name) => this.#renamed.get(name) ?? name),
      attribute: (first.attribute ?? []).map((one, k) => {
        const same = all.map((node) => node.attribute![k]!);
        if (one.g !== undefined) return { ...one, g: this.#graph(same.map(({ g }) => g!)) };
        const numbers = (each: typeof one): string => [each.i, ...(each.ints ?? [])].join();
        if (same.every((each) => numbers(each) === numbers(one))) return one;
        const seen = [...new Set(same.map(numbers))].slice(0, 4).join('; ');
        throw this.#refusal(
          `has a ${one.name} of ${first.opType} that follows from ${this.#names.join(', ')}, and the format fixes it in the file: ${seen}, …`,
        );
      }),
    };
  }

  /** A graph inside of a node: what it takes and gives has open sizes where they differ. */
  #graph(all: readonly MessageDraft<'Graph'>[]): MessageDraft<'Graph'> {
    const [first] = all as [MessageDraft<'Graph'>];
    const ports = (
      of: (graph: MessageDraft<'Graph'>) => MessageDraft<'Graph'>['input'],
    ): typeof first.input =>
      of(first)!.map((port, i) => {
        const shapes = all.map((graph) => of(graph)![i]!.type!.tensor!.shape!.dim!);
        const dim = shapes[0]!.map((one, axis) =>
          shapes.every((shape) => shape[axis]!.value === one.value) ? one : {},
        );
        const name = this.#renamed.get(port.name!) ?? port.name!;
        return { name, type: { tensor: { ...port.type!.tensor!, shape: { dim } } } };
      });
    return {
      ...first,
      node: (first.node ?? []).map((_, i) => this.#node(all.map((graph) => graph.node![i]!))),
      input: ports(({ input }) => input),
      output: ports(({ output }) => output),
    };
  }
}

/** The axis of an input that has this size. */
function sourceOf(name: string, inputs: readonly OpenVal[]): SizeSource {
  for (const { name: input, shape } of inputs) {
    const axis = shape.indexOf(name);
    if (axis >= 0) return { input, axis };
  }
  throw new CompilerBug('exportOnnx', `no input has an axis of the size ${name}`);
}

/** The names of what a node gives, those inside its graphs too. */
function namesOf({ output = [], attribute = [] }: MessageDraft<'Node'>): string[] {
  const inside = attribute.flatMap(({ g }) => [
    ...(g?.node ?? []).flatMap(namesOf),
    ...(g?.input ?? []).map(({ name }) => name!),
  ]);
  return [...output, ...inside];
}

/** The operators that read a value, and as which of their inputs. */
function readersOf(
  { opType, input = [], attribute = [] }: MessageDraft<'Node'>,
  name: string,
): { readonly op: string; readonly input: number }[] {
  const own = input.flatMap((one, i) => (one === name ? [{ op: opType!, input: i }] : []));
  const inside = attribute.flatMap(({ g }) => (g?.node ?? []).flatMap((node) => readersOf(node, name)));
  return [...own, ...inside];
}

/** Whether bytes are equal. */
export function sameBytes(a: Uint8Array, b: Uint8Array): boolean {
  return a === b || (a.length === b.length && a.every((byte, i) => byte === b[i]));
}
