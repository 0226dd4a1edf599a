// The derivative of loops is in a slot, because only programs with loops need it. The code that records a
// loop fills the slot (tensor/control/loop.ts), so a page without loops does not download the derivative.

import { Slot } from '../slot.ts';
import type { loopCotangents } from './rules-loop.ts';

export const loopDerivative: Slot<typeof loopCotangents> = new Slot('the derivative of loops');
