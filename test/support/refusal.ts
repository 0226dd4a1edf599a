// What a call is refused with.

import { expect } from 'vitest';
import { SinterError } from '../../src/errors.ts';

/** The message of the SinterError that a call throws. */
export function refusal(run: () => unknown): string {
  try {
    run();
  } catch (error) {
    expect(error).toBeInstanceOf(SinterError);
    return (error as SinterError).message;
  }
  return 'nothing is thrown';
}
