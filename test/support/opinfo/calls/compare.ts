// Calls of PyTorch's operators as ours: compare.

import type { Calls } from '../args.ts';

export const compare: Calls = {};
