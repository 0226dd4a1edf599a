// Calls of PyTorch's operators as ours: spectral.

import type { Calls } from '../args.ts';

export const spectral: Calls = {};
