// Whole models: an optimizer step over many parameters, a perceptron's train step, a transformer layer forward and trained.

import * as sn from '../index.ts';
import type { Tensor } from '../index.ts';
import { block, initBlock, type Block } from './transformer.ts';
import { workload, type Workload } from './workload.ts';

const [width, heads, hidden] = [256, 4, 1024];

/** What enters a layer: batch 4, 128 positions. */
const activations = [4, 128, width];

export const gptBlockForward: Workload = workload(
  'gptBlockForward',
  'a transformer layer, width 256, 4 heads, batch 4, 128 positions, hidden 1024, causal',
  (x: Tensor, p: Block) => block(x, p, heads),
  () => [sn.zeros(activations), initBlock(width, hidden, 1)],
);
