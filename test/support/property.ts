// Properties over random inputs. Every file of a run draws from one seed, printed, so that a failure can be repeated with
// `SINTER_SEED=…`. The quick tier always draws from the same seed, so that a change is judged by what it changes; the full tier
// (test/run/) and a single `vitest run` draw from a new one each time.

import * as fc from 'fast-check';

const given = process.env['SINTER_SEED'];

/** The seed of this run's random inputs. */
export const seed: number = given !== undefined ? Number(given) : Date.now() % 2 ** 31;

/** Checks a law on `runs` random values; a failure shows the smallest counterexample found, and how to repeat it. */
export function checkLaw<T>(runs: number, values: fc.Arbitrary<T>, law: (value: T) => void): void {
  console.log(`random inputs from SINTER_SEED=${seed}`);
  fc.assert(fc.property(values, law), { numRuns: runs, seed });
}

/** As `checkLaw`, of a law that waits. */
export async function checkLawAsync<T>(
  runs: number,
  values: fc.Arbitrary<T>,
  law: (value: T) => Promise<void>,
): Promise<void> {
  console.log(`random inputs from SINTER_SEED=${seed}`);
  await fc.assert(fc.asyncProperty(values, law), { numRuns: runs, seed });
}
