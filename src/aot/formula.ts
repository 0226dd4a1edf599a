// Numbers that follow from sizes, as formulas that a bundle can compute: of a number's values at some
// sizes one that gives them all. Polynomials with rational coefficients are solved for exactly, and
// others are reduced to them: whole parts of quotients, limits, roots, reciprocals and logarithms.
// That a formula holds at other sizes is for its caller to see (aot/ranges.ts).

import type { Formula, Sizes } from '../bundle-runtime/manifest.ts';
import { valueOf } from '../bundle-runtime/sizes.ts';

export type { Formula, Sizes } from '../bundle-runtime/manifest.ts';
export { valueOf } from '../bundle-runtime/sizes.ts';

/** A formula with its value at each sample. */
interface Known {
  readonly formula: Formula;
  readonly values: readonly number[];
}

/** Divisors of whole parts that are looked for. */
export const mostDivisor = 64;

function isPowerOfTwo(whole: number): boolean {
  return Number.isInteger(Math.log2(whole));
}

/** So many sizes at each end of a range are looked at for where whole parts of quotients differ. */
const mostLookedAt = 4096;

/** Of one size: `step · ⌊(a·size + b) / c⌋`, for each `b` up to a last one. */
interface WholeParts {
  readonly step: number;
  readonly a: number;
  readonly b: number;
  readonly lastB: number;
  readonly c: number;
}

/** Numbers of one size that sums of products are looked for among. */
const mostParts = 8;

export class Formulas {
  readonly #dims: readonly string[];
  readonly #samples: readonly Sizes[];
  readonly #known: Known[];

  readonly #isAll: boolean;
  readonly #doubts = new Map<string, Set<number>>();

  /** Formulas in these names, from values at these sizes; `isAll`: there are no others. */
  constructor(dims: readonly string[], samples: readonly Sizes[], isAll: boolean = false) {
    this.#isAll = isAll;
    this.#dims = dims;
    this.#samples = samples;
    this.#known = dims.map((name) => ({ formula: name, values: samples.map((sizes) => sizes[name]!) }));
  }

  /** By name: sizes where other formulas that give the same values at all samples give other values than those found. */
  get doubts(): ReadonlyMap<string, ReadonlySet<number>> {
    return this.#doubts;
  }

  /** Has a formula tried that was found at other samples. */
  suggest(formula: Formula): void {
    if (typeof formula === 'object')
      this.#known.push({ formula, values: this.#samples.map((sizes) => valueOf(formula, sizes)) });
  }

  /** A formula of these values, one a sample; undefined where none is found. */
  find(values: readonly number[]): Formula | undefined {
    const first = values[0]!;
    if (!values.every(Number.isFinite)) return undefined;
    if (values.every((value) => Object.is(value, first))) return Object.is(first, -0) ? undefined : first;
    const known = this.#known.find((one) => one.values.every((value, i) => Object.is(value, values[i])));
    if (known !== undefined) return known.formula;
    const isWhole = values.every(Number.isSafeInteger);
    const formula = isWhole ? this.#whole(values) : this.#real(values);
    if (formula !== undefined) this.#known.push({ formula, values });
    return formula;
  }

  /** The formula, or as its f32, where it gives these values. */
  #confirmed(formula: Formula | undefined, values: readonly number[]): Formula | undefined {
    if (formula === undefined) return undefined;
    const gives = (one: Formula): boolean =>
      this.#samples.every((sizes, i) => Object.is(valueOf(one, sizes), values[i]));
    const rounded: Formula = ['fround', formula];
    return gives(formula) ? formula : gives(rounded) ? rounded : undefined;
  }

  #whole(values: readonly number[]): Formula | undefined {
    return (
      this.#confirmed(this.#polynomial(values), values) ??
      this.#confirmed(this.#limited(values), values) ??
      this.#confirmed(this.#wholePart(values), values) ??
      this.#confirmed(this.#multiple(values), values) ??
      this.#confirmed(this.#ofTwo(values), values) ??
      this.#remainder(values) ??
      this.#ofParts(values)
    );
  }

  /** Of the lowest degree that gives these values at the samples that `among` says. */
  #polynomial(
    values: readonly number[],
    degrees: readonly number[] = [1, 2, 3],
    among: readonly number[] = values.map((_, i) => i),
    dims: readonly string[] = this.#dims,
  ): Formula | undefined {
    for (const degree of degrees) {
      const monomials = monomialsOf(dims.length, degree);
      // What has as many unknowns as values says nothing.
      if (!this.#isAll && monomials.length + 2 > among.length) return undefined;
      const rows = among.map((i) => {
        const sizes = dims.map((name) => BigInt(this.#samples[i]![name]!));
        const terms = monomials.map((powers) =>
          powers.reduce((product, power, k) => product * sizes[k]! ** BigInt(power), 1n),
        );
        return [...terms, BigInt(values[i]!)];
      });
      const found = solved(rows);
      if (found === undefined) continue;
      const terms = monomials.flatMap((powers, k) => {
        const coefficient = Number(found.over[k]!);
        const factors = powers.flatMap((power, d) => Array<Formula>(power).fill(dims[d]!));
        return coefficient === 0 ? [] : [times(factors, coefficient)];
      });
      const sum = terms.reduceRight<Formula>((rest, term) => (rest === 0 ? term : ['+', term, rest]), 0);
      return found.under === 1n ? sum : ['/', sum, Number(found.under)];
    }
    return undefined;
  }

  /** Of a size that is not followed beyond a limit, or below one. */
  #limited(values: readonly number[]): Formula | undefined {
    for (const [op, limit] of [
      ['min', Math.max(...values)],
      ['max', Math.min(...values)],
    ] as const) {
      const free = values.flatMap((value, i) => (value === limit ? [] : [i]));
      for (const name of this.#dims) {
        const inner = this.#polynomial(values, [1], free, [name]);
        const formula = this.#confirmed(inner && [op, inner, limit], values);
        if (formula !== undefined) return formula;
      }
    }
    return undefined;
  }

  /** `m · ⌊(a·size + b) / c⌋ + e` of one size. */
  #wholePart(values: readonly number[]): Formula | undefined {
    const common = values.reduce(
      (divisor, value) => greatestCommon(divisor, Math.abs(value - values[0]!)),
      0,
    );
    const least = Math.min(...values);
    for (const name of this.#dims) {
      const sizes = this.#samples.map((sample) => sample[name]!);
      // Few samples may have a divisor in common that others have not.
      const fitting = divisorsOf(common).flatMap((step) => wholePartsOf(sizes, values, step));
      const [first] = fitting;
      if (first === undefined) continue;
      // Few sizes may fit several: strides behind one another divide by powers of two mostly.
      const best = fitting.reduce((before, one) => {
        const isSimpler =
          one.step === before.step &&
          (Math.abs(one.a) < Math.abs(before.a) ||
            (one.a === before.a && isPowerOfTwo(one.c) && !isPowerOfTwo(before.c)));
        return isSimpler ? one : before;
      }, first);
      this.#doubt(name, sizes, best, fitting);
      const scaled = plus(times([name], best.a), best.b);
      return plus(times([['floor', ['/', scaled, best.c]]], best.step), least);
    }
    return undefined;
  }

  /** Notes sizes at which some of these whole parts are not the best one, together all that are not it at every size. */
  #doubt(name: string, sizes: readonly number[], best: WholeParts, fitting: readonly WholeParts[]): void {
    const [least, most] = [Math.min(...sizes), Math.max(...sizes)];
    const unit = sizes.reduce((divisor, size) => greatestCommon(divisor, size - least), 0);
    const count = (most - least) / unit + 1;
    const valueAt = ({ a, b, c, step }: WholeParts, size: number): number =>
      step * Math.floor((a * size + b) / c);
    let left = fitting;
    while (left.length > 0) {
      let [telling, told] = [NaN, 0];
      for (let i = 0; i < count; i++) {
        if (i === mostLookedAt && count > 2 * mostLookedAt) i = count - mostLookedAt;
        const size = least + i * unit;
        const value = valueAt(best, size);
        // What the first and the last give, all between them do.
        const isOther = (one: WholeParts): boolean =>
          valueAt(one, size) !== value || valueAt({ ...one, b: one.lastB }, size) !== value;
        const differing = left.filter(isOther).length;
        if (differing > told) [telling, told] = [size, differing];
      }
      if (told === 0) return;
      const value = valueAt(best, telling);
      left = left.flatMap((one) => {
        const first = one.c * (value / one.step) - one.a * telling;
        const [b, lastB] = [Math.max(one.b, first), Math.min(one.lastB, first + one.c - 1)];
        return value % one.step === 0 && b <= lastB ? [{ ...one, b, lastB }] : [];
      });
      this.#doubts.set(name, (this.#doubts.get(name) ?? new Set()).add(telling));
    }
  }

  /** Of a size times what has a formula of its own. */
  #multiple(values: readonly number[]): Formula | undefined {
    for (const { formula, values: by } of this.#known.slice(0, this.#dims.length)) {
      const rest = values.map((value, i) => value / by[i]!);
      if (!rest.every(Number.isSafeInteger)) continue;
      const other =
        this.#confirmed(this.#limited(rest), rest) ??
        this.#confirmed(this.#wholePart(rest), rest) ??
        this.#multiple(rest);
      if (other !== undefined) return ['*', formula, other];
    }
    return undefined;
  }

  /** What a number is more than a multiple: the pixels that pad a picture to a whole number of strides. */
  #remainder(values: readonly number[]): Formula | undefined {
    if (Math.max(...values) - Math.min(...values) >= mostDivisor) return undefined;
    for (const { formula, values: by } of this.#known) {
      if (namesIn(formula).length !== 1 || !by.every(Number.isSafeInteger)) continue;
      for (const sign of [1, -1]) {
        const rest = values.map((value, i) => value - sign * by[i]!);
        const found = this.#confirmed(this.#wholePart(rest), rest);
        if (found !== undefined)
          return this.#confirmed(['+', sign === 1 ? formula : ['*', -1, formula], found], values);
      }
    }
    return undefined;
  }

  /** The product or the sum of two numbers that have formulas: elements of a picture behind strides, rows of two of them. */
  #ofTwo(values: readonly number[]): Formula | undefined {
    const known = new Map(this.#known.map((one) => [String(one.values), one.formula]));
    for (const { formula, values: by } of this.#known) {
      const factor = known.get(String(values.map((value, i) => value / by[i]!)));
      if (factor !== undefined) return ['*', formula, factor];
      const addend = known.get(String(values.map((value, i) => value - by[i]!)));
      if (addend !== undefined) return ['+', formula, addend];
    }
    return undefined;
  }

  /**
   * Sums of products of numbers of one size each, such as whole parts of quotients: the elements of a picture behind strides and
   * a token more.
   */
  #ofParts(values: readonly number[]): Formula | undefined {
    const parts = this.#dims.map((name) => {
      // Numbers that are one another's multiples, or differ by the same everywhere, make the same sums.
      const different = new Map<string, Known>();
      for (const one of this.#known) {
        const isPart = String(namesIn(one.formula)) === name && !isPolynomial(one.formula);
        if (!isPart || !one.values.every(Number.isSafeInteger)) continue;
        const away = one.values.map((value) => value - one.values[0]!);
        const unit = away.find((value) => value !== 0)!;
        const key = String(away.map((value) => value / unit));
        if (!different.has(key)) different.set(key, one);
      }
      return [...different.values()].slice(0, mostParts);
    });
    const own = this.#known.slice(0, this.#dims.length);
    const choices = own.reduce<(readonly Known[])[]>(
      (all, dim, i) => [dim, ...parts[i]!].flatMap((one) => all.map((before) => [...before, one])),
      [[]],
    );
    // Two of one size too: rows at one scale less those at another.
    const pairs = parts.flatMap((all) =>
      all.flatMap((one, i) => all.slice(i + 1).map((other) => [one, other] as const)),
    );
    for (const chosen of [...choices, ...pairs]) {
      const found = this.#confirmed(multilinear(chosen, values, this.#isAll), values);
      if (found !== undefined) return found;
    }
    return undefined;
  }

  /** Of numbers that JavaScript made of sizes, as `1 / n` and `Math.sqrt(n)` are. */
  #real(values: readonly number[]): Formula | undefined {
    for (const { to, back, most = 16 } of inverses) {
      for (let by = 1; by <= most; by++) {
        const mapped = values.map((value) => by * to(value));
        const whole = mapped.map(Math.round);
        const isNear = mapped.every(
          (value, i) =>
            value === 0 || (whole[i] !== 0 && Math.abs(value - whole[i]!) <= 1e-6 * Math.abs(value)),
        );
        const inner = isNear && whole.every(Number.isSafeInteger) ? this.find(whole) : undefined;
        const found = inner === undefined ? undefined : this.#oneOf(back(inner, by), values);
        if (found !== undefined) return found;
      }
    }
    // A function of what has a formula, times some constant.
    for (const { formula, values: base } of this.#known) {
      for (const { of, shown } of shapes) {
        const ratios = base.map((value, i) => values[i]! / of(value));
        const ratio = ratios[0]!;
        if (!ratios.every((other) => Math.abs(other - ratio) <= 1e-6 * Math.abs(ratio))) continue;
        const constants = new Set([7, 9, 12, 15].map((digits) => Number(ratio.toPrecision(digits))));
        for (const constant of [...constants, ...ratios]) {
          const found = Number.isFinite(constant) && this.#oneOf(shown(formula, constant), values);
          if (found) return found;
        }
      }
    }
    return undefined;
  }

  #oneOf(formulas: readonly Formula[], values: readonly number[]): Formula | undefined {
    for (const formula of formulas) {
      const found = this.#confirmed(formula, values);
      if (found !== undefined) return found;
    }
    return undefined;
  }
}

/** Whole parts that give the differences of these values to the least of them. */
function wholePartsOf(sizes: readonly number[], values: readonly number[], step: number): WholeParts[] {
  const least = Math.min(...values);
  const steps = values.map((value) => (value - least) / step);
  const [low, high] = [sizes.indexOf(Math.min(...sizes)), sizes.indexOf(Math.max(...sizes))];
  const reach = sizes[high]! - sizes[low]!;
  if (reach === 0) return [];
  const slope = (steps[high]! - steps[low]!) / reach;
  const fitting: WholeParts[] = [];
  for (let c = 2; c <= mostDivisor; c++) {
    const a = Math.round(slope * c);
    if (a === 0 || Math.abs(slope - a / c) > 1 / reach + 1e-9) continue;
    const rests = steps.map((value, i) => c * value - a * sizes[i]!);
    const b = Math.max(...rests);
    const lastB = Math.min(...rests) + c - 1;
    if (b <= lastB) fitting.push({ step, a, b, lastB, c });
  }
  return fitting;
}

/** Divisors of a whole number, large ones first. */
function divisorsOf(whole: number): number[] {
  const small: number[] = [];
  for (let k = 1; k * k <= whole && k <= 1024; k++) if (whole % k === 0) small.push(k);
  const large = small.map((k) => whole / k);
  return [...new Set([...large, ...small.reverse()])];
}

/** Functions that, times a number, make whole numbers of what JavaScript made of them, and their ways back. */
const inverses: readonly {
  readonly to: (value: number) => number;
  readonly back: (of: Formula, by: number) => readonly Formula[];
  /** The largest of the numbers; 16 by default. */
  readonly most?: number;
}[] = [
  // Steps between the pixels of a picture whose corners meet those of one of a fixed size.
  { to: (value) => value, back: (of, by) => [over(of, by)], most: 1024 },
  { to: (value) => 1 / value, back: (of, by) => [['/', by, of]] },
  { to: (value) => value * value, back: (of, by) => [['sqrt', over(of, by)]] },
  {
    to: (value) => 1 / (value * value),
    back: (of, by) => [
      ['/', 1, ['sqrt', over(of, by)]],
      ['sqrt', ['/', by, of]],
    ],
  },
];

function over(of: Formula, by: number): Formula {
  return by === 1 ? of : ['/', of, by];
}

/** Functions of a number, and how they are written with a constant factor. */
const shapes: readonly {
  readonly of: (value: number) => number;
  readonly shown: (of: Formula, by: number) => readonly Formula[];
}[] = [
  {
    of: (value) => value,
    shown: (of, by) => [
      ['*', by, of],
      ['/', of, 1 / by],
    ],
  },
  {
    of: (value) => 1 / value,
    shown: (of, by) => [
      ['/', by, of],
      ['*', by, ['/', 1, of]],
    ],
  },
  {
    of: Math.sqrt,
    shown: (of, by) => [
      ['*', by, ['sqrt', of]],
      ['/', ['sqrt', of], 1 / by],
    ],
  },
  {
    of: (value) => 1 / Math.sqrt(value),
    shown: (of, by) => [
      ['/', by, ['sqrt', of]],
      ['*', by, ['/', 1, ['sqrt', of]]],
    ],
  },
  {
    of: Math.log,
    shown: (of, by) => [
      ['*', by, ['log', of]],
      ['/', ['log', of], 1 / by],
    ],
  },
  { of: (value) => 1 / Math.log(value), shown: (of, by) => [['/', by, ['log', of]]] },
];

/** The sum of products of different ones of these numbers that gives these values. */
function multilinear(of: readonly Known[], values: readonly number[], isAll: boolean): Formula | undefined {
  const monomials = monomialsOf(of.length, of.length).filter((powers) => powers.every((power) => power < 2));
  if (!isAll && monomials.length + 2 > values.length) return undefined;
  const rows = values.map((value, i) => {
    const terms = monomials.map((powers) =>
      powers.reduce((product, power, k) => product * BigInt(power === 0 ? 1 : of[k]!.values[i]!), 1n),
    );
    return [...terms, BigInt(value)];
  });
  const found = solved(rows);
  if (found === undefined) return undefined;
  const terms = monomials.flatMap((powers, k) => {
    const coefficient = Number(found.over[k]!);
    const factors = powers.flatMap((power, i) => (power === 0 ? [] : [of[i]!.formula]));
    return coefficient === 0 ? [] : [times(factors, coefficient)];
  });
  const sum = terms.reduceRight<Formula>((rest, term) => (rest === 0 ? term : ['+', term, rest]), 0);
  return found.under === 1n ? sum : ['/', sum, Number(found.under)];
}

/** The sizes that a formula is of. */
function namesIn(formula: Formula): readonly string[] {
  if (typeof formula === 'string') return [formula];
  if (typeof formula === 'number') return [];
  const [, ...of] = formula;
  return [...new Set(of.flatMap(namesIn))];
}

/** Whether a formula has no functions but sums, products and quotients. */
function isPolynomial(formula: Formula): boolean {
  if (typeof formula !== 'object') return true;
  const [op, ...of] = formula;
  return '+*/'.includes(op) && of.every(isPolynomial);
}

function times(factors: readonly Formula[], by: number): Formula {
  const product = factors.reduce<Formula | undefined>(
    (rest, factor) => (rest === undefined ? factor : ['*', factor, rest]),
    undefined,
  );
  if (product === undefined) return by;
  return by === 1 ? product : ['*', by, product];
}

function plus(formula: Formula, by: number): Formula {
  return by === 0 ? formula : ['+', formula, by];
}

/** Powers of each of so many sizes, of a total degree up to this, low ones first. */
function monomialsOf(count: number, degree: number): readonly (readonly number[])[] {
  let all: number[][] = [[]];
  for (let i = 0; i < count; i++)
    all = all.flatMap((powers) => Array.from({ length: degree + 1 }, (_, power) => [...powers, power]));
  const total = (powers: readonly number[]): number => powers.reduce((sum, power) => sum + power, 0);
  return all.filter((powers) => total(powers) <= degree).sort((a, b) => total(b) - total(a));
}

/**
 * Solves linear equations, the right side last: numerators over one denominator. Unknowns that nothing
 * decides are 0; undefined where the equations contradict one another.
 */
function solved(
  rows: readonly (readonly bigint[])[],
): { readonly over: readonly bigint[]; readonly under: bigint } | undefined {
  const left = rows.map((row) => [...row]);
  const count = left[0]!.length - 1;
  const pivots: { readonly row: bigint[]; readonly column: number }[] = [];
  for (let column = 0; column < count; column++) {
    const at = left.findIndex((row) => row[column] !== 0n);
    if (at < 0) continue;
    const [row] = left.splice(at, 1) as [bigint[]];
    for (const other of [...left, ...pivots.map((pivot) => pivot.row)]) reduce(other, row, column);
    pivots.push({ row, column });
  }
  if (left.some((row) => row[count] !== 0n)) return undefined;
  const under = pivots.reduce((all, { row, column }) => {
    const own = abs(row[column]!) / greatest(row[column]!, row[count]!);
    return (all / greatest(all, own)) * own;
  }, 1n);
  const over = Array<bigint>(count).fill(0n);
  for (const { row, column } of pivots) over[column] = (row[count]! * under) / row[column]!;
  return { over, under };
}

/** Takes a multiple of a row away, so that a column is 0; entries stay whole and small. */
function reduce(row: bigint[], by: readonly bigint[], column: number): void {
  const [own, pivot] = [row[column]!, by[column]!];
  if (own === 0n) return;
  row.forEach((value, i) => (row[i] = value * pivot - by[i]! * own));
  const common = row.reduce(greatest, 0n);
  if (common > 1n) row.forEach((value, i) => (row[i] = value / common));
}

function abs(value: bigint): bigint {
  return value < 0n ? -value : value;
}

function greatest(a: bigint, b: bigint): bigint {
  let [x, y] = [abs(a), abs(b)];
  while (y !== 0n) [x, y] = [y, x % y];
  return x;
}

function greatestCommon(a: number, b: number): number {
  let [x, y] = [a, b];
  while (y !== 0) [x, y] = [y, x % y];
  return x;
}

/** A formula as text: `2 * length + 1`. */
export function showFormula(formula: Formula): string {
  if (typeof formula !== 'object') return String(formula);
  const [op, ...of] = formula;
  const parts = of.map(showFormula);
  if (!'+*/'.includes(op)) return `${op}(${parts.join(', ')})`;
  const inner = of.map((part, i) => {
    const isSum = typeof part === 'object' && part[0] === '+';
    const isQuotient = typeof part === 'object' && op === '/' && i === 1 && '*/'.includes(part[0]);
    return op !== '+' && (isSum || isQuotient) ? `(${parts[i]})` : parts[i]!;
  });
  return inner.join(` ${op} `).replaceAll('+ -', '- ');
}
