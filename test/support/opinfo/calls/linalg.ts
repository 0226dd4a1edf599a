// Calls of PyTorch's operators as ours: linalg.

import type { Calls } from '../args.ts';

export const linalg: Calls = {};
