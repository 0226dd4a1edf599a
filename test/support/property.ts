// Properties over random inputs. Every file of a run draws from one seed, printed, so that a failure can be repeated with
// `SINTER_SEED=… vitest run …`. On a developer's machine each run has a new seed; in CI it is fixed, so that a change is judged
// by what it changes.

import * as fc from 'fast-check';

const given = process.env['SINTER_SEED'];
const inCi = process.env['CI'] !== undefined && process.env['CI'] !== '';

/** The seed of this run's random inputs. */
export const seed: number = given !== undefined ? Number(given) : inCi ? 20_261_120 : Date.now() % 2 ** 31;

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
