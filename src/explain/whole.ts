// explain and lower, wherever code does not come over a network: as src/whole.ts, and left out of a bundled page with it.

import * as made from '../explain.ts';
import { explaining } from './lazy.ts';

explaining.supply(made);
