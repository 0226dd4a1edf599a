// What a tensor holds in a few numbers, and how far it is from another.

import { fromHostTensor, type HostTensor } from '../../io/index.ts';

/** A tensor in short; min, max and mean are of what is not NaN, and undefined where nothing is. */
export interface Summary {
  readonly name: string;
  readonly dtype: string;
  readonly shape: readonly number[];
  readonly min: number | undefined;
  readonly max: number | undefined;
  readonly mean: number | undefined;
  readonly nan: number;
  /** The first elements. */
  readonly first: readonly number[];
}

/** How many elements a summary shows. */
const shown = 5;

export async function summaryOf(name: string, host: HostTensor): Promise<Summary> {
  const data = await fromHostTensor(host).data();
  let [min, max, sum, nan] = [Infinity, -Infinity, 0, 0];
  for (const element of data) {
    const value = Number(element);
    if (Number.isNaN(value)) nan++;
    else {
      min = Math.min(min, value);
      max = Math.max(max, value);
      sum += value;
    }
  }
  const count = data.length - nan;
  const of = (value: number): number | undefined => (count === 0 ? undefined : value);
  const first = Array.from(data.subarray(0, shown), Number);
  const { dtype, shape } = host;
  return { name, dtype, shape, min: of(min), max: of(max), mean: of(sum / count), nan, first };
}

export interface Tolerance {
  readonly rtol: number;
  readonly atol: number;
}

/** An output beside what it should be. */
export interface OutputComparison {
  readonly name: string;
  readonly ok: boolean;
  /** What is wrong with the type, where that is so; then nothing else is compared. */
  readonly problem?: string;
  /** The largest |difference|, where it is, and what stands there. */
  readonly difference?: number;
  readonly at?: readonly number[];
  readonly got?: number;
  readonly expected?: number;
  /** How many elements are further off than rtol · |expected| + atol. */
  readonly wrong?: number;
  readonly count?: number;
}

/** Compares element by element; NaN equals NaN, and an infinity itself. */
export async function compared(
  name: string,
  got: HostTensor,
  expected: HostTensor,
  { rtol, atol }: Tolerance,
): Promise<OutputComparison> {
  if (got.shape.join() !== expected.shape.join()) {
    const problem = `it has the shape [${got.shape.join(', ')}], expected [${expected.shape.join(', ')}]`;
    return { name, ok: false, problem };
  }
  const [a, b] = await Promise.all([fromHostTensor(got).data(), fromHostTensor(expected).data()]);
  let [difference, place, wrong] = [0, 0, 0];
  for (let i = 0; i < a.length; i++) {
    const [x, y] = [a[i]!, b[i]!];
    if (Object.is(x, y) || x === y) continue;
    const [off, allowed] = [Number(x) - Number(y), atol + rtol * Math.abs(Number(y))];
    const distance = Number.isNaN(off) ? Infinity : Math.abs(off);
    // An infinity that should be there allows no other number.
    if (!(distance <= allowed) || !Number.isFinite(Number(y))) wrong++;
    if (distance > difference) [difference, place] = [distance, i];
  }
  const at: number[] = [];
  let rest = place;
  for (let axis = got.shape.length - 1; axis >= 0; axis--) {
    at.unshift(rest % got.shape[axis]!);
    rest = Math.floor(rest / got.shape[axis]!);
  }
  const values = a.length === 0 ? {} : { at, got: Number(a[place]), expected: Number(b[place]) };
  return { name, ok: wrong === 0, difference, ...values, wrong, count: a.length };
}

/** A comparison in words. */
export function showComparison(one: OutputComparison, { rtol, atol }: Tolerance): string {
  const { name, ok, problem, difference = 0, at = [], got, expected, wrong = 0, count = 0 } = one;
  if (problem !== undefined) return `${name}: wrong: ${problem}`;
  const where = difference === 0 ? '' : ` at [${at.join(', ')}]: ${got}, expected ${expected}`;
  const most = `max |difference| ${showNumber(difference)}${where}`;
  if (ok) return `${name}: as expected (rtol ${rtol}, atol ${atol}): ${most}`;
  return `${name}: wrong: ${wrong} of ${count} elements are off by more than ${rtol} · |expected| + ${atol}; ${most}`;
}

/** Four digits, or fewer where they say it all. */
export function showNumber(value: number | undefined): string {
  if (value === undefined) return '';
  return Number.isInteger(value) && Math.abs(value) < 1e6
    ? String(value)
    : String(Number(value.toPrecision(4)));
}
