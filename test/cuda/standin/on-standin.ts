// Tests that need the stand-in: a suite where it can be built, else one skipped test that says why it cannot.

import { describe, test } from 'vitest';
import { standIn, useStandIn, type StandInOptions } from './standin.ts';

/** As `describe`; from here on the device `cuda` of this process is the stand-in. */
export function onStandIn(title: string, body: () => void, options: StandInOptions = {}): void {
  const found = standIn();
  if (found.available) {
    useStandIn(options);
    describe(title, body);
  } else {
    test(title, (context) => context.skip(found.reason));
  }
}
