// Calls of PyTorch's operators as ours: shape.

import type { Calls } from '../args.ts';

export const shape: Calls = {};
