// Calls of PyTorch's operators as ours: reduce.

import type { Calls } from '../args.ts';

export const reduce: Calls = {};
