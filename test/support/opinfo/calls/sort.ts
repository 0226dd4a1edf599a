// Calls of PyTorch's operators as ours: sort.

import type { Calls } from '../args.ts';

export const sort: Calls = {};
