// The chunk of products and reductions (matrix products, convolutions, sums, extrema, softmax), as far as every machine has it in
// common.

import { templates } from '../../codegen/lower/templates.ts';
import { contractLoop } from '../../codegen/template/contract/contract.ts';
import { registers } from '../../codegen/template/contract/gpu/registers.ts';
import { window } from '../../codegen/template/contract/gpu/window.ts';
import { strategies } from '../../codegen/template/contract/strategies.ts';
import { rowReductionLoop } from '../../codegen/template/row-reduction/row-reduction.ts';
import { anchorBody, permuteScatterWrites } from '../../schedule/body/anchor.ts';
import { anchorBodies } from '../../schedule/body/body.ts';
import { rarePasses } from '../../schedule/passes/pipeline.ts';
import { splitFolds } from '../../schedule/passes/split.ts';
import { fill, type Slot } from '../../slot.ts';

export const slots: readonly Slot<unknown>[] = fill(
  [templates['row-reduction'], rowReductionLoop],
  [templates.contract, contractLoop],
  [strategies.registers, registers],
  [strategies.window, window],
  [anchorBodies, { anchorBody, permuteScatterWrites }],
  [rarePasses.splitFolds, splitFolds],
);
