// Compiles a function with varying sizes to few programs. Recordings at several sizes become one structure
// (ir/sizes/), and this has a program for each part of the ranges, compiled when a size in the part first
// comes.

import { SinterError } from '../../errors.ts';
import { match } from '../../ir/sizes/recording.ts';
import type { SizeStructure } from '../../ir/sizes/structure.ts';
import { isVarying, type VaryingSizes, type SizeValues, type VaryingNumber } from '../../ir/sizes/size.ts';
import { scalarValue, variantOf, type Variant } from '../../ir/sizes/variant.ts';
import type { Traced } from '../tracing.ts';
import { Executable, type FindSchedules } from '../evaluate/executable.ts';
import { about } from '../report/compiles.ts';
import type { Assignment, Dim } from './dim.ts';
import { jointsOf, levelsOf, mostVariants, type Constraints } from './trial-sizes.ts';

/** A program for some sizes, and what a call of it takes. */
export interface Bound {
  readonly executable: Executable;
  /** By input of the program: the input of the trace at these sizes. */
  readonly inputs: readonly number[];
  /** By run-time scalar of the trace that the program takes: which of the trace's. */
  readonly scalars: readonly number[];
  /** Then the sizes. */
  readonly sizes: readonly number[];
}

interface Ready {
  readonly upTo: Assignment;
  /** Undefined where none could be made: calls are compiled for their own sizes. */
  readonly made: { readonly variant: Variant; readonly executable: Executable } | undefined;
}

/** So many times the work of a size is done at most where nobody declared that it varies. */
const mostWaste = 4;

/** What the structure is at a call, or at a size that was tried. */
export interface Fitted {
  readonly values: SizeValues;
  readonly leaves: readonly number[];
}

/** Where a variant is compiled from. */
export interface Recorder {
  /** The function's trace at other sizes; throws what the function throws. */
  at(sizes: Assignment): Traced;
}

export class Family {
  readonly structure: SizeStructure;
  readonly constraints: Constraints;
  readonly #sizes: VaryingSizes;
  readonly #dims: readonly Dim[];
  readonly #tried: readonly { readonly at: Assignment; readonly values: SizeValues }[];
  readonly #isScalar: readonly boolean[];
  readonly #levels: ReadonlyMap<string, readonly number[]>;
  readonly #isDeclared: boolean;
  readonly #ready: Ready[] = [];
  readonly #find: FindSchedules | undefined;
  readonly #name: string;

  constructor(made: {
    readonly structure: SizeStructure;
    readonly sizes: VaryingSizes;
    readonly constraints: Constraints;
    readonly dims: readonly Dim[];
    readonly tried: readonly { readonly at: Assignment; readonly traced: Traced }[];
    readonly find: FindSchedules | undefined;
    readonly name: string;
    readonly isDeclared: boolean;
  }) {
    this.structure = made.structure;
    this.constraints = made.constraints;
    this.#sizes = made.sizes;
    this.#dims = made.dims;
    this.#find = made.find;
    this.#name = made.name;
    const { graph, scalarIndices } = made.tried[0]!.traced;
    this.#isScalar = graph.parameters.map((_, i) => scalarIndices.has(i));
    this.#isDeclared = made.isDeclared;
    this.#levels = levelsOf(jointsOf(made.dims, made.constraints), made.isDeclared);
    this.#tried = made.tried.flatMap(({ at, traced }) => {
      const fitted = this.fit(traced);
      return fitted === undefined ? [] : [{ at, values: fitted.values }];
    });
  }

  /**
   * The largest sizes of each program, and whether it has been compiled. Of one declared dim all that
   * there may be.
   */
  get variants(): readonly { readonly upTo: Assignment; readonly isMade: boolean }[] {
    const made = this.#ready.filter((ready) => ready.made !== undefined).map(({ upTo }) => upTo);
    const [only, ...others] = this.#levels;
    const possible =
      others.length === 0 && this.#isDeclared
        ? only![1].map((size): Assignment => new Map([[only![0], size]]))
        : [...made, this.#largest()];
    const isNew = (upTo: Assignment, i: number): boolean =>
      possible.findIndex((other) => isSame(other, upTo)) === i;
    return possible
      .filter(isNew)
      .map((upTo) => ({ upTo, isMade: made.some((other) => isSame(other, upTo)) }));
  }

  executables(): Executable[] {
    return this.#ready.flatMap(({ made }) => made?.executable ?? []);
  }

  #largest(): Assignment {
    return new Map([...this.#levels].map(([name, sizes]) => [name, sizes.at(-1)!]));
  }

  /** Up to which sizes the program goes that these sizes should have. */
  #own(at: Assignment): Assignment {
    const level = (name: string, sizes: readonly number[]): number =>
      sizes.find((size) => size >= at.get(name)!) ?? sizes.at(-1)!;
    return new Map([...this.#levels].map(([name, sizes]) => [name, level(name, sizes)]));
  }

  /**
   * The program for these sizes: their own, as long as there is room for one more, or else the smallest
   * that holds them.
   */
  #readyFor(at: Assignment, recorder: Recorder): Ready | undefined {
    const [own, largest] = [this.#own(at), this.#largest()];
    const known = this.#ready.find(({ upTo }) => isSame(upTo, own));
    if (known !== undefined) return known;
    const hasLargest = isSame(own, largest) || this.#ready.some(({ upTo }) => isSame(upTo, largest));
    // One place is kept for the program of all sizes.
    if (this.#ready.length < mostVariants - (hasLargest ? 0 : 1)) return this.#add(own, recorder);
    const fitting = this.#ready
      .filter(({ upTo }) => isWithin(at, upTo))
      .sort((a, b) => total(a.upTo) - total(b.upTo));
    return fitting[0] ?? (hasLargest ? undefined : this.#add(largest, recorder));
  }

  #add(upTo: Assignment, recorder: Recorder): Ready {
    const ready = { upTo, made: this.#make(upTo, recorder) };
    this.#ready.push(ready);
    return ready;
  }

  /** What the structure is at the sizes of a trace; undefined where the trace is another computation. */
  fit({ graphKey, graph, scalarIndices }: Traced): Fitted | undefined {
    const matched = match(this.structure, graphKey, this.#sizes);
    if (matched === undefined || matched.leaves.length !== graph.parameters.length) return undefined;
    const isSame = matched.leaves.every((leaf, i) => scalarIndices.has(leaf) === this.#isScalar[i]);
    return isSame ? matched : undefined;
  }

  /**
   * The program for these sizes, compiled when it is first run; undefined where there is none that
   * fits, 'wasteful' where it does far more than these sizes need. Throws E_UNSUPPORTED where an operation
   * cannot do with a varying size.
   */
  bind(
    traced: Traced,
    { values, leaves }: Fitted,
    at: Assignment,
    recorder: Recorder,
  ): Bound | 'wasteful' | undefined {
    const ready = this.#readyFor(at, recorder);
    if (ready?.made === undefined || !isWithin(at, ready.upTo)) return undefined;
    if (!this.#isDeclared && total(ready.upTo) > mostWaste * total(at)) return 'wasteful';
    const { variant } = ready.made;
    const fits = [...variant.capacities].every(([num, capacity]) => this.#valueOf(values, num) <= capacity);
    return fits ? bound(ready.made, traced, leaves, this.#all(values, variant)) : undefined;
  }

  #valueOf(values: SizeValues, num: VaryingNumber): number {
    return values.get(num) ?? this.#sizes.complete(values, [num])?.get(num) ?? Infinity;
  }

  #all(values: SizeValues, { scalars }: Variant): SizeValues {
    return (
      this.#sizes.complete(
        values,
        scalars.map(({ num }) => num),
      ) ?? values
    );
  }

  #make(upTo: Assignment, recorder: Recorder): Ready['made'] {
    const least = new Map<string, number>();
    for (const { names, min, multipleOf } of jointsOf(this.#dims, this.constraints))
      for (const name of names) least.set(name, Math.ceil(min / multipleOf) * multipleOf);
    const samples = [upTo, least].map((at) => this.#sample(at, recorder));
    if (samples[0] === undefined) return undefined;
    const within = this.#tried.filter(({ at }) => [...upTo].every(([name, size]) => at.get(name)! <= size));
    const variant = variantOf(
      this.structure,
      this.#sizes,
      [...samples.filter((values) => values !== undefined), ...within.map(({ values }) => values)],
      (num) => this.#describe(num),
    );
    const { graph, scalars } = variant;
    const count = this.#isScalar.length;
    const indices = new Set([
      ...this.#isScalar.flatMap((isScalar, i) => (isScalar ? [i] : [])),
      ...scalars.map((_, i) => count + i),
    ]);
    const sizes = [...upTo].map(([name, size]) => `${name} ≤ ${size}`).join(', ');
    const reason = about(this.#name, `sizes up to ${sizes}`);
    const options = { scalars: indices, donate: new Map<number, number>() };
    return { variant, executable: new Executable(graph, options, this.#find, reason) };
  }

  #sample(at: Assignment, recorder: Recorder): SizeValues | undefined {
    try {
      return this.fit(recorder.at(at))?.values;
    } catch (error) {
      if (error instanceof SinterError) return undefined;
      throw error;
    }
  }

  /** What a number is made of: the name of a dim, or of all that there are. */
  #describe(num: VaryingNumber): string {
    const isOf = ({ name }: Dim): boolean =>
      this.#tried.every(({ at, values }) => values.get(num) === at.get(name));
    const own = this.#dims.find(isOf);
    return own?.name ?? `a size made of ${this.#dims.map(({ name }) => name).join(' and ')}`;
  }
}

function bound(
  { variant, executable }: NonNullable<Ready['made']>,
  { graph, scalarIndices }: Traced,
  leaves: readonly number[],
  values: SizeValues,
): Bound {
  /** Places of parameters among those of their kind. */
  let [tensors, numbers] = [0, 0];
  const places = graph.parameters.map((_, i) => (scalarIndices.has(i) ? numbers++ : tensors++));
  const of = (isScalar: boolean): number[] =>
    leaves.flatMap((leaf) => (scalarIndices.has(leaf) === isScalar ? [places[leaf]!] : []));
  return {
    executable,
    inputs: of(false),
    scalars: of(true),
    sizes: variant.scalars.map((scalar) => scalarValue(scalar, values)),
  };
}

function isSame(a: Assignment, b: Assignment): boolean {
  return [...a].every(([name, size]) => b.get(name) === size);
}

function isWithin(at: Assignment, upTo: Assignment): boolean {
  return [...upTo].every(([name, size]) => at.get(name)! <= size);
}

/** Sizes that several dims share count once for each: it is a figure to compare by. */
function total(at: Assignment): number {
  return [...at.values()].reduce((product, size) => product * size, 1);
}

/** Whether any number of a structure varies. */
export function varies({ parts }: SizeStructure): boolean {
  return parts.some(({ shape, attrs }) => [...shape, ...Object.values(attrs).flat()].some(isVarying));
}
