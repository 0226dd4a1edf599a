// The programs of processes that hold tensors together are in a slot, which `sinter/distributed` fills (distributed/shard.ts): other
// pages do not download them.

import { Slot } from '../../slot.ts';

export const partPrograms: Slot<Omit<typeof import('./parts.ts'), 'theMesh'>> = new Slot(
  'programs of several processes',
);
