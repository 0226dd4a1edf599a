// Calls of PyTorch's operators as ours: product.

import type { Calls } from '../args.ts';

export const product: Calls = {};
