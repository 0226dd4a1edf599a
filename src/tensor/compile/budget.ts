// Budgets of memory that functions are compiled with.

import * as arg from '../../ir/arguments.ts';

/** Bytes. */
export const aBudget: arg.Kind<number> = arg.kind(
  'a number of bytes',
  (value) => Number.isSafeInteger(value) && (value as number) > 0,
  () => 'memory: 2 ** 30 for 1 GiB',
);

const budgets = new WeakMap<object, number>();

/** The compiled function, noted with its budget for those who look into it. */
export function withBudget<F extends object>(compiled: F, memory: number | undefined): F {
  if (memory !== undefined) budgets.set(compiled, memory);
  return compiled;
}

/** The budget that a function was compiled with, if it was. */
export function budgetOf(fn: object): number | undefined {
  return budgets.get(fn);
}
