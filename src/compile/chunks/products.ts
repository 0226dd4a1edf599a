// The chunk of what products and reductions (matrix products, convolutions, sums, extrema, softmax) have in common on every
// machine. The chunks of the machines import it, and so do those of operations that are computed by products and sums.

import './compiler.ts';
import { templates } from '../../codegen/lower/templates.ts';
import { contractLoop } from '../../codegen/template/contract/contract.ts';
import { registers } from '../../codegen/template/contract/gpu/registers.ts';
import { strategies } from '../../codegen/template/contract/strategies.ts';
import { rowReductionLoop } from '../../codegen/template/row-reduction/row-reduction.ts';
import { fusionRootBody } from '../../schedule/body/fusion-root.ts';
import { fusionRootBodies } from '../../schedule/body/body.ts';
import { rarePasses } from '../../schedule/passes/pipeline.ts';
import { splitFolds } from '../../schedule/passes/split.ts';
import { fill, type Slot } from '../../slot.ts';

// What the chunks of the machines have in common: one name of each module brings the module here.
export { blockLoop } from '../../codegen/template/contract/cpu/blocks.ts';
export { packPanels } from '../../codegen/template/contract/cpu/panels.ts';
export { placesOf } from '../../codegen/template/row-reduction/gpu/fold.ts';
export { outlineRow } from '../../codegen/template/row-reduction/outline.ts';
export { pickedOf } from '../../codegen/template/row-reduction/pick.ts';
export { softmaxInstead } from '../../codegen/template/row-reduction/softmax.ts';
export { rowSpread } from '../../codegen/template/row-reduction/tiling.ts';
export { Join } from '../../codegen/template/shared/join.ts';

export const slots: readonly Slot<unknown>[] = fill(
  [templates['row-reduction'], rowReductionLoop],
  [templates.contract, contractLoop],
  [strategies.registers, registers],
  [fusionRootBodies, fusionRootBody],
  [rarePasses.splitFolds, splitFolds],
);
