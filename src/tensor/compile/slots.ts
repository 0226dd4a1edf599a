// The programs of processes that hold tensors together are in a slot, which `sinter/distributed` fills (distributed/shard.ts): other
// pages do not download them.

import { Slot } from '../../slot.ts';

export const partPrograms: Slot<
  Pick<typeof import('./parts.ts'), 'meshWithin' | 'noHistory' | 'PartPrograms' | 'theMesh'>
> = new Slot('programs of several processes');
