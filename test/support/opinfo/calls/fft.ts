// Calls of PyTorch's operators as ours: fft.

import type { Calls } from '../args.ts';

export const fft: Calls = {};
