// What programs of a session obey on devices that are known to compute something wrongly. The code that makes it of
// tables is loaded where there is one.

import type { Adjust, Adjusted } from '../../check/workarounds.ts';
import type { DeviceFacts } from '../../runtime/device.ts';
import { SessionPart, withSession, type Session } from '../session.ts';

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
  const { adjustmentIn } = await import('../../check/file.ts');
  const adjust = await adjustmentIn(file);
  withSession(session, () => adjustBy(adjust));
}
