// Calls of PyTorch's operators as ours: nn.

import type { Calls } from '../args.ts';

export const nn: Calls = {};
