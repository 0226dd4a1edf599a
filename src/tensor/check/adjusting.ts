// How programs are compiled for a device that is known to compute something wrongly: what of it is left unused,
// which schedules its kernels have, or which device computes instead. `workarounds.ts` makes these of tables.

import type { PinnedTilings } from '../../compile/compile.ts';
import type { DeviceFacts } from '../../runtime/device.ts';
import { SessionPart } from '../session.ts';

export interface Adjusted {
  /** The facts without what is left unused. */
  readonly facts: DeviceFacts;
  /** Schedules that come before all others. */
  readonly schedules?: PinnedTilings;
  /** The device that computes instead. */
  readonly instead?: string;
}

/** What a session's programs obey, and how often that has changed: programs compiled before obey something else. */
const adjusting: SessionPart<{ adjust: ((facts: DeviceFacts) => Adjusted) | undefined; changes: number }> =
  new SessionPart(() => ({ adjust: undefined, changes: 0 }));

/** Has programs of the session that run from now on obey this. */
export function adjustBy(adjust: ((facts: DeviceFacts) => Adjusted) | undefined): void {
  const { current } = adjusting;
  current.adjust = adjust;
  current.changes += 1;
}

/** The facts of a device as programs are compiled for it. */
export function adjusted(facts: DeviceFacts): Adjusted {
  return adjusting.current.adjust?.(facts) ?? { facts };
}

/** Tells programs apart that obey different things. */
export function adjustments(): number {
  return adjusting.current.changes;
}
