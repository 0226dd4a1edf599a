// Tests of a device that may be missing here: those skipped say why.

import { test } from 'vitest';

/** Declares a test that is skipped, with the reason, where something is missing. */
export type Law = (name: string, work: () => Promise<void>) => void;

export function lawsUnless(missing: string | undefined): Law {
  return (name, work) => {
    test(name, async (context) => {
      if (missing !== undefined) context.skip(missing);
      await work();
    });
  };
}
