// Calls of PyTorch's operators as ours: statistics.

import type { Calls } from '../args.ts';

export const statistics: Calls = {};
