// Calls of PyTorch's operators as ours: indexing.

import type { Calls } from '../args.ts';

export const index: Calls = {};
