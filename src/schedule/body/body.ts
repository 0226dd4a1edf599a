// Kernel bodies: of maps here, and of what has a fusion root where there is one (fusion-root.ts).

import type { Body } from '../kernel.ts';
import type { fusionRootBody } from './fusion-root.ts';
import type { permuteScatterWrites } from './rare-root.ts';
import type { Evaluator } from '../expression/evaluate.ts';
import type { Repeated } from '../fusion/few-rows.ts';
import type { KernelPlan } from './plan.ts';
import { Slot } from '../../slot.ts';

/** The bodies of kernels with a fusion root. */
export const fusionRootBodies: Slot<typeof fusionRootBody> = new Slot('bodies of kernels');

/** What scatters of permutations write. */
export const dispersedWrites: Slot<typeof permuteScatterWrites> = new Slot('the writes of permutations');

/** The body of a kernel; `asked` gets the reductions that its expressions repeat. */
export function buildBody({ fusionGroup, axis }: KernelPlan, evaluator: Evaluator, asked: Repeated): Body {
  if (fusionGroup === undefined) return { kind: 'map', axis: axis! };
  return fusionRootBodies.value(fusionGroup, evaluator, asked);
}
