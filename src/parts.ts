// What compiling asks for on request, whatever is compiled: the interpreter, and the verifiers of each level.

import type { verifyLoop } from './codegen/loop/verify.ts';
import type { interpret } from './ir/interpret/interpret.ts';
import type { verify } from './ir/verify.ts';
import { Lazy } from './lazy.ts';
import type { verifyKernel } from './schedule/verify.ts';

/** The interpreter of graphs. */
export const interpreter: Lazy<typeof interpret> = new Lazy('the interpreter', async () => {
  return (await import('./ir/interpret/interpret.ts')).interpret;
});

/** Verifiers of graphs, kernels and Loops. */
export interface Verifiers {
  readonly verify: typeof verify;
  readonly verifyKernel: typeof verifyKernel;
  readonly verifyLoop: typeof verifyLoop;
}

export const verifiers: Lazy<Verifiers> = new Lazy('the verifiers', async () => {
  const levels = [
    import('./ir/verify.ts'),
    import('./schedule/verify.ts'),
    import('./codegen/loop/verify.ts'),
  ] as const;
  const [graph, kernel, loop] = await Promise.all(levels);
  return { verify: graph.verify, verifyKernel: kernel.verifyKernel, verifyLoop: loop.verifyLoop };
});
