// What a model leaves on the device.

import * as sn from '../../../src/index.ts';
import { device } from '../../../src/tensor/device.ts';
import { settledAt } from '../collector.ts';

/** Bytes that the device holds when all is collected that nothing holds: other files of the process left some of it. */
export async function heldBytes(): Promise<number> {
  await sn.synchronize();
  const own = await device();
  return settledAt(() => own.memory().live);
}
