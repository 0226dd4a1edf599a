// The derivatives of loops and of collectives are in slots, because few programs need them. The code that records a loop
// fills the one (tensor/control/loop.ts) and `sinter/distributed` the other (distributed/shard.ts), so other pages do not download them.

import { Slot } from '../slot.ts';
import type { CollectiveDerivatives } from './rules-collective.ts';
import type { loopCotangents } from './rules-loop.ts';

export const loopDerivative: Slot<typeof loopCotangents> = new Slot('the derivative of loops');

export const collectiveDerivative: Slot<CollectiveDerivatives> = new Slot('the derivative of collectives');
