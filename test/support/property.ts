// Properties over random inputs: one seed per test file, printed, so that a failure elsewhere can be repeated here with
// `SINTER_SEED=… vitest run …`.

import * as fc from 'fast-check';

const given = process.env['SINTER_SEED'];

/** The seed of this run's random inputs. */
export const seed: number = given === undefined ? Date.now() % 2 ** 31 : Number(given);
console.log(`random inputs from SINTER_SEED=${seed}`);

/** Checks a law on `runs` random values; a failure shows the smallest counterexample found, and how to repeat it. */
export function checkLaw<T>(runs: number, values: fc.Arbitrary<T>, law: (value: T) => void): void {
  fc.assert(fc.property(values, law), { numRuns: runs, seed });
}
