// Compiled functions, wherever code does not come over a network: as src/whole.ts, and left out of a bundled page with it.

import { specialising } from './lazy.ts';
import { Specialisations } from './specialisations.ts';

specialising.supply(Specialisations);
