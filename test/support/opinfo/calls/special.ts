// Calls of PyTorch's operators as ours: special.

import type { Calls } from '../args.ts';

export const special: Calls = {};
