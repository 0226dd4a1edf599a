// Whether a function is recorded at sizes that stand for all of their ranges: what follows from sizes then has to be
// operations, since elements that the host computes are those of one size.

import { SessionPart } from '../session.ts';

const trials = new SessionPart((): { isTrial: boolean } => ({ isTrial: false }));

/** Runs a recording at sizes that stand for others. */
export function asTrial<T>(record: () => T): T {
  const { current } = trials;
  const before = current.isTrial;
  current.isTrial = true;
  try {
    return record();
  } finally {
    current.isTrial = before;
  }
}

/** Whether what is recorded now has to hold at other sizes as well. */
export function isTrial(): boolean {
  return trials.current.isTrial;
}
