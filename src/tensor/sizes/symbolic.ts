// The sizes of one compiled function. This file tries the function at a few sizes, finds how the sizes in its
// graph depend on one another, and gives each call the program for its sizes. A size that is new is recorded
// once and compared with that structure: if the function does something else at this size, it gets a program
// of its own.

import { SinterError, TensorError } from '../../errors.ts';
import { generalise } from '../../ir/sizes/recording.ts';
import type { SizeStructure } from '../../ir/sizes/structure.ts';
import { VaryingSizes } from '../../ir/sizes/size.ts';
import type { Traced } from '../tracing.ts';
import type { Executable, FindSchedules } from '../evaluate/executable.ts';
import { counts } from '../report/stats.ts';
import { Dim, type Assignment, type Declared } from './dim.ts';
import { Family, varies, type Bound, type Recorder } from './family.ts';
import { servePending } from './pending.ts';
import { jointsOf, leastCommon, unconstrained, trialSizesOf, type Constraints } from './trial-sizes.ts';

export type { Bound } from './family.ts';

/** How often a structure is looked for anew before calls that fit none are compiled as they are. */
const mostFamilies = 8;

/** A function that is tried at sizes, with what it was called with. */
export interface TriedCall extends Recorder {
  /** Sizes of its arguments that do not vary. */
  readonly fixed: ReadonlySet<number>;
}

export class Symbolic {
  readonly declared: Declared;
  readonly #name: string;
  readonly #find: FindSchedules | undefined;
  readonly #isDeclared: boolean;
  /** The most recently made first. */
  readonly #families: Family[] = [];
  #given = 0;

  /** With `isDeclared` false sizes vary by themselves. */
  constructor(declared: Declared, name: string, find: FindSchedules | undefined, isDeclared: boolean = true) {
    servePending();
    this.declared = declared;
    this.#isDeclared = isDeclared;
    this.#name = name;
    this.#find = find;
  }

  executables(): Executable[] {
    return this.#families.flatMap((family) => family.executables());
  }

  /** The programs there are, by structure. */
  get families(): readonly Family[] {
    return this.#families;
  }

  /**
   * Explains why the function cannot be traced at sizes: by what it demands of dims, where that is
   * known.
   */
  refusal(at: Assignment, error: unknown): unknown {
    if (!(error instanceof SinterError)) return error;
    for (const { constraints } of this.#families) {
      const problem = violated(constraints, at);
      if (problem === undefined) continue;
      const first = error.message.split('\n')[0]!;
      return new TensorError('E_SHAPE', 'compile', `${this.#name}: ${problem}: ${first}`);
    }
    return error;
  }

  /** The program for a call; undefined where it is compiled for its own sizes. */
  bind(traced: Traced, at: Assignment, call: TriedCall): Bound | undefined {
    const known = this.#bindKnown(traced, at, call);
    if (known !== undefined && known !== 'wasteful') return known;
    const all = [...this.declared.dims.values()];
    // At the smallest sizes, as 1 is, views often change nothing: they have a structure of their own.
    const pinned = all.map((dim) => {
      return at.get(dim.name) === dim.min ? new Dim(dim.name, dim.min, dim.min, dim.multipleOf) : dim;
    });
    const isPinned = pinned.some((dim, i) => dim !== all[i]);
    const dims = [...(isPinned && this.#families.length > 0 ? [] : [all]), ...(isPinned ? [pinned] : [])];
    // Another structure of all sizes would be the one that is too much for these.
    if (known === 'wasteful' && !isPinned) return undefined;
    if (this.#given >= mostFamilies) return undefined;
    this.#given += 1;
    let failed: SinterError | undefined;
    for (const each of dims) {
      let family: Family | undefined;
      try {
        family = this.#family(at, call, each);
      } catch (error) {
        if (!(error instanceof SinterError)) throw error;
        // A size of 1 that is spread over another may be no one computation with greater ones.
        failed ??= each === all ? error : undefined;
      }
      const fitted = family?.fit(traced);
      if (family === undefined || fitted === undefined) continue;
      this.#families.unshift(family);
      counts.traces += 1;
      const bound = family.bind(traced, fitted, at, call);
      return bound === 'wasteful' ? undefined : bound;
    }
    if (failed !== undefined) throw failed;
    return undefined;
  }

  #bindKnown(traced: Traced, at: Assignment, call: TriedCall): ReturnType<Family['bind']> {
    let isWasteful = false;
    for (const family of this.#families) {
      const fitted = family.fit(traced);
      const found = fitted && family.bind(traced, fitted, at, call);
      if (found === 'wasteful') isWasteful = true;
      else if (found !== undefined) return found;
    }
    return isWasteful ? 'wasteful' : undefined;
  }

  /** Tries the function at sizes until its recordings are one structure. */
  #family(at: Assignment, call: TriedCall, dims: readonly Dim[]): Family | undefined {
    const constraints = this.#constraints(at, call, dims);
    let difference: ReturnType<typeof generalise> | undefined;
    for (let turn = 0; turn < 3; turn++) {
      const sizes = new VaryingSizes();
      const joints = jointsOf(dims, constraints);
      const tried = trialSizesOf(joints, call.fixed, turn).map((sizesOf) => ({
        at: sizesOf,
        traced: call.at(sizesOf),
      }));
      // Of a single size there is nothing to vary.
      if (tried.length < 2) return undefined;
      const made = generalise(
        tried.map((one) => one.traced.graphKey),
        sizes,
      );
      if ('parts' in made) {
        if (!varies(made)) return undefined;
        return this.#made(made, sizes, constraints, tried, dims);
      }
      difference = made;
    }
    const { node, other } = difference as Exclude<typeof difference, SizeStructure | undefined>;
    const names = dims.map(({ name }) => name).join(', ');
    throw new SinterError(
      'E_UNSUPPORTED',
      `compile: ${this.#name} records other operations at other sizes of ${names}: ${node.op} at one, ${other?.op ?? 'nothing'} at another\n` +
        '  try: no condition on a size in the function, or leave the size out of dims',
    );
  }

  #made(
    structure: SizeStructure,
    sizes: VaryingSizes,
    constraints: Constraints,
    tried: readonly { readonly at: Assignment; readonly traced: Traced }[],
    dims: readonly Dim[],
  ): Family {
    const [find, name, isDeclared] = [this.#find, this.#name, this.#isDeclared];
    return new Family({ structure, sizes, constraints, dims, tried, find, name, isDeclared });
  }

  /** What sizes have to do with one another, so that the function can be recorded at all. */
  #constraints(at: Assignment, call: TriedCall, dims: readonly Dim[]): Constraints {
    const attempt = (constraints: Constraints): unknown => {
      try {
        for (const sizes of trialSizesOf(jointsOf(dims, constraints), call.fixed, 0)) call.at(sizes);
        return undefined;
      } catch (error) {
        if (error instanceof SinterError) return error;
        throw error;
      }
    };
    const first = attempt(unconstrained);
    if (first === undefined) return unconstrained;
    let left = mostHypotheses;
    for (const constraints of hypotheses(at)) {
      if (left-- === 0) break;
      if (attempt(constraints) === undefined) return constraints;
    }
    const names = dims.map(({ name }) => name).join(', ');
    throw new SinterError(
      'E_UNSUPPORTED',
      `compile: ${this.#name} cannot be recorded at other sizes of ${names} than ${[...at.values()].join(', ')}: ${(first as Error).message}`,
      { cause: first },
    );
  }
}

/** So many ways to explain why a function cannot be recorded are tried. */
const mostHypotheses = 128;

const moduli = [2, 3, 4, 5, 6, 7, 8, 10, 12, 16, 24, 32, 48, 64, 96, 128, 256, 512, 1024];

/** What may have to hold of sizes, of which these are an example: the weakest first. */
function* hypotheses(at: Assignment): Generator<Constraints> {
  const entries = [...at];
  const bySize = new Map<number, string[]>();
  for (const [name, size] of entries) bySize.set(size, [...(bySize.get(size) ?? []), name]);
  const groups = [...bySize.values()].filter((names) => names.length > 1);
  const equals: (readonly (readonly string[])[])[] = [[]];
  for (const names of groups) {
    for (let i = 0; i < names.length; i++)
      for (let k = i + 1; k < names.length; k++) equals.push([[names[i]!, names[k]!]]);
    if (names.length > 2) equals.push([names]);
  }
  if (groups.length > 1) equals.push(groups);
  for (const equal of equals.slice(1)) yield { equal, multiples: new Map() };
  for (const equal of equals) {
    for (const [name, size] of entries) {
      for (const by of moduli) if (size % by === 0) yield { equal, multiples: new Map([[name, by]]) };
    }
  }
  for (const [a, sizeA] of entries) {
    for (const [b, sizeB] of entries) {
      if (a >= b) continue;
      for (const by of moduli) {
        for (const of of moduli) {
          if (sizeA % by !== 0 || sizeB % of !== 0 || leastCommon(by, of) > 64) continue;
          yield {
            equal: [],
            multiples: new Map([
              [a, by],
              [b, of],
            ]),
          };
        }
      }
    }
  }
}

/** Which of the constraints sizes do not keep, in words. */
function violated({ equal, multiples }: Constraints, at: Assignment): string | undefined {
  for (const names of equal) {
    const odd = names.find((name) => at.get(name) !== at.get(names[0]!));
    if (odd !== undefined)
      return `${names[0]} === ${odd} has to hold, and they are ${at.get(names[0]!)} and ${at.get(odd)}`;
  }
  for (const [name, by] of multiples) {
    if (at.get(name)! % by !== 0) return `${name} % ${by} === 0 has to hold, and ${name} is ${at.get(name)}`;
  }
  return undefined;
}
