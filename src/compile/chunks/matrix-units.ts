// The chunk of products by matrix units (tensor cores).

import './compiler.ts';
import './attention.ts';
import './products-gpu.ts';
import { attentionStrategies } from '../../codegen/template/attention/attention.ts';
import { mma as attentionMma } from '../../codegen/template/attention/gpu/mma.ts';
import { wgmma as attentionWgmma } from '../../codegen/template/attention/gpu/wgmma.ts';
import { mma } from '../../codegen/template/contract/gpu/mma.ts';
import { wgmma } from '../../codegen/template/contract/gpu/wgmma.ts';
import { strategies } from '../../codegen/template/contract/strategies.ts';
import { fill, type Slot } from '../../slot.ts';

export const slots: readonly Slot<unknown>[] = fill(
  [strategies.wgmma, wgmma],
  [strategies.mma, mma],
  [attentionStrategies.wgmma, attentionWgmma],
  [attentionStrategies.mma, attentionMma],
);
