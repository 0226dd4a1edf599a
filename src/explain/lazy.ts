// explain and lower as `sinter` has them: a page loads what they are made of with the rest of the compiler (`loadCompiler`).

import type * as made from '../explain.ts';
import { Lazy } from '../lazy.ts';
import type { Tensor } from '../tensor/tensor.ts';
import type { Explanation } from './explanation.ts';

/** The functions themselves. */
export type Explaining = Pick<typeof made, 'explain' | 'lower'>;

export const explaining: Lazy<Explaining> = new Lazy('explain', () => import('../explain.ts'));

/**
 * What computing `subject` would run: a function, traced on `args` (trees of tensors and numbers; only their shapes count), or
 * a pending tensor, which stays pending. Nothing is computed and no device is opened. Kernels are those for the device that
 * would run: the one that is open, or that `setDevice` or `SINTER_DEVICE` name; where there is none, or it is the
 * interpreter, those for a GPU.
 */
export function explain(
  subject: Tensor | ((...args: never[]) => unknown),
  ...args: readonly unknown[]
): Explanation {
  return explaining.value.explain(subject, ...args);
}

/**
 * The kernels of `fn` as sources, in the order they run, without a device. Throws E_UNSUPPORTED for a target that there is no
 * generator for.
 */
export function lower(
  fn: Tensor | ((...args: never[]) => unknown),
  args: readonly unknown[] = [],
  options: made.LowerOptions = {},
): made.LoweredSource[] {
  return explaining.value.lower(fn, args, options);
}
