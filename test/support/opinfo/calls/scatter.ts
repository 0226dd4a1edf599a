// Calls of PyTorch's operators as ours: scatter.

import type { Calls } from '../args.ts';

export const scatter: Calls = {};
