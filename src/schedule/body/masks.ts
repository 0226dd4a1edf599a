// What kernels leave out because masks cut it off: a slot, which the chunk of selections fills. Masks compare positions, so
// kernels of graphs without positions have nothing to leave out.

import { Slot } from '../../slot.ts';
import type { isCutOff, neededElements } from '../needed.ts';
import type { BoundFinder, boundOfProducts, boundOfRows, certainBelow } from './bound.ts';
import type { withNeeds } from './needed.ts';

/** What finds the ends of folds and what of values is needed. */
export interface Masks {
  readonly BoundFinder: typeof BoundFinder;
  readonly boundOfProducts: typeof boundOfProducts;
  readonly boundOfRows: typeof boundOfRows;
  readonly certainBelow: typeof certainBelow;
  readonly isCutOff: typeof isCutOff;
  readonly neededElements: typeof neededElements;
  readonly withNeeds: typeof withNeeds;
}

export const masks: Slot<Masks> = new Slot('what masks cut off');
