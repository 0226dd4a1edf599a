// How programs are compiled for a device that is known to compute something wrongly: what of it is left unused,
// which schedules its kernels have, or which device computes instead. `workarounds.ts` makes these of tables.

import type { PinnedTilings } from '../../compile/compile.ts';
import type { DeviceFacts } from '../../runtime/device.ts';
import { SessionPart, withSession, type Session } from '../session.ts';

export interface Adjusted {
  /** The facts without what is left unused. */
  readonly facts: DeviceFacts;
  /** Schedules that come before all others. */
  readonly schedules?: PinnedTilings;
  /** The device that computes instead. */
  readonly instead?: string;
}

export type Adjust = (facts: DeviceFacts) => Adjusted;

/** What a session's programs obey, and how often that has changed: programs compiled before obey something else. */
const adjusting = new SessionPart((): { adjust: Adjust | undefined; changes: number } => ({
  adjust: undefined,
  changes: 0,
}));

/** Has programs of the session that run from now on obey this. */
export function adjustBy(adjust: Adjust | undefined): void {
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

/** Has the session obey the file that `SINTER_WORKAROUNDS` names, where there is one and nothing else was said. */
export async function adjustAsNamed(session: Session): Promise<void> {
  const file = typeof process === 'undefined' ? undefined : process.env?.['SINTER_WORKAROUNDS'];
  if (file === undefined || file === '' || adjusting.of(session).changes > 0) return;
  const { adjustmentIn } = await import('./file.ts');
  const adjust = await adjustmentIn(file);
  withSession(session, () => adjustBy(adjust));
}
