// The dtypes that the current device computes with.

import type { DType } from '../ir/dtype.ts';
import { targetOf } from '../schedule/target.ts';
import { device } from './storage/device.ts';

/** The dtypes of the current device. Rejects with E_DEVICE when there is none. */
export async function deviceTypes(): Promise<readonly DType[]> {
  return targetOf((await device()).facts).dtypes;
}
