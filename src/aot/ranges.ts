// Entries whose sizes are left open within ranges: one program, or a few for parts of the ranges, in
// which sizes are run-time scalars (ir/sizes/). A bundle cannot record its function again, so each
// number that follows from sizes has to have a formula (aot/formula.ts), and the function is recorded
// at many sizes of the ranges, where structure and formulas have to give what it records.

import { SinterError } from '../errors.ts';
import type { BundleEntry, Formula, ScalarSource, Sizes } from '../bundle-runtime/manifest.ts';
import { valueOf } from '../bundle-runtime/sizes.ts';
import { showShape } from '../ir/shape.ts';
import { generalise, generaliseOver, match, outlineOf } from '../ir/sizes/recording.ts';
import type { SizeRecording, SizeStructure } from '../ir/sizes/structure.ts';
import {
  isVarying,
  VaryingSizes as Numbers,
  type Num,
  type SizeValues,
  type VaryingNumber,
} from '../ir/sizes/size.ts';
import { variantOf, type Variant } from '../ir/sizes/variant.ts';
import { Dim } from '../tensor/sizes/dim.ts';
import { jointsOf, unconstrained, trialSizesOf } from '../tensor/sizes/trial-sizes.ts';
import { wiredEntry, type Checking, type TracedEntry } from './entry.ts';
import { Formulas, mostDivisor, showFormula } from './formula.ts';
import { openPorts, offsetOf, sizedProgram, type Scalars } from './ports.ts';
import type { OpenPoint } from './sizes.ts';
import {
  countOf,
  drawnFromAll,
  pointsOf,
  randomNumbers,
  showSizes,
  sizesWithin,
  upToOf,
  type SizeRanges,
} from './points.ts';
import { fixedSizes, likeness, oddWeight, shapeOf, splitOf, trialOf, type Trial } from './trials.ts';
import type { WeightTable } from './weights.ts';

export interface RangedCase {
  readonly sizes: Sizes;
  readonly least: Sizes;
  readonly traced: TracedEntry;
}

export interface RangedEntry {
  readonly entry: Omit<BundleEntry, 'programs'>;
  /** For each program the largest sizes of those with ranges, and the smallest. */
  readonly cases: readonly RangedCase[];
}

/** A trial that is the structure, with the numbers of its sizes. */
interface Fitted extends Trial {
  readonly values: SizeValues;
}

/**
 * The programs of an entry for all sizes of its ranges. Rejects with E_UNSUPPORTED, naming sizes and
 * operation, where the function does something else at some sizes, where a number has no formula, or
 * where an operation cannot do with a varying size.
 */
export async function rangedEntry(
  point: OpenPoint,
  ranges: SizeRanges,
  fixed: Sizes,
  state: unknown,
  table: WeightTable,
): Promise<RangedEntry> {
  const dims = [...ranges].map(([name, { min, max, multipleOf }]) => new Dim(name, min, max, multipleOf));
  return new Ranged({ point, dims, fixed, state, splits: 0, checksAll: false, trials: new Map() }).entry(
    table,
  );
}

/** A structure, the trials that it was made of, and more of them. */
interface Seen {
  readonly structure: SizeStructure;
  readonly witnesses: readonly Trial[];
  readonly others: readonly Trial[];
}

/** So many kinds of recordings are looked at for one that the others are too. */
const mostGroups = 8;

/** So many programs for single sizes at the beginning of ranges. */
const mostSplits = 4;

/** So often formulas are looked for again, with the sizes added at which those before did not hold. */
const mostRefinements = 8;

/** What a program is made for. */
interface RangedParts {
  readonly point: OpenPoint;
  readonly dims: readonly Dim[];
  readonly fixed: Sizes;
  readonly state: unknown;
  /** So many single sizes have programs of their own already. */
  readonly splits: number;
  readonly checksAll: boolean;
  /** The trials so far, by their sizes and by what they check. */
  readonly trials: Map<string, Trial>;
}

/** The function does something else at some sizes. */
class OtherComputation extends SinterError {}

/** Formulas that hold at the trials that they were found from, and do not hold at these. */
class OtherNumbers extends SinterError {
  trials: readonly Trial[] = [];
}

class Ranged {
  readonly #parts: RangedParts;
  readonly #point: OpenPoint;
  readonly #dims: readonly Dim[];
  /** The numbers of the structure. */
  #numbers = new Numbers();
  /** The numbers that programs read, or that their room is for. */
  readonly #formulas = new Map<VaryingNumber, Formula>();

  constructor(parts: RangedParts) {
    this.#parts = parts;
    this.#point = parts.point;
    this.#dims = parts.dims;
  }

  #with(changes: Partial<RangedParts>): Ranged {
    return new Ranged({ ...this.#parts, ...changes });
  }

  async entry(table: WeightTable): Promise<RangedEntry> {
    let trials: readonly Trial[];
    let split: Dim | undefined;
    try {
      const { structure: seen, witnesses, others } = await this.#structure();
      trials = [...witnesses, ...others];
      const { structure, odd } = this.#widened(seen, witnesses, trials);
      split = this.#parts.splits < mostSplits ? splitOf(this.#dims, trials, odd) : undefined;
      if (split === undefined) return await this.#refined(structure, trials, table);
    } catch (error) {
      if (this.#parts.checksAll || !(error instanceof OtherComputation)) throw error;
      // Indices that are proven to be right at some sizes only are checked at these and not at others.
      return this.#with({ checksAll: true }).entry(table);
    }
    return this.#apart(split, trials, table);
  }

  /**
   * One program for all sizes. Of formulas that give a number at all trials the first is not always the one that made it: the
   * sizes where it does not hold say more.
   */
  async #refined(
    structure: SizeStructure,
    trials: readonly Trial[],
    table: WeightTable,
  ): Promise<RangedEntry> {
    let all = trials;
    for (let turn = 0; ; turn++) {
      try {
        return await this.#together(structure, all, table, turn);
      } catch (error) {
        if (turn === mostRefinements || !(error instanceof OtherNumbers)) throw error;
        all = [...all, ...error.trials];
        this.#formulas.clear();
      }
    }
  }

  async #together(
    structure: SizeStructure,
    trials: readonly Trial[],
    table: WeightTable,
    turn: number,
  ): Promise<RangedEntry> {
    const fitted = await this.#fitted(structure, trials);
    const formulas = this.#formulasOf(fitted);
    const variants = this.#variants(structure, fitted, formulas);
    const [first] = fitted as [Fitted];
    const { wiring } = first.own;
    const ofTrials = (
      read: (own: TracedEntry) => number,
      what: string = 'the random numbers that a call draws',
    ): Formula =>
      this.#formulaOf(
        formulas,
        fitted.map(({ own }) => read(own)),
        what,
      );
    const sources = wiring.sources.map((source, i): ScalarSource => {
      return 'counter' in source ? { ...source, offset: ofTrials((own) => offsetOf(own, i)) } : source;
    });
    const draws = ofTrials((own) => own.wiring.draws as number);
    const entry = this.#entryOf(fitted, formulas);
    const checks = wiring.checks.map((check, i): Checking => {
      const [first, end] = (['first', 'end'] as const).map((of) =>
        ofTrials((own) => own.wiring.checks[i]![of] as number, `a limit of ${check.what}s`),
      ) as [Formula, Formula];
      const isSame = fitted.every(({ own }) => own.wiring.checks[i]!.where === check.where);
      return { ...check, first, end, ...(!isSame && { where: 'what the call has' }) };
    });
    const scalars = { sources, draws, checks };
    await this.#check(structure, first, entry, scalars, formulas, turn);
    const main = wiredEntry(first.recording, table);
    const least = Object.fromEntries(this.#dims.map(({ name, min }) => [name, min]));
    const cases = variants.map(({ upTo, variant }) => {
      const largest = fitted.find(({ sizes }) =>
        Object.keys(upTo).every((name) => sizes[name] === upTo[name]),
      )!;
      return { sizes: upTo, least, traced: sizedProgram(main, largest, variant, scalars, this.#formulas) };
    });
    return { entry, cases };
  }

  #formulasOf(trials: readonly Trial[]): Formulas {
    const sizes = trials.map((trial) => trial.sizes);
    return new Formulas(
      this.#dims.map(({ name }) => name),
      sizes,
      countOf(this.#dims) === new Set(sizes.map((at) => JSON.stringify(at))).size,
    );
  }

  /** What the entry takes and gives, as all trials say. */
  #entryOf(trials: readonly Trial[], formulas: Formulas): Omit<BundleEntry, 'programs'> {
    const ports = openPorts(trials, (sizes, what) => this.#formulaOf(formulas, sizes, what));
    if (ports === undefined) throw this.#refusal(`takes or returns other tensors at some ${this.#names()}`);
    const ranges = this.#dims.map(
      ({ name, min, max, multipleOf }) => [name, [min, max, multipleOf]] as const,
    );
    return { ...ports, built: this.#shown(), ranges: Object.fromEntries(ranges) };
  }

  /** The function at these sizes, which it is recorded at once. */
  async #trial(own: Sizes): Promise<Trial> {
    const { fixed, state, checksAll, trials } = this.#parts;
    const names = [...(this.#point.ranges?.keys() ?? [])];
    const given = Object.entries({ ...fixed, ...own });
    const sizes = Object.fromEntries(given.sort(([a], [b]) => names.indexOf(a) - names.indexOf(b)));
    const key = keyOf(sizes, checksAll);
    const trial = trials.get(key) ?? (await trialOf(this.#point, sizes, state, { checksAll }));
    trials.set(key, trial);
    return trial;
  }

  async #trials(all: readonly Sizes[]): Promise<Trial[]> {
    const trials: Trial[] = [];
    for (const sizes of all) trials.push(await this.#trial(sizes));
    return trials;
  }

  /** Trials to hold the structure to: of a part of ranges those of the whole, and the ends of the part. */
  #others(): Promise<Trial[]> {
    const { fixed, checksAll, trials } = this.#parts;
    const points = pointsOf(this.#dims);
    const isWithin = (sizes: Sizes): boolean =>
      Object.entries(fixed).every(([name, size]) => sizes[name] === size) &&
      this.#dims.every(({ name, min, max }) => sizes[name]! >= min && sizes[name]! <= max);
    const known = [...trials].flatMap(([key, { sizes }]) =>
      key === keyOf(sizes, checksAll) && isWithin(sizes) ? [sizes] : [],
    );
    const least = Object.fromEntries(this.#dims.map(({ name, min }) => [name, min]));
    return this.#trials(known.length < points.length ? points : [least, ...upToOf(this.#dims), ...known]);
  }

  /** Tries the function at a few sizes until its recordings are one structure, and then at others. */
  async #structure(): Promise<Seen> {
    let difference: Exclude<ReturnType<typeof generalise>, SizeStructure> | undefined;
    // At the smallest size, often 1, views may change nothing: it is no good witness.
    const larger = this.#dims.map(({ name, min, max, multipleOf }) => {
      return new Dim(name, Math.min(max, min + multipleOf), max, multipleOf);
    });
    const joints = jointsOf(larger, unconstrained);
    const fixed = new Set<number>();
    const tried: Trial[] = [];
    for (let turn = 0; turn < 3; turn++) {
      const sizes = trialSizesOf(joints, fixed, turn).map((at) => Object.fromEntries(at));
      const witnesses = await this.#trials(sizes);
      tried.push(...witnesses);
      if (turn === 0) {
        // Sizes that tensors have anyway are no good witnesses.
        for (const number of fixedSizes(witnesses)) fixed.add(number);
        if (sizes.some((at) => Object.values(at).some((size) => fixed.has(size)))) continue;
      }
      const made = generalise(
        witnesses.map(({ recording }) => recording.partial.graphKey),
        this.#numbers,
      );
      if ('parts' in made) return { structure: made, witnesses, others: await this.#others() };
      difference = made;
    }
    const all = [...tried, ...(await this.#others())];
    const ofMost = this.#structureOfMost(all);
    if (ofMost !== undefined) return ofMost;
    const { node, other } = difference!;
    throw this.#refusal(
      `records ${node.op} at one size of ${this.#names()}, ${other?.op ?? 'nothing'} at another`,
      undefined,
      OtherComputation,
    );
  }

  /**
   * The structure of the recordings with the most nodes that are alike. Where a number that follows from sizes happens to be
   * one of the model's own, equal nodes become one, and views that change nothing are left out: short ranges have few sizes
   * where that happens to no number.
   */
  #structureOfMost(trials: readonly Trial[]): Seen | undefined {
    const groups = new Map<string, Trial[]>();
    for (const trial of trials) {
      const outline = outlineOf(trial.recording.partial.graphKey);
      groups.set(outline, [...(groups.get(outline) ?? []), trial]);
    }
    const isVaried = (group: readonly Trial[]): boolean =>
      this.#dims.every(({ name }) => new Set(group.map(({ sizes }) => sizes[name])).size > 1);
    const partsOf = ([trial]: readonly Trial[]): number => trial!.recording.partial.graphKey.parts.length;
    const varied = [...groups.values()].filter(isVaried).sort((a, b) => partsOf(b) - partsOf(a));
    let best: (Seen & { readonly numbers: Numbers; readonly odd: number }) | undefined;
    for (const witnesses of varied.slice(0, mostGroups)) {
      const numbers = new Numbers();
      const structure = generalise(
        witnesses.map(({ recording }) => recording.partial.graphKey),
        numbers,
      );
      if (!('parts' in structure)) continue;
      const others = trials.filter((trial) => !witnesses.includes(trial));
      const odd = others.filter((trial) => this.#fit(structure, trial, trials[0]!, numbers) === undefined);
      if (best === undefined || odd.length < best.odd)
        best = { structure, witnesses, others, numbers, odd: odd.length };
    }
    if (best !== undefined) this.#numbers = best.numbers;
    return best;
  }

  /**
   * The structure of more trials than the witnesses, and those that it is not the structure of. A number that a limit holds at
   * all witnesses looks like a constant: a trial below the limit shows that it varies.
   */
  #widened(
    seen: SizeStructure,
    witnesses: readonly Trial[],
    trials: readonly Trial[],
  ): { readonly structure: SizeStructure; readonly odd: readonly Trial[] } {
    const oddOf = (structure: SizeStructure, numbers: Numbers): Trial[] =>
      trials.filter((trial) => this.#fit(structure, trial, trials[0]!, numbers) === undefined);
    let structure = seen;
    let odd = oddOf(structure, this.#numbers);
    const chosen = [...witnesses];
    // The smallest size often has a program of its own.
    const isLarger = ({ sizes }: Trial): boolean => this.#dims.every(({ name, min }) => sizes[name]! > min);
    for (const trial of odd.filter(isLarger)) {
      if (!odd.includes(trial)) continue;
      const numbers = new Numbers();
      const recordings = [...chosen, trial].map(({ recording }) => recording.partial.graphKey);
      const made = generalise(recordings, numbers);
      if (!('parts' in made)) continue;
      const left = oddOf(made, numbers);
      if (left.length >= odd.length) continue;
      chosen.push(trial);
      [structure, odd, this.#numbers] = [made, left, numbers];
    }
    // Where a limit holds a number, a view may change nothing, and the recording is another one.
    const numbers = new Numbers();
    const keysOf = (all: readonly Trial[]): SizeRecording[] =>
      all.map(({ recording }) => recording.partial.graphKey);
    const larger = odd.filter(isLarger);
    const made = larger.length === 0 ? undefined : generaliseOver(keysOf(chosen), keysOf(larger), numbers);
    const left = made === undefined ? odd : oddOf(made, numbers);
    if (made !== undefined && left.length < odd.length)
      [structure, odd, this.#numbers] = [made, left, numbers];
    return { structure, odd };
  }

  #names(): string {
    return this.#dims.map(({ name }) => name).join(', ');
  }

  #refusal<Kind extends SinterError = SinterError>(
    problem: string,
    hint?: string,
    Kind: new (...args: ConstructorParameters<typeof SinterError>) => Kind = SinterError as never,
  ): Kind {
    const wanted = hint ?? `a size instead of a range: --dim ${this.#dims[0]!.name}=${this.#dims[0]!.max}`;
    return new Kind('E_UNSUPPORTED', `build: ${this.#point.name} ${problem}\n  try: ${wanted}`);
  }

  #shown(): string {
    const parts = this.#dims.map(({ name, min, max, multipleOf }) => {
      return `${name} ${min} to ${max}${multipleOf === 1 ? '' : `, a multiple of ${multipleOf}`}`;
    });
    return parts.join('; ');
  }

  /** The numbers of a trial; undefined where it is another computation. */
  #fit(
    structure: SizeStructure,
    { recording, own }: Trial,
    first: Trial,
    numbers: Numbers = this.#numbers,
  ): SizeValues | undefined {
    const { graphKey, graph } = recording.partial;
    const matched = match(structure, graphKey, numbers);
    const isSame =
      matched !== undefined &&
      matched.leaves.every((leaf, i) => leaf === i) &&
      matched.leaves.length === graph.parameters.length &&
      likeness(own) === likeness(first.own);
    return isSame ? matched.values : undefined;
  }

  /** Trials with the numbers of their sizes. Rejects where one is another computation. */
  async #fitted(structure: SizeStructure, trials: readonly Trial[]): Promise<Fitted[]> {
    const fitted = trials.map((trial): Fitted => {
      const values = this.#fit(structure, trial, trials[0]!);
      if (values !== undefined) return { ...trial, values };
      throw this.#refusal(
        `does something else at ${showSizes(trial.sizes)} than at ${showSizes(trials[0]!.sizes)}`,
        'a range without this size, or no condition on a size in the function',
        OtherComputation,
      );
    });
    for (const trial of fitted.slice(1)) {
      const odd = await oddWeight(fitted[0]!, trial);
      if (odd === undefined) continue;
      const type = showShape(odd.shape, odd.dtype);
      throw this.#refusal(
        `makes a tensor of elements that follow from ${this.#names()}: ${type} at ${showSizes(fitted[0]!.sizes)}`,
        'arange and arithmetic instead of elements computed in JavaScript',
      );
    }
    return fitted;
  }

  /** Programs for the smallest value of a size, and for the others. */
  async #apart(of: Dim, trials: readonly Trial[], table: WeightTable): Promise<RangedEntry> {
    const { name, min, max, multipleOf } = of;
    const later = new Dim(name, min + multipleOf, max, multipleOf);
    const splits = this.#parts.splits + 1;
    const dims = this.#dims.map((dim) => (dim === of ? later : dim));
    const rest = await this.#with({ dims, splits }).entry(table);
    const others = this.#dims.filter((dim) => dim !== of);
    const fixed = { ...this.#parts.fixed, [name]: min };
    const own = this.#with({ dims: others, fixed, splits });
    const first = others.length > 0 ? await own.entry(table) : { cases: [await own.#single(table)] };
    const formulas = this.#formulasOf(trials);
    // Those that follow from numbers between inputs and outputs, which only the programs of the rest know.
    for (const formula of Object.values(rest.entry.derived ?? {})) formulas.suggest(formula);
    const entry = this.#entryOf(trials, formulas);
    const least = first.cases.map((one) => ({
      ...one,
      sizes: { ...one.sizes, [name]: min },
      least: { ...one.least, [name]: min },
    }));
    return { entry, cases: [...least, ...rest.cases] };
  }

  /** The program where no size is left open. */
  async #single(table: WeightTable): Promise<RangedCase> {
    const { recording } = await this.#trial({});
    return { sizes: {}, least: {}, traced: wiredEntry(recording, table) };
  }

  #variants(
    structure: SizeStructure,
    fitted: readonly Fitted[],
    formulas: Formulas,
  ): { readonly upTo: Sizes; readonly variant: Variant }[] {
    // What recordings say, for what operations refuse and for sizes between those tried.
    const said = new Map<VaryingNumber, Formula>();
    for (const num of fitted[0]!.values.keys()) {
      const formula = formulas.find(fitted.map(({ values }) => values.get(num)!));
      if (formula !== undefined) said.set(num, formula);
    }
    const describe = (num: VaryingNumber): string => {
      const formula = said.get(num);
      return formula === undefined ? `a size made of ${this.#names()}` : showFormula(formula);
    };
    return upToOf(this.#dims).map((upTo) => {
      const isWithin = (sizes: Sizes): boolean =>
        Object.keys(upTo).every((name) => sizes[name]! <= upTo[name]!);
      const samples = fitted.filter(({ sizes }) => isWithin(sizes)).map(({ values }) => values);
      const within = this.#dims.map(
        ({ name, min, multipleOf }) => new Dim(name, min, upTo[name]!, multipleOf),
      );
      const random = randomNumbers(2);
      for (let turn = 0; turn < 16; turn++) {
        const variant = variantOf(structure, this.#numbers, samples, describe);
        for (const num of [...variant.scalars.map((scalar) => scalar.num), ...variant.capacities.keys()])
          if (!this.#formulas.has(num))
            this.#formulas.set(num, this.#numberOf(num, structure, fitted, formulas));
        // Most numbers are greatest at the largest sizes, but not all.
        const beyond = sizesWithin(within, random).find((sizes) =>
          [...variant.capacities].some(([num, most]) => valueOf(this.#formulas.get(num)!, sizes) > most),
        );
        if (beyond === undefined) return { upTo, variant };
        samples.push(new Map([...said].map(([num, formula]) => [num, valueOf(formula, beyond)])));
      }
      throw this.#refusal(`has sizes that are greatest at no end of ${this.#names()}`);
    });
  }

  /** The formula of a number. Throws E_UNSUPPORTED naming the operation that has it. */
  #numberOf(
    num: VaryingNumber,
    structure: SizeStructure,
    fitted: readonly Fitted[],
    formulas: Formulas,
  ): Formula {
    const part = structure.parts.find(({ shape, attrs }) => holdsNumber([shape, attrs], num));
    const what =
      part === undefined ? 'a size' : `a number of ${part.op} ${showShape(part.node.shape, part.node.dtype)}`;
    const values = fitted.map(
      (trial) => trial.values.get(num) ?? this.#numbers.complete(trial.values, [num])?.get(num) ?? NaN,
    );
    return this.#formulaOf(formulas, values, what);
  }

  #formulaOf(formulas: Formulas, values: readonly number[], what: string): Formula {
    const found = formulas.find(values);
    if (found !== undefined) return found;
    const seen = [...new Set(values)].slice(0, 4).join(', ');
    throw this.#refusal(`has ${what} that no formula known here gives of ${this.#names()}: ${seen}, …`);
  }

  /** Records the function at sizes that no formula was found from, and holds formulas to them. */
  async #check(
    structure: SizeStructure,
    first: Fitted,
    entry: Pick<BundleEntry, 'inputs' | 'outputs' | 'derived'>,
    { sources, draws, checks }: Scalars,
    { doubts }: Formulas,
    turn: number,
  ): Promise<void> {
    const random = randomNumbers(3 + turn);
    const all = Array.from({ length: 12 }, () => drawnFromAll(this.#dims, random));
    // Whole parts of quotients repeat: a row of sizes meets each of their rests.
    const text = JSON.stringify([[...this.#formulas.values()], entry.derived, sources, draws, checks]);
    if (text.includes('"floor"'))
      for (const { name, min, max, multipleOf } of this.#dims)
        for (let i = 0; i < mostDivisor && min + i * multipleOf <= max; i++)
          all.push({ ...drawnFromAll(this.#dims, random), [name]: min + i * multipleOf });
    for (const [name, sizes] of doubts)
      for (const size of sizes) all.push({ ...drawnFromAll(this.#dims, random), [name]: size });
    const [, ...others] = await this.#fitted(structure, [first, ...new Set(await this.#trials(all))]);
    const odd = new Set<Trial>();
    let refusal: OtherNumbers | undefined;
    for (const trial of others) {
      const { sizes, values, own } = trial;
      const known: Record<string, number> = { ...sizes };
      for (const [name, formula] of Object.entries(entry.derived ?? {}))
        known[name] = valueOf(formula, sizes);
      const expect = (formula: Formula, value: number | undefined): void => {
        if (Object.is(valueOf(formula, known), value)) return;
        const problem = `${showFormula(formula)} is not ${value} at ${showSizes(sizes)}`;
        refusal ??= this.#refusal(
          `follows from ${this.#names()} by no formula known here: ${problem}`,
          undefined,
          OtherNumbers,
        );
        odd.add(trial);
      };
      for (const [num, formula] of this.#formulas)
        expect(formula, values.get(num) ?? this.#numbers.complete(values, [num])?.get(num));
      expect(draws, own.wiring.draws as number);
      sources.forEach((source, i) => 'counter' in source && expect(source.offset, offsetOf(own, i)));
      checks.forEach(({ first: start, end }, i) => {
        const { first: ownStart, end: ownEnd } = own.wiring.checks[i]!;
        expect(start, ownStart as number);
        expect(end, ownEnd as number);
      });
      for (const [ports, theirs] of [
        [entry.inputs, own.inputs],
        [entry.outputs, own.outputs],
      ] as const)
        ports.forEach((port, i) => {
          if ('shape' in port) port.shape.forEach((size, axis) => expect(size, shapeOf(theirs[i]!)[axis]));
        });
    }
    if (refusal === undefined) return;
    refusal.trials = [...odd];
    throw refusal;
  }
}

function keyOf(sizes: Sizes, checksAll: boolean): string {
  return JSON.stringify([sizes, checksAll]);
}

function holdsNumber(within: unknown, num: Num): boolean {
  if (within === num) return true;
  if (typeof within !== 'object' || within === null || isVarying(within)) return false;
  return Object.values(within).some((part) => holdsNumber(part, num));
}
