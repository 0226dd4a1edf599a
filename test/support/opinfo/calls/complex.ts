// Calls of PyTorch's operators as ours: complex.

import type { Calls } from '../args.ts';

export const complex: Calls = {};
