// Every operation agrees with PyTorch, forward and backward, as CUDA C in checked builds, run through the product's own device.

import { agreesWithTorch } from '../tensor/ops/torch-cases.ts';
import { onStandIn } from './standin/on-standin.ts';

onStandIn('cuda over the stand-in', () => agreesWithTorch('cuda'), { check: true });
