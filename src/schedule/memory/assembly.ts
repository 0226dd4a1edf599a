// How kernels become a program: their order, and their memory. A single kernel whose results are all outputs needs neither; what
// others need is loaded for them.

import type { Node } from '../../ir/graph.ts';
import { Lazy } from '../../lazy.ts';
import type { Kernel } from '../kernel.ts';
import type { Packs } from '../merge/pack.ts';
import type { shareMemory } from './memory.ts';
import type { orderKernels as order } from './order.ts';
import { unsharedMemory, type MemoryDemand, type MemoryPlan } from './plan.ts';

/** What programs of several kernels, or with donations, are put together by. */
export interface Assembly {
  readonly shareMemory: typeof shareMemory;
  readonly orderKernels: typeof order;
}

export const assembly: Lazy<Assembly> = new Lazy('programs of several kernels', async () => {
  const [memory, ordering] = await Promise.all([import('./memory.ts'), import('./order.ts')]);
  return { shareMemory: memory.shareMemory, orderKernels: ordering.orderKernels };
});

/** Plans memory for kernels in the order in which they run. */
export function planMemory(kernels: readonly Kernel[], packs: Packs, demand: MemoryDemand): MemoryPlan {
  const isPlain = packs.size === 0 && demand.donations.size === 0 && demand.loops.size === 0;
  const isOutput = (kernel: Kernel): boolean => kernel.writes.every(({ node }) => demand.outputs.has(node));
  if (isPlain && kernels.every(isOutput)) return unsharedMemory;
  return assembly.value.shareMemory(kernels, packs, demand);
}

/** As `orderKernels` of order.ts, of any number of kernels. */
export function orderKernels(
  kernels: readonly Kernel[],
  donations: ReadonlyMap<Node, Node>,
  packs: Packs,
): readonly Kernel[] {
  return kernels.length < 2 ? kernels : assembly.value.orderKernels(kernels, donations, packs);
}
