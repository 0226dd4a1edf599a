// Calls of PyTorch's operators as ours: creation.

import type { Calls } from '../args.ts';

export const creation: Calls = {};
