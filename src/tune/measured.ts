// What this process has measured, for programs that keep it themselves.

import { schedulesOf, type Schedules } from './book.ts';
import { everyBook } from './store.ts';

/**
 * Every schedule measured or read by this process, to be pinned: plain JSON that `compile` takes as
 * `schedules`.
 */
export function measuredSchedules(): Schedules {
  return schedulesOf(everyBook());
}
