// The chunk of products and reductions by workgroups whose invocations run at a time (WGSL, CUDA).

import './products.ts';
import { stagesOfRows } from '../../codegen/template/contract/gpu/registers.ts';
import { splitK } from '../../codegen/template/contract/gpu/split-k.ts';
import { staged } from '../../codegen/template/contract/gpu/staged.ts';
import { stageResults } from '../../codegen/template/contract/gpu/stages.ts';
import { strategies } from '../../codegen/template/contract/strategies.ts';
import { shared } from '../../codegen/template/row-reduction/gpu/rows.ts';
import { rowStrategies } from '../../codegen/template/row-reduction/row-reduction.ts';
import { rarePasses } from '../../schedule/passes/pipeline.ts';
import { splitSoftmaxes } from '../../schedule/passes/split-softmax.ts';
import { fill, type Slot } from '../../slot.ts';

export const slots: readonly Slot<unknown>[] = fill(
  [strategies.staged, staged],
  [strategies['split-k'], splitK],
  [stagesOfRows, stageResults],
  [rowStrategies.shared, shared],
  [rarePasses.splitSoftmaxes, splitSoftmaxes],
);
