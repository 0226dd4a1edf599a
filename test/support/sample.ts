// How much of its work a test does in the quick tier, where it draws or counts its cases itself: loops over random programs, fuzzing.
// Tests that are cases of a matrix need none of this: the run draws among them (test/run/costs.ts).

import { type TestContext, TestRunner } from 'vitest';

/** Whether the quick tier runs. */
export const isQuick: boolean = process.env['SINTER_TEST_TIER'] === 'quick';

/** How many of `count` cases the running test tries: all, or in the quick tier `quick` of them. */
export function casesOf(count: number, quick: number): number {
  if (quick >= count) return count;
  const test = TestRunner.getCurrentTest();
  // The full run measures all cases; what the quick tier will take is this part of it.
  if (test !== undefined) Object.assign(test.meta, { share: quick / count });
  return isQuick ? quick : count;
}

/** Skips a test that looks at what all tests of its file did, where only a sample of them runs. */
export function needsWholeFile(context: TestContext): void {
  if (isQuick) context.skip('it looks at all tests of its file, of which the quick tier runs a part');
}
