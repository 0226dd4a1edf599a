// Tracing and running compiled functions as a part that a page loads when a function is compiled; until it has come, calls are
// recorded where they are.

import { Lazy } from '../../lazy.ts';
import type { Specialisations } from './specialisations.ts';

export const specialising: Lazy<typeof Specialisations> = new Lazy('compiled functions', async () => {
  return (await import('./specialisations.ts')).Specialisations;
});
