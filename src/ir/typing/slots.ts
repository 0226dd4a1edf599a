// The type rules of what only programs over several processes have are in a slot, so that other pages do not download them.
// The constructors of collectives (../collectives.ts) fill it, and whatever reads graphs that may have any.

import { Slot } from '../../slot.ts';
import type { meshRules } from './collective.ts';

export const meshTypes: Slot<typeof meshRules> = new Slot('the types of collectives');
