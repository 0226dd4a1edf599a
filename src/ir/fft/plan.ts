// How a discrete Fourier transform of a length is decomposed: the radices of its stages if one kernel can
// compute it, two shorter transforms if it is longer (Bailey's four steps, 1990), or a convolution if it has
// large prime factors (Bluestein, 1970). A plan depends on the length alone, because it determines the layout
// of the table of constants that the transform is given (table.ts).

/** Points that the workgroup of any target transforms in one kernel. */
export const mostPoints = 4096;
/** The largest prime whose transforms are written out. */
export const largestPrime = 31;

/** Stages of radices whose product is the length, one after another. */
export interface Stages {
  readonly radices: readonly number[];
  /** Where the stages' constants begin in the table. */
  readonly start: number;
}

export type FftPlan =
  /**
   * One kernel: `wide` takes few large radices; `narrow` fours, of which sixteen registers hold all
   * points, and ends with one where it can.
   */
  | {
      readonly kind: 'one';
      readonly n: number;
      readonly size: number;
      readonly wide: Stages;
      readonly narrow: Stages;
    }
  /**
   * n = columns · rows, element (c, r) at c·rows + r: transforms along c, factors w_n^(r·k), and
   * transforms along r. A factor is the product of two: k = `step`·high + low.
   */
  | {
      readonly kind: 'split';
      readonly n: number;
      readonly size: number;
      readonly columns: FftPlan;
      readonly rows: FftPlan;
      readonly step: number;
      /** Where the factors begin, and the tables of the two plans. */
      readonly starts: { readonly factors: number; readonly columns: number; readonly rows: number };
    }
  /** A convolution with a chirp, by transforms of at least 2n − 1 points. */
  | {
      readonly kind: 'chirp';
      readonly n: number;
      readonly size: number;
      readonly over: FftPlan;
      readonly starts: { readonly filter: number; readonly over: number };
    };

const plans = new Map<number, FftPlan>();

/** The plan of a length, at least 1. */
export function fftPlan(n: number): FftPlan {
  const known = plans.get(n);
  if (known !== undefined) return known;
  const made = makePlan(n);
  // Lengths of a program are few; a program that takes every length does not keep all of them.
  if (plans.size >= 256) plans.clear();
  plans.set(n, made);
  return made;
}

/** Elements of the table that a transform of this length takes. */
export function fftTableSize(n: number): number {
  return fftPlan(n).size;
}

function makePlan(n: number): FftPlan {
  const primes = primeFactors(n);
  if ((primes.at(-1) ?? 1) > largestPrime) return chirpPlan(n);
  return n <= mostPoints ? onePlan(n) : splitPlan(n, primes);
}

function onePlan(n: number): FftPlan {
  const wide = { radices: radicesOf(n, 'eights'), start: 0 };
  const radices = radicesOf(n, 'fours');
  const end = stageSize(wide.radices);
  const narrow = radices.join() === wide.radices.join() ? wide : { radices, start: end };
  const size = narrow === wide ? end : end + stageSize(radices);
  return { kind: 'one', n, size, wide, narrow };
}

function splitPlan(n: number, primes: readonly number[]): FftPlan {
  const count = columnsOf(n, primes);
  const [columns, rows] = [fftPlan(count), fftPlan(n / count)];
  const step = stepOf(count);
  const factors = 0;
  const before = padded(2 * (n / count) * (step + count / step));
  const starts = { factors, columns: before, rows: before + columns.size };
  return { kind: 'split', n, size: starts.rows + rows.size, columns, rows, step, starts };
}

function chirpPlan(n: number): FftPlan {
  const over = fftPlan(nextSmooth(2 * n - 1));
  const filter = padded(2 * padded(n));
  const starts = { filter, over: filter + 2 * over.n };
  return { kind: 'chirp', n, size: starts.over + over.size, over, starts };
}

/** Sections of a table begin at multiples of four, where vectors are read whole. */
export function padded(size: number): number {
  return 4 * Math.ceil(size / 4);
}

/** Where each stage's factors begin behind `start`, and their end. */
export function stageStarts({ radices, start }: Stages): readonly number[] {
  const starts = [start];
  let below = 1;
  for (const radix of radices) {
    starts.push(starts.at(-1)! + (below === 1 ? 0 : 2 * (radix - 1) * padded(below)));
    below *= radix;
  }
  return starts;
}

function stageSize(radices: readonly number[]): number {
  // Never empty: a table of a transform without factors has four zeros.
  return Math.max(4, stageStarts({ radices, start: 0 }).at(-1)!);
}

/** Radices whose product is n: what is odd, the largest first, then eights and fours. */
export function radicesOf(n: number, even: 'eights' | 'fours'): readonly number[] {
  let odd = n;
  let twos = 0;
  for (; odd % 2 === 0; odd /= 2) twos++;
  const most = twos % 3 === 1 && twos > 1 ? (twos - 4) / 3 : Math.floor(twos / 3);
  const eights = even === 'eights' ? most : twos % 2 === 1 && twos > 1 ? 1 : 0;
  const left = twos - 3 * eights;
  const powers = [
    ...Array<number>(eights).fill(8),
    ...Array<number>(left >> 1).fill(4),
    ...(left % 2 === 1 ? [2] : []),
  ];
  return n === 1 ? [1] : [...primeFactors(odd).toReversed(), ...powers];
}

/** Prime factors in ascending order; none of 1. */
export function primeFactors(n: number): readonly number[] {
  const found: number[] = [];
  let left = n;
  for (let prime = 2; prime * prime <= left; prime += prime === 2 ? 1 : 2)
    for (; left % prime === 0; left /= prime) found.push(prime);
  return left > 1 ? [...found, left] : found;
}

/** The divisor of n that is nearest to its root, of those whose cofactor takes few kernels. */
function columnsOf(n: number, primes: readonly number[]): number {
  let divisors = [1];
  for (const prime of primes) divisors = [...new Set(divisors.flatMap((d) => [d, d * prime]))];
  const root = Math.sqrt(n);
  const kernels = (d: number): number => Math.ceil(Math.log(d) / Math.log(mostPoints));
  // Vectors of four lines, and of four points, want multiples of 16.
  const cost = (d: number): number =>
    100 * (kernels(d) + kernels(n / d)) +
    (d % 16 === 0 ? 0 : 4) +
    ((n / d) % 16 === 0 ? 0 : 4) +
    Math.abs(Math.log2(d / root));
  return divisors.filter((d) => d > 1 && d < n).reduce((best, d) => (cost(d) < cost(best) ? d : best));
}

/** A divisor of the count near its root. */
function stepOf(count: number): number {
  let best = 1;
  for (let d = 1; d * d <= count; d++) if (count % d === 0) best = d;
  return best;
}

/** The least of 2^a · {1, 3, 5, 9, 15} from n on, a multiple of 16. */
export function nextSmooth(n: number): number {
  const atLeast = (odd: number): number => {
    let m = 16 * odd;
    while (m < n) m *= 2;
    return m;
  };
  return Math.min(...[1, 3, 5, 9, 15].map(atLeast));
}
