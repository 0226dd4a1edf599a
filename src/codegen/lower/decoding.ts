// What decodes blocks, which comes when a kernel reads some.

import { Lazy } from '../../lazy.ts';
import type { decodedLanes } from './decode.ts';

/** What words of blocks say. */
export const decoding: Lazy<typeof decodedLanes> = new Lazy('values of blocks', async () => {
  return (await import('./decode.ts')).decodedLanes;
});
