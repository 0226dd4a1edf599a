// What fits programs into a budget of memory, and where a page gets it from.

import { Lazy } from '../../lazy.ts';
import type { fitMemory } from './fit.ts';
import type { plannedOf } from './timeline.ts';

/** What fits programs into memory. */
export interface Budgeting {
  readonly fitMemory: typeof fitMemory;
  readonly plannedOf: typeof plannedOf;
}

export const budgeting: Lazy<Budgeting> = new Lazy('memory budgets', async () => {
  const [fit, timeline] = await Promise.all([import('./fit.ts'), import('./timeline.ts')]);
  return { fitMemory: fit.fitMemory, plannedOf: timeline.plannedOf };
});

export type { Fitted, Fitting } from './report.ts';
