// Parts of the compiler that are loaded on request, whatever it compiles: the interpreter, and the verifiers
// of each level.

import type { verifyLoop } from '../codegen/loop/verify.ts';
import type { culpritOf, faultOf } from '../ir/interpret/culprit.ts';
import type { evaluateNode, valuesFrom } from '../ir/interpret/interpret.ts';
import type { verify } from '../ir/verify.ts';
import type { fitMemory } from '../schedule/recompute/fit.ts';
import type { plannedOf } from '../schedule/recompute/timeline.ts';
import type { verifyKernel } from '../schedule/verify.ts';
import { Slot } from '../slot.ts';
import type { interpreted } from './interpreted.ts';

/** The interpreter of graphs, and of single nodes, and its search for what made values that are not finite. */
export interface Interpreter {
  readonly culpritOf: typeof culpritOf;
  readonly evaluateNode: typeof evaluateNode;
  readonly faultOf: typeof faultOf;
  readonly interpreted: typeof interpreted;
  readonly valuesFrom: typeof valuesFrom;
}

export const interpreter: Slot<Interpreter> = new Slot('the interpreter');

/** Verifiers of graphs, kernels and Loops. */
export interface Verifiers {
  readonly verify: typeof verify;
  readonly verifyKernel: typeof verifyKernel;
  readonly verifyLoop: typeof verifyLoop;
}

export const verifiers: Slot<Verifiers> = new Slot('the verifiers');

/** What fits programs into a budget of memory. */
export interface Budgeting {
  readonly fitMemory: typeof fitMemory;
  readonly plannedOf: typeof plannedOf;
}

export const budgeting: Slot<Budgeting> = new Slot('memory budgets');
