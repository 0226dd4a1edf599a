// Kernel bodies: of maps here, and of what has a fusion root where there is one (fusion-root.ts).

import type { Body } from '../kernel.ts';
import type { fusionRootBody, permuteScatterWrites } from './fusion-root.ts';
import type { Evaluator } from '../expression/evaluate.ts';
import type { Repeated } from '../fusion/few-rows.ts';
import type { KernelPlan } from './plan.ts';
import { Slot } from '../../slot.ts';

/** The bodies of kernels with a fusion root, and what scatters of permutations write. */
export interface FusionRootBodies {
  readonly fusionRootBody: typeof fusionRootBody;
  readonly permuteScatterWrites: typeof permuteScatterWrites;
}

export const fusionRootBodies: Slot<FusionRootBodies> = new Slot('bodies of kernels');

/** The body of a kernel; `asked` gets the reductions that its expressions repeat. */
export function buildBody({ fusionGroup, axis }: KernelPlan, evaluator: Evaluator, asked: Repeated): Body {
  if (fusionGroup === undefined) return { kind: 'map', axis: axis! };
  return fusionRootBodies.value.fusionRootBody(fusionGroup, evaluator, asked);
}
