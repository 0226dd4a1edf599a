// What decodes blocks, which a chunk brings.

import { Slot } from '../../slot.ts';
import type { decodedLanes } from './decode.ts';

/** What words of blocks say. */
export const decoding: Slot<typeof decodedLanes> = new Slot('values of blocks');
