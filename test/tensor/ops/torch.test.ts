// Every operation agrees with PyTorch, forward and backward, on every device here (or on the one that SINTER_TEST_DEVICE names).
// The tracer for CUDA has a file of its own: test/cuda/torch.test.ts.

import { describe } from 'vitest';
import { agreesWithTorch } from './torch-cases.ts';

const named = process.env['SINTER_TEST_DEVICE'];

describe.each(named === undefined ? ['interpreter', 'webgpu:software', 'wasm'] : [named])(
  '%s',
  agreesWithTorch,
);
