// Calls of PyTorch's operators as ours: masked.

import type { Calls } from '../args.ts';

export const masked: Calls = {};
