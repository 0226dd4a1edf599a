// What looks at runs before they are handed to the device, while `check` is under way.

import type { Device } from '../../runtime/device.ts';
import type { Run } from '../evaluate/execute.ts';
import { SessionPart } from '../session.ts';

/** Looks at a run whose inputs have arrived, on the device that it will run on. */
export type RunCheck = (device: Device, run: Run) => Promise<void>;

const checking = new SessionPart((): { check: RunCheck | undefined } => ({ check: undefined }));

/** What looks at the runs of the session, if anything does. */
export function runCheck(): RunCheck | undefined {
  return checking.current.check;
}

/** Has runs of the session looked at from now on; undefined ends that. */
export function setRunCheck(check: RunCheck | undefined): void {
  checking.current.check = check;
}
