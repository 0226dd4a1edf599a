// Calls of PyTorch's operators as ours: pool.

import type { Calls } from '../args.ts';

export const pool: Calls = {};
