// Calls of PyTorch's operators as ours: loss.

import type { Calls } from '../args.ts';

export const loss: Calls = {};
