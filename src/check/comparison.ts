// Whether what a device computed is what the interpreter computes from the same values, up to what rounding
// explains: a fixed share of each element, and of the root of the mean square of all, and where that is exceeded,
// what the element changes by when everything that it is computed from changes by a few units of its last place.

import { isFloat, type DType } from '../ir/dtype.ts';
import { hostArray, type HostArray } from '../ir/value.ts';
import { placeOf, type ValueDifference } from './report.ts';

/** How numbers of a kernel are rounded. */
export interface Rounding {
  /** The distance of two numbers next to each other, relative to them: of the coarsest that the kernel works with. */
  readonly unit: number;
  /** Units that an element may be off by, whatever the kernel computes. */
  readonly units: number;
}

const bitsOf: Readonly<Partial<Record<DType, number>>> = { f64: 52, f32: 23, f16: 10, bf16: 7 };

/** Narrow numbers are rounded once or twice, wide ones in every step of long sums. */
const narrowUnits = 8;
const wideUnits = 512;
/** Units by which values are changed, and how much more than by these an element may be off. */
const nudge = 4;
const slack = 64;

/**
 * The rounding of a kernel that works with these dtypes; `isCoarse` where it multiplies in tf32, or rounds rows to
 * integers of 8 bits to multiply them with blocks.
 */
export function roundingOf(dtypes: Iterable<DType>, isCoarse: 'tf32' | 'i8' | undefined): Rounding {
  const bits = [...dtypes].flatMap((dtype) => bitsOf[dtype] ?? []);
  if (isCoarse === 'tf32') bits.push(10);
  if (isCoarse === 'i8') bits.push(7);
  const least = Math.min(23, ...bits);
  return { unit: 2 ** -least, units: least < 23 ? narrowUnits : wideUnits };
}

/**
 * What is wrong with `got`; undefined where nothing is. `isNeeded` says which elements count; `nudged` gives the same values
 * where all that they are computed from was changed a little (`Nudging`).
 */
export function differenceOf(
  got: HostArray,
  expected: HostArray,
  rounding: Rounding,
  isNeeded: (element: number) => boolean,
  nudged: () => readonly HostArray[],
): ValueDifference | undefined {
  const scale = rootMeanSquare(expected);
  // Integers are exact, but where they follow from floats.
  const share = isFloat(expected.dtype) ? rounding.unit * rounding.units : 0;
  const suspects: number[] = [];
  for (let i = 0; i < expected.data.length; i++) {
    const [is, should] = [Number(got.data[i]), Number(expected.data[i])];
    if (!isNeeded(i) || isSame(got.data[i]!, expected.data[i]!)) continue;
    const allowed = share * Math.max(Math.abs(should), scale);
    if (!Number.isFinite(should) || !(Math.abs(is - should) <= allowed)) suspects.push(i);
  }
  if (suspects.length === 0) return undefined;
  const others = nudged();
  let [wrong, worst, furthest] = [0, 0, -1];
  for (const i of suspects) {
    const [is, should] = [Number(got.data[i]), Number(expected.data[i])];
    const off = Math.abs(is - should);
    const spread = Math.max(...others.map(({ data }) => Math.abs(Number(data[i]) - should)));
    // What changes between finite and not finite is on the edge of it.
    const isEdge = others.some(({ data }) => Number.isFinite(Number(data[i])) !== Number.isFinite(should));
    const allowed = share * Math.max(Math.abs(should), scale) + slack * spread;
    if (isEdge || (Number.isFinite(should) && off <= allowed)) continue;
    wrong += 1;
    const distance = Number.isNaN(off) ? Infinity : off;
    if (distance <= furthest) continue;
    [worst, furthest] = [i, distance];
  }
  if (wrong === 0) return undefined;
  const [is, should] = [Number(got.data[worst]), Number(expected.data[worst])];
  const at = placeOf(worst, expected.shape);
  return { wrong, count: expected.data.length, at, got: is, expected: should };
}

/** Changes values by a few units of their last place, each number by another share; the same for a seed. */
export class Nudging {
  readonly #unit: number;
  #seed: number;

  constructor({ unit }: Pick<Rounding, 'unit'>, seed: number) {
    this.#unit = unit;
    this.#seed = Math.imul(seed, 0x9e3779b1);
  }

  /** The next value, changed; `unit` is the distance of two of its numbers, relative to them. */
  of(array: HostArray, unit: number = this.#unit): HostArray {
    if (!isFloat(array.dtype)) return array;
    const seed = (this.#seed = Math.imul(this.#seed + 1, 0x85ebca6b));
    const data: number[] = [];
    for (const [i, value] of array.data.entries())
      data.push(Number(value) * (1 + nudge * unit * noise(seed, i)));
    return hostArray(array.dtype, array.shape, data);
  }
}

/** From -2 to 2, of a hash that has nothing to do with those of other elements. */
function noise(seed: number, element: number): number {
  let hash = Math.imul(seed ^ element, 0x85ebca6b);
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35);
  hash = Math.imul(hash ^ (hash >>> 16), 0x27d4eb2f);
  return (hash ^ (hash >>> 15)) / 2 ** 30;
}

function isSame(a: number | bigint, b: number | bigint): boolean {
  return a === b || (Number.isNaN(a as number) && Number.isNaN(b as number));
}

function rootMeanSquare({ data }: HostArray): number {
  let [sum, count] = [0, 0];
  for (const value of data) {
    const number = Number(value);
    if (!Number.isFinite(number)) continue;
    sum += number * number;
    count += 1;
  }
  return count === 0 || !Number.isFinite(sum) ? 0 : Math.sqrt(sum / count);
}
