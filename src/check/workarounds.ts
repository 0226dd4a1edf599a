// Tables of what devices compute wrongly, as `check` finds it, and what programs do instead. An entry holds for a
// device by its name and its description, which includes the driver: under another driver nothing is avoided.

import { ParseError } from '../errors.ts';
import { withoutFeatures } from '../schedule/target.ts';
import { isRecord, readBook, type Schedules } from '../tune/book.ts';
import { scheduleKey } from '../tune/key.ts';
import type { PinnedTilings } from '../compile/compile.ts';
import type { DeviceFacts } from '../runtime/device.ts';

/** What programs do on one device. */
export interface Workaround {
  readonly device: string;
  /** The adapter with its driver, as `devices()` says it. */
  readonly description: string;
  /** Features that are left unused. */
  readonly avoid: readonly string[];
  /** Schedules of kernels, in the form of `measuredSchedules`. */
  readonly schedules: Schedules['entries'];
  /** The device that computes instead, where nothing else helps. */
  readonly instead?: string;
  /** The kernels that were wrong, for people. */
  readonly wrong: readonly string[];
}

/** How programs are compiled for a device that is known to compute something wrongly. */
export interface Adjusted {
  /** The facts without what is left unused. */
  readonly facts: DeviceFacts;
  /** Schedules that come before all others. */
  readonly schedules?: PinnedTilings;
  /** The device that computes instead. */
  readonly instead?: string;
}

export type Adjust = (facts: DeviceFacts) => Adjusted;

/** What `check` found, as plain JSON. */
export interface Workarounds {
  readonly version: 1;
  readonly entries: readonly Workaround[];
}

/** How facts are adjusted by a table. Throws ParseError E_FORMAT naming what is wrong with it. */
export function adjustmentOf(workarounds: Workarounds, what = 'workarounds'): Adjust {
  const entries = entriesOf(workarounds, what).map((entry, i) => {
    const pinned = readBook(`${what}: entry ${i}`, { version: 1, entries: entry.schedules });
    return { entry, pinned };
  });
  return (facts) => {
    const found = entries.find(
      ({ entry }) => entry.device === facts.name && entry.description === facts.description,
    );
    if (found === undefined) return { facts };
    const { entry, pinned } = found;
    return {
      facts: withoutFeatures(facts, entry.avoid),
      ...(pinned.size > 0 && { schedules: (problem) => pinned.get(scheduleKey(problem, facts)) }),
      ...(entry.instead !== undefined && { instead: entry.instead }),
    };
  };
}

/** The entries of a table that somebody gives. */
function entriesOf(data: unknown, what: string): readonly Workaround[] {
  const fail = (problem: string): never => {
    throw new ParseError('E_FORMAT', what, problem);
  };
  if (!isRecord(data) || data['version'] !== 1 || !Array.isArray(data['entries']))
    return fail('expects { version: 1, entries: [ … ] }, as `check` gives it');
  const isText = (value: unknown): boolean => typeof value === 'string';
  const areTexts = (value: unknown): boolean => Array.isArray(value) && value.every(isText);
  for (const [i, entry] of (data['entries'] as readonly unknown[]).entries()) {
    const fits =
      isRecord(entry) &&
      isText(entry['device']) &&
      isText(entry['description']) &&
      areTexts(entry['avoid']) &&
      areTexts(entry['wrong']) &&
      isRecord(entry['schedules']) &&
      (entry['instead'] === undefined || isText(entry['instead']));
    if (!fits) fail(`entry ${i} is no workaround: expects { device, description, avoid, schedules, wrong }`);
  }
  return data['entries'] as readonly Workaround[];
}
