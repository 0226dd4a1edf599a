// A function of a bundle at all its sizes: one program for those within ranges (aot/ranges.ts), or one
// for each set of sizes (aot/sizes.ts).

import { SinterError } from '../errors.ts';
import type { BundleEntry, Sizes } from '../bundle-runtime/manifest.ts';
import { traceEntry, type TracedEntry } from './entry.ts';
import { rangedEntry } from './ranges.ts';
import { countOf } from './points.ts';
import { combinations, distinct, mostSizes, openEntry, sizesIn, type OpenPoint } from './sizes.ts';
import { rangesTold } from './trials.ts';
import type { WeightTable } from './weights.ts';

export interface RecordedEntry {
  readonly name: string;
  readonly entry: Omit<BundleEntry, 'programs'>;
  /** For each program. */
  readonly cases: readonly { readonly sizes: Sizes; readonly least?: Sizes; readonly traced: TracedEntry }[];
}

/**
 * A function at all its sizes: one program for sizes with ranges where that can be, else one for each
 * set of sizes, which `notes` says.
 */
export async function recordedEntry(
  point: OpenPoint,
  state: unknown,
  table: WeightTable,
  notes: string[],
): Promise<Omit<RecordedEntry, 'name'>> {
  const { name, at } = point;
  let { sizes } = point;
  const { ranges, fixed } = await rangesTold(point, state);
  if (Object.keys(fixed).length > 0) sizes = sizes.map((own) => ({ ...own, ...fixed }));
  if (ranges.size > 0) {
    try {
      return await rangedEntry(point, ranges, sizes[0]!, state, table);
    } catch (error) {
      const count = countOf(ranges.values());
      if (!(error instanceof SinterError) || count > mostSizes) throw error;
      notes.push(`${error.message.split('\n')[0]!}: ${count} programs, one for each set of sizes`);
      sizes = combinations(new Map([...ranges].map(([key, range]) => [key, sizesIn(range)]))).map((set) => ({
        ...sizes[0],
        ...set,
      }));
    }
  }
  const all: { readonly sizes: Sizes; readonly traced: TracedEntry }[] = [];
  for (const own of sizes) all.push({ sizes: own, traced: traceEntry(await at(own), state, table) });
  const cases = distinct(name, all);
  const { entry, sizes: named } = openEntry(name, cases);
  return { entry, cases: cases.map(({ traced }, i) => ({ sizes: named[i]!, traced })) };
}
