// A function with varying sizes as few programs: its recordings at several sizes as one structure
// (ir/sizes/), and of that structure a program for each part of the ranges, compiled when a size in
// it is first met.

import { SinterError } from '../../errors.ts';
import { match, type Structure } from '../../ir/sizes/recording.ts';
import { isVarying, type Sizes, type Values, type Varying } from '../../ir/sizes/size.ts';
import { scalarValue, variantOf, type Variant } from '../../ir/sizes/variant.ts';
import type { Traced } from '../compile/trace-function.ts';
import { Executable, type FindSchedules } from '../realise/executable.ts';
import { about } from '../report/compiles.ts';
import type { Assignment, Dim } from './dim.ts';
import { jointsOf, levelsOf, type Constraints } from './witnesses.ts';

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
  readonly variant: Variant;
  readonly executable: Executable;
}

/** What the structure is at a call, or at a size that was tried. */
export interface Fitted {
  readonly values: Values;
  readonly leaves: readonly number[];
}

/** Where a variant is compiled from. */
export interface Recorder {
  /** The function's trace at other sizes; throws what the function throws. */
  at(sizes: Assignment): Traced;
}

export class Family {
  readonly structure: Structure;
  readonly constraints: Constraints;
  readonly #sizes: Sizes;
  readonly #dims: readonly Dim[];
  readonly #tried: readonly { readonly at: Assignment; readonly values: Values }[];
  readonly #isScalar: readonly boolean[];
  readonly #levels: readonly Assignment[];
  readonly #ready: (Ready | undefined)[] = [];
  readonly #find: FindSchedules | undefined;
  readonly #name: string;

  constructor(made: {
    readonly structure: Structure;
    readonly sizes: Sizes;
    readonly constraints: Constraints;
    readonly dims: readonly Dim[];
    readonly tried: readonly { readonly at: Assignment; readonly traced: Traced }[];
    readonly find: FindSchedules | undefined;
    readonly name: string;
  }) {
    this.structure = made.structure;
    this.constraints = made.constraints;
    this.#sizes = made.sizes;
    this.#dims = made.dims;
    this.#find = made.find;
    this.#name = made.name;
    const { graph, scalarIndices } = made.tried[0]!.traced;
    this.#isScalar = graph.parameters.map((_, i) => scalarIndices.has(i));
    this.#levels = levelsOf(jointsOf(made.dims, made.constraints));
    this.#tried = made.tried.flatMap(({ at, traced }) => {
      const fitted = this.fit(traced);
      return fitted === undefined ? [] : [{ at, values: fitted.values }];
    });
  }

  /** The largest sizes of each program, and whether it has been compiled. */
  get variants(): readonly { readonly upTo: Assignment; readonly isMade: boolean }[] {
    return this.#levels.map((upTo, i) => ({ upTo, isMade: this.#ready[i] !== undefined }));
  }

  executables(): Executable[] {
    return this.#ready.flatMap((ready) => ready?.executable ?? []);
  }

  /** What the structure is at the sizes of a trace; undefined where the trace is another computation. */
  fit({ skeleton, graph, scalarIndices }: Traced): Fitted | undefined {
    const matched = match(this.structure, skeleton, this.#sizes);
    if (matched === undefined || matched.leaves.length !== graph.parameters.length) return undefined;
    const isSame = matched.leaves.every((leaf, i) => scalarIndices.has(leaf) === this.#isScalar[i]);
    return isSame ? matched : undefined;
  }

  /**
   * The program for these sizes, compiled when it is first run; undefined where there is none that
   * fits. Throws E_UNSUPPORTED where an operation cannot do with a varying size.
   */
  bind(traced: Traced, { values, leaves }: Fitted, at: Assignment, recorder: Recorder): Bound | undefined {
    for (const [level, upTo] of this.#levels.entries()) {
      if ([...upTo].some(([name, size]) => at.get(name)! > size)) continue;
      const ready = (this.#ready[level] ??= this.#make(level, recorder));
      const fits =
        ready !== undefined &&
        [...ready.variant.capacities].every(([num, capacity]) => this.#valueOf(values, num) <= capacity);
      if (fits) return bound(ready, traced, leaves, this.#all(values, ready.variant));
    }
    return undefined;
  }

  #valueOf(values: Values, num: Varying): number {
    return values.get(num) ?? this.#sizes.complete(values, [num])?.get(num) ?? Infinity;
  }

  #all(values: Values, { scalars }: Variant): Values {
    return (
      this.#sizes.complete(
        values,
        scalars.map(({ num }) => num),
      ) ?? values
    );
  }

  #make(level: number, recorder: Recorder): Ready | undefined {
    const upTo = this.#levels[level]!;
    const below = this.#levels[level - 1];
    const joints = jointsOf(this.#dims, this.constraints);
    const least = new Map<string, number>();
    for (const { names, min, multipleOf } of joints) {
      const first = Math.ceil(min / multipleOf) * multipleOf;
      // Sizes of other dims decide as well which variant a call takes: any may be as small as it gets.
      for (const name of names)
        least.set(name, joints.length === 1 ? Math.max(first, below?.get(name) ?? 0) : first);
    }
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

  #sample(at: Assignment, recorder: Recorder): Values | undefined {
    try {
      return this.fit(recorder.at(at))?.values;
    } catch (error) {
      if (error instanceof SinterError) return undefined;
      throw error;
    }
  }

  /** What a number is made of: the name of a dim, or of all that there are. */
  #describe(num: Varying): string {
    const isOf = ({ name }: Dim): boolean =>
      this.#tried.every(({ at, values }) => values.get(num) === at.get(name));
    const own = this.#dims.find(isOf);
    return own?.name ?? `a size made of ${this.#dims.map(({ name }) => name).join(' and ')}`;
  }
}

function bound(
  { variant, executable }: Ready,
  { graph, scalarIndices }: Traced,
  leaves: readonly number[],
  values: Values,
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

/** Whether any number of a structure varies. */
export function varies({ parts }: Structure): boolean {
  return parts.some(({ shape, attrs }) => [...shape, ...Object.values(attrs).flat()].some(isVarying));
}
