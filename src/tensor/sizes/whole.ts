// Varying sizes, wherever code does not come over a network: as src/whole.ts, and left out of a bundled page with it.

import { symbolics } from './lazy.ts';
import { Symbolic } from './symbolic.ts';

symbolics.supply(Symbolic);
