// Every operation agrees with PyTorch, forward and backward, as CUDA C in checked builds, run through the product's own device.
//
// Runs in a process of its own: the CUDA device takes its settings once in a process.

import { agreesWithTorchAtOnce } from '../tensor/ops/torch-cases.ts';
import { onStandIn } from './standin/on-standin.ts';

onStandIn('cuda over the stand-in', () => agreesWithTorchAtOnce('cuda'), { check: true });
