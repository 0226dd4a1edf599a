// The sizes at which a function is tried whose sizes are left open within ranges, drawn alike each time, and how they are
// counted and shown.

import type { Sizes } from '../bundle-runtime/manifest.ts';
import type { Dim } from '../tensor/sizes/dim.ts';
import { jointsOf, levelsOf, unconstrained } from '../tensor/sizes/trial-sizes.ts';

/** Sizes from `min` to `max` that are multiples of a number, both of them too. */
export interface SizeRange {
  readonly min: number;
  readonly max: number;
  readonly multipleOf: number;
}

export type SizeRanges = ReadonlyMap<string, SizeRange>;

/** Sizes to hold the structure to: the ends of ranges and programs, small ones, and random ones. */
export function pointsOf(dims: readonly Dim[]): Sizes[] {
  const random = randomNumbers(1);
  const all: Sizes[] = [];
  const drawn = (): Sizes => drawnFromAll(dims, random);
  all.push(Object.fromEntries(dims.map(({ name, min }) => [name, min])));
  all.push(...upToOf(dims));
  for (const { name, min, max, multipleOf } of dims) {
    const levels = upToOf(dims).map((upTo) => upTo[name]!);
    const ends = levels.flatMap((size) => [size, size + multipleOf]);
    const small = Array.from({ length: 6 }, (_, i) => min + i * multipleOf);
    const powers = Array.from({ length: 5 }, (_, i) => 2 ** (2 * i + 3));
    for (const size of [...small, ...ends, ...powers])
      if (size >= min && size <= max && size % multipleOf === 0) all.push({ ...drawn(), [name]: size });
  }
  for (let i = 0; i < 12; i++) all.push(drawn());
  return [...new Map(all.map((sizes) => [JSON.stringify(sizes), sizes])).values()];
}

/** The largest sizes of each program. */
export function upToOf(dims: readonly Dim[]): Record<string, number>[] {
  const levels = levelsOf(jointsOf(dims, unconstrained), true);
  const count = Math.max(...[...levels.values()].map(({ length }) => length));
  return Array.from({ length: count }, (_, i) =>
    Object.fromEntries(
      [...levels].map(([name, sizes]) => [name, sizes[Math.max(0, sizes.length - count + i)]!]),
    ),
  );
}

/** Numbers from 0 to 1 that are the same at each build. */
export function randomNumbers(seed: number): () => number {
  let state = (seed * 0x9e3779b9) >>> 0;
  return () => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return state / 2 ** 32;
  };
}

/** A size of a range: as often a small one as a large one. */
function drawnFrom({ min, max, multipleOf }: Dim, random: () => number): number {
  const steps = (max - min) / multipleOf;
  const far = random() < 0.5 ? random() : (steps + 1) ** random() / (steps + 1);
  return min + multipleOf * Math.min(steps, Math.floor(far * (steps + 1)));
}

export function drawnFromAll(dims: readonly Dim[], random: () => number): Sizes {
  return Object.fromEntries(dims.map((dim) => [dim.name, drawnFrom(dim, random)]));
}

/** All sizes of a range, or many. */
export function sizesWithin(dims: readonly Dim[], random: () => number): Sizes[] {
  const [only, ...others] = dims as readonly [Dim, ...Dim[]];
  const { name, min, max, multipleOf } = only;
  const count = (max - min) / multipleOf + 1;
  if (others.length === 0 && count <= 4096)
    return Array.from({ length: count }, (_, i) => ({ [name]: min + i * multipleOf }));
  return Array.from({ length: 4096 }, () => drawnFromAll(dims, random));
}

/** How many sets of sizes ranges have. */
export function countOf(ranges: Iterable<SizeRange>): number {
  return [...ranges].reduce(
    (product, { min, max, multipleOf }) => product * ((max - min) / multipleOf + 1),
    1,
  );
}

export function showSizes(sizes: Sizes): string {
  return (
    Object.entries(sizes)
      .map(([name, size]) => `${name} ${size}`)
      .join(', ') || 'its only size'
  );
}
