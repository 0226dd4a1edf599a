// The sizes at which a function is tried. They have nothing in common with one another or with fixed sizes,
// so if two numbers are equal in all recordings, they are equal for a reason.

import type { Assignment, Dim } from './dim.ts';

/** What trying a function has shown of its sizes. */
export interface Constraints {
  /** Names of dims that have to have one size; each list has at least two. */
  readonly equal: readonly (readonly string[])[];
  /** By name: sizes have to be multiples of it. */
  readonly multiples: ReadonlyMap<string, number>;
}

export const unconstrained: Constraints = { equal: [], multiples: new Map() };

/** Dims that have one size, as one with what all of them demand. */
interface Joint {
  readonly names: readonly string[];
  readonly min: number;
  readonly max: number;
  readonly multipleOf: number;
}

export function jointsOf(dims: Iterable<Dim>, { equal, multiples }: Constraints): Joint[] {
  const joints: Joint[] = [];
  for (const own of dims) {
    const multipleOf = leastCommon(own.multipleOf, multiples.get(own.name) ?? 1);
    const group = equal.find((names) => names.includes(own.name));
    const at = joints.findIndex(({ names }) => group !== undefined && group.includes(names[0]!));
    const { name, min, max } = own;
    if (at < 0) joints.push({ names: [name], min, max, multipleOf });
    else {
      const other = joints[at]!;
      joints[at] = {
        names: [...other.names, name],
        min: Math.max(min, other.min),
        max: Math.min(max, other.max),
        multipleOf: leastCommon(multipleOf, other.multipleOf),
      };
    }
  }
  return joints;
}

/**
 * Sizes to try, few of them; `avoid` are fixed sizes of the call. Another `turn` gives others.
 * Where a range has fewer sizes, each comes once.
 */
export function trialSizesOf(
  joints: readonly Joint[],
  avoid: ReadonlySet<number>,
  turn: number,
): Assignment[] {
  const out: Assignment[] = [];
  /** By joint: a size that is the same in all would be no varying one. */
  const tried = joints.map(() => new Set<number>());
  for (let i = 0; i < 4; i++) {
    const taken = new Set(avoid);
    const sizes = new Map<string, number>();
    joints.forEach((joint, j) => {
      const fraction = ((i + 1 + turn * 4) * 0.6180339887 + j * 0.2763932) % 1;
      const far = 0.3 + 0.7 * fraction;
      const size =
        nearby(joint, far, new Set([...taken, ...tried[j]!])) ??
        nearby(joint, far, taken) ??
        nearby(joint, far, tried[j]!) ??
        joint.max - (joint.max % joint.multipleOf);
      taken.add(size);
      tried[j]!.add(size);
      for (const name of joint.names) sizes.set(name, size);
    });
    out.push(sizes);
  }
  const isNew = (at: Assignment, i: number): boolean =>
    out.findIndex((other) => [...other].every(([name, size]) => at.get(name) === size)) === i;
  return out.filter(isNew);
}

/**
 * An allowed size about so far into the range: a prime number of steps, where there is one; undefined
 * where all but a single step are taken.
 */
function nearby(
  { min, max, multipleOf }: Joint,
  fraction: number,
  taken: ReadonlySet<number>,
): number | undefined {
  const [first, last] = [Math.ceil(min / multipleOf), Math.floor(max / multipleOf)];
  // Products of sizes far into a range without an end in practice would be no integers any more.
  const reach = Math.min(last, first + 2 ** 14);
  const start = Math.round(first + (reach - first) * fraction);
  let best: number | undefined;
  for (let away = 0; away <= reach - first; away++) {
    for (const k of [start - away, start + away]) {
      if (k < first || k > reach || taken.has(k * multipleOf)) continue;
      if (k > 3 && isPrime(k)) return k * multipleOf;
      if (k > 1) best ??= k * multipleOf;
    }
    if (away > 64 && best !== undefined) break;
  }
  return best;
}

function isPrime(n: number): boolean {
  for (let k = 2; k * k <= n; k++) if (n % k === 0) return false;
  return n > 1;
}

export function leastCommon(a: number, b: number): number {
  let [x, y] = [a, b];
  while (y !== 0) [x, y] = [y, x % y];
  return (a / x) * b;
}

/** How many programs a function has for many sizes, at most. */
export const mostVariants = 3;

/**
 * Up to which sizes a program may go, ascending, by dim. Of a declared range: a sixty-fourth, an
 * eighth, all. Of sizes that nobody declared: powers of two, so that no axis takes more than twice
 * its work.
 */
export function levelsOf(
  joints: readonly Joint[],
  isDeclared: boolean,
): ReadonlyMap<string, readonly number[]> {
  const levels = new Map<string, readonly number[]>();
  for (const { names, min, max, multipleOf } of joints) {
    const step = leastCommon(multipleOf, multipleOf >= 16 ? multipleOf : 16);
    const last = Math.floor(max / multipleOf) * multipleOf;
    const least = Math.ceil(min / multipleOf) * multipleOf;
    const shares = isDeclared ? [64, 8] : [32, 16, 8, 4, 2];
    const parts = shares.flatMap((share) => {
      if (max / share < Math.max(16, 2 * min)) return [];
      return [Math.min(last, Math.max(least, Math.ceil(max / share / step) * step))];
    });
    const all = [...new Set([...parts, last])];
    for (const name of names) levels.set(name, all);
  }
  return levels;
}
