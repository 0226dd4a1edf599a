// Every operation agrees with PyTorch, forward and backward, as CUDA C in checked builds, run through the product's own device.

import { describe } from 'vitest';
import { agreesWithTorch } from '../tensor/ops/torch-cases.ts';
import { titled, useStandIn } from './standin.ts';

describe.skipIf(!useStandIn({ check: true }))(titled('cuda over the stand-in'), () =>
  agreesWithTorch('cuda'),
);
