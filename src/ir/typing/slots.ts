// The type rules of transforms, matrix algorithms, and of what only programs over several processes have, are in slots, so
// that other pages do not download them. What records such operations fills them (../fft/table.ts, ../matrix.ts,
// ../collectives.ts), and whatever reads graphs that may have any.

import { Slot } from '../../slot.ts';
import type { TypeRulesOf } from './check.ts';
import type { meshRules } from './collective.ts';

export const transformTypes: Slot<TypeRulesOf<'fft' | 'fftPart'>> = new Slot('the types of transforms');

export const meshTypes: Slot<typeof meshRules> = new Slot('the types of collectives');

export const factorTypes: Slot<TypeRulesOf<'factor'>> = new Slot('the types of matrix algorithms');
