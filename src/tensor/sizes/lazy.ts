// Varying sizes as a part that a page loads when a function first has some; until it has come, calls
// are compiled for their own sizes.

import { Lazy } from '../../lazy.ts';
import type { Symbolic } from './symbolic.ts';

export const symbolics: Lazy<typeof Symbolic> = new Lazy('varying sizes', async () => {
  return (await import('./symbolic.ts')).Symbolic;
});

/** What finds the programs of a function's sizes; undefined while it is on its way. */
export function symbolicOrLater(): typeof Symbolic | undefined {
  // A call of later tries again, and says so where it asks for what does not load.
  if (symbolics.loaded === undefined) symbolics.load().catch(() => undefined);
  return symbolics.loaded;
}
