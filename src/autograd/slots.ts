// The derivatives of loops, matrix algorithms and collectives are in slots, because few programs need them. The code that records a
// loop fills the first (tensor/control/loop.ts), the one that records matrix algorithms the second (tensor/formula/matrix.ts), and
// `sinter/distributed` the third (distributed/shard.ts), so other pages do not download them.

import { Slot } from '../slot.ts';
import type { factorRule } from './rules-factor.ts';
import type { CollectiveDerivatives } from './rules-collective.ts';
import type { loopCotangents } from './rules-loop.ts';

export const loopDerivative: Slot<typeof loopCotangents> = new Slot('the derivative of loops');

export const collectiveDerivative: Slot<CollectiveDerivatives> = new Slot('the derivative of collectives');

export const factorDerivative: Slot<typeof factorRule> = new Slot('the derivatives of matrix algorithms');
