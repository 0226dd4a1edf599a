// Fixpoints of decisions that depend on decisions made after them. A phase is attempted with
// assumptions about the later decisions; those that prove wrong are revised, and the phase is
// attempted again, until nothing is revised. Three phases work like this, each within the one
// before it: which results are written over donated inputs (compile.ts), which values fusion groups need
// not write because their readers compute them again (schedule.ts), and which nodes share a kernel
// (fusion/fusion.ts).

import { CompilerBug } from '../errors.ts';

/** What an attempt comes to: a result, or assumptions to begin anew with. */
export type Attempt<A, R> = { readonly settled: R } | { readonly revised: A };

/**
 * The phases, and after how many attempts each must have settled. Revisions only add to what is
 * ruled out, so they end.
 */
const attempts = { donations: 1000, storage: 1000, fusionGroups: 40 } as const;

/** Attempts a phase until it settles. Throws CompilerBug when it does not. */
export function fixpoint<A, R>(
  phase: keyof typeof attempts,
  assumptions: A,
  attempt: (assumptions: A) => Attempt<A, R>,
): R {
  let assumed = assumptions;
  for (let n = 0; n < attempts[phase]; n++) {
    const found = attempt(assumed);
    if ('settled' in found) return found.settled;
    assumed = found.revised;
  }
  throw new CompilerBug(phase, `kernels do not settle in ${attempts[phase]} attempts`);
}
