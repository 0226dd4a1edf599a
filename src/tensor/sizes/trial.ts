// Whether a function is recorded at sizes that stand for all of their ranges: what follows from sizes then has to be
// operations, since elements that the host computes are those of one size.

import { SessionPart } from '../session.ts';

/** How a recording stands for other sizes. */
export interface TrialOptions {
  /** Whether indices are checked that are proven to be right at these sizes, as they may not be at others; by default not. */
  readonly checksAll?: boolean;
}

const trials = new SessionPart((): { current: TrialOptions | undefined } => ({ current: undefined }));

/** Runs a recording at sizes that stand for others. */
export function asTrial<T>(record: () => T, options: TrialOptions = {}): T {
  const part = trials.current;
  const before = part.current;
  part.current = options;
  try {
    return record();
  } finally {
    part.current = before;
  }
}

/** Whether what is recorded now has to hold at other sizes as well. */
export function isTrial(): boolean {
  return trials.current.current !== undefined;
}

/** Whether indices are checked that are proven to be right at the sizes of the recording. */
export function areAllChecked(): boolean {
  return trials.current.current?.checksAll === true;
}
