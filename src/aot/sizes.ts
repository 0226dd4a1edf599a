// Entries whose sizes are left open: recorded once for each set of sizes, and offered to callers as
// one entry, in which each size that differs has a name.

import { SinterError } from '../errors.ts';
import type { BundleEntry, OpenType, Sizes } from '../bundle-runtime/manifest.ts';
import type { EntryPoint, TracedEntry } from './entry.ts';
import { showSizes, type SizeRange, type SizeRanges } from './points.ts';

/** A function with open sizes: its entry for each set of sizes to build. */
export interface OpenPoint {
  readonly name: string;
  readonly sizes: readonly Sizes[];
  /** Sizes that one program is for, from the smallest to the largest. */
  readonly ranges?: SizeRanges;
  at(sizes: Sizes): EntryPoint | Promise<EntryPoint>;
}

/** Most sets of sizes of a function: each has kernels of its own. */
export const mostSizes = 64;

/** All sets of one size for each name, in order. Throws E_LIMIT where they are too many. */
export function combinations(dims: ReadonlyMap<string, readonly number[]>): Sizes[] {
  const count = [...dims.values()].reduce((product, sizes) => product * sizes.length, 1);
  if (count > mostSizes) {
    const parts = [...dims].map(([name, sizes]) => `${sizes.length} of ${name}`);
    throw new SinterError(
      'E_LIMIT',
      `build: ${count} sets of sizes (${parts.join(' times ')}): expected at most ${mostSizes}, each with kernels of its own\n` +
        '  try: fewer sizes, and inputs that are padded to the next of them',
    );
  }
  return [...dims].reduce<Sizes[]>(
    (sets, [name, sizes]) => sets.flatMap((set) => sizes.map((size) => ({ ...set, [name]: size }))),
    [{}],
  );
}

/** All sizes of a range. */
export function sizesIn({ min, max, multipleOf }: SizeRange): number[] {
  return Array.from({ length: (max - min) / multipleOf + 1 }, (_, i) => min + i * multipleOf);
}

interface Case {
  readonly sizes: Sizes;
  readonly traced: Pick<TracedEntry, 'inputs' | 'outputs'>;
}

/**
 * Cases of different inputs: a function need not depend on every size. Throws E_UNSUPPORTED where
 * the same inputs give other outputs.
 */
export function distinct<T extends Case>(name: string, cases: readonly T[]): T[] {
  const kept = new Map<string, T>();
  for (const one of cases) {
    const key = JSON.stringify(one.traced.inputs);
    const twin = kept.get(key);
    if (twin === undefined) kept.set(key, one);
    else if (JSON.stringify(twin.traced.outputs) !== JSON.stringify(one.traced.outputs))
      throw new SinterError(
        'E_UNSUPPORTED',
        `build: ${name} returns other shapes at ${showSizes(one.sizes)} than at ${showSizes(twin.sizes)} for inputs of the same shapes: the inputs must determine the sizes`,
      );
  }
  return [...kept.values()];
}

/**
 * What an entry takes and gives at all of its sizes: those that differ go by the name that has just
 * these, else by a name of their own, which each set of sizes then has too. Throws E_UNSUPPORTED
 * where more than sizes differs.
 */
export function openEntry(
  name: string,
  cases: readonly Case[],
): { readonly entry: Omit<BundleEntry, 'programs'>; readonly sizes: readonly Sizes[] } {
  const sizes: Record<string, number>[] = cases.map((one) => ({ ...one.sizes }));
  const nameOf = (extents: readonly number[]): number | string => {
    if (extents.every((extent) => extent === extents[0])) return extents[0]!;
    const known = Object.keys(sizes[0]!).find((key) =>
      extents.every((extent, i) => sizes[i]![key] === extent),
    );
    if (known !== undefined) return known;
    let own = 1;
    while (`size${own}` in sizes[0]!) own += 1;
    extents.forEach((extent, i) => (sizes[i]![`size${own}`] = extent));
    return `size${own}`;
  };
  const merged = <T extends object>(all: readonly (readonly T[])[]): T[] => {
    const [first = []] = all;
    return first.map((one, i) => {
      const same = all.map((list) => list[i]!);
      const isLike = all.every(
        (list) => list.length === first.length && likeness(list[i]!) === likeness(one),
      );
      if (!isLike) {
        const which = all.findIndex(
          (list) => list.length !== first.length || likeness(list[i]!) !== likeness(one),
        );
        throw new SinterError(
          'E_UNSUPPORTED',
          `build: ${name} takes or returns other tensors at ${showSizes(cases[which]!.sizes)} than at ${showSizes(cases[0]!.sizes)}: only sizes may differ`,
        );
      }
      if (!('shape' in one)) return one;
      const shapes = same.map((each) => (each as OpenType).shape as readonly number[]);
      return { ...one, shape: shapes[0]!.map((_, axis) => nameOf(shapes.map((shape) => shape[axis]!))) };
    });
  };
  const inputs = merged(cases.map(({ traced }) => traced.inputs));
  const outputs = merged(cases.map(({ traced }) => traced.outputs));
  const shown = new Set([...inputs, ...outputs].flatMap((one) => ('shape' in one ? one.shape : [])));
  for (const set of sizes) for (const key of Object.keys(set)) if (!shown.has(key)) delete set[key];
  const built = Object.keys(sizes[0]!).map(
    (key) => `${key} ${[...new Set(sizes.map((set) => set[key]))].join(', ')}`,
  );
  return { entry: { inputs, outputs, ...(built.length > 0 && { built: built.join('; ') }) }, sizes };
}

/** The properties that must be equal at all sizes. */
function likeness(one: object): string {
  const rank = 'shape' in one ? (one as OpenType).shape.length : 0;
  return JSON.stringify({ ...one, shape: rank });
}
