// What a device refuses, as the error that it is refused with.

import { expect } from 'vitest';
import { DeviceError } from '../../src/errors.ts';

/** What `work` throws or rejects with; fails when it does neither. */
export async function failure(work: () => unknown): Promise<DeviceError> {
  try {
    await work();
  } catch (error) {
    expect(error).toBeInstanceOf(DeviceError);
    return error as DeviceError;
  }
  throw new Error('nothing failed');
}
