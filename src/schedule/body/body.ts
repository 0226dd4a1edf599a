// Kernel bodies: of maps here, and of what has an anchor where there is one (anchor.ts).

import type { Body } from '../kernel.ts';
import type { anchorBody, permuteScatterWrites } from './anchor.ts';
import type { Evaluator } from '../expression/evaluate.ts';
import type { KernelPlan } from './plan.ts';
import { Slot } from '../../slot.ts';

/** The bodies of kernels with an anchor, and what scatters of permutations write. */
export interface AnchorBodies {
  readonly anchorBody: typeof anchorBody;
  readonly permuteScatterWrites: typeof permuteScatterWrites;
}

export const anchorBodies: Slot<AnchorBodies> = new Slot('bodies of kernels');

export function buildBody({ cluster, axis }: KernelPlan, evaluator: Evaluator): Body {
  if (cluster === undefined) return { kind: 'map', axis: axis! };
  return anchorBodies.value.anchorBody(cluster, evaluator);
}
