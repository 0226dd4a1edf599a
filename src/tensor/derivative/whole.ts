// Derivatives, wherever code does not come over a network: as src/whole.ts, and left out of a bundled page with it.

import './loaded.ts';
