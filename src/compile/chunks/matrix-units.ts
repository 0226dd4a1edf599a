// The chunk of products by matrix units (tensor cores).

import './products.ts';
import './attention.ts';
import './products-gpu.ts';
import { attentionStrategies } from '../../codegen/template/attention/attention.ts';
import { mma as attentionMma } from '../../codegen/template/attention/gpu/mma.ts';
import { wgmma as attentionWgmma } from '../../codegen/template/attention/gpu/wgmma.ts';
import { mma } from '../../codegen/template/contract/gpu/mma.ts';
import { wgmma } from '../../codegen/template/contract/gpu/wgmma.ts';
import { copiedNodes } from '../../codegen/template/contract/problem.ts';
import { strategies } from '../../codegen/template/contract/strategies.ts';
import { copiedOperands } from '../../codegen/template/contract/tile-conv.ts';
import { fill, type Slot } from '../../slot.ts';

export const slots: readonly Slot<unknown>[] = fill(
  [copiedNodes, copiedOperands],
  [strategies.wgmma, wgmma],
  [strategies.mma, mma],
  [attentionStrategies.wgmma, attentionWgmma],
  [attentionStrategies.mma, attentionMma],
);
