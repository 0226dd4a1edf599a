// The derivative of loops, which only programs with loops need. A page that records none does not download it: whatever records a loop
// fills the slot (tensor/control/loop.ts).

import { Slot } from '../slot.ts';
import type { loopCotangents } from './rules-loop.ts';

export const loopDerivative: Slot<typeof loopCotangents> = new Slot('the derivative of loops');
