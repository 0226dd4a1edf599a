// explain and lower as `sinter` has them. They compile without waiting, so in a bundled page `loadCompiler` has to come first; in
// Node what they need is there from the start (preloaded.ts).

import type * as made from './explain.ts';
import { loadAll, notLoaded } from '../compile/chunks.ts';
import { SinterError } from '../errors.ts';
import type { Tensor } from '../tensor/tensor.ts';
import type { Explanation } from './explanation.ts';

/** The functions themselves. */
type Explaining = Pick<typeof made, 'explain' | 'lower'>;

let loaded: Explaining | undefined;

/** The functions are there. */
export function supplyExplaining(functions: Explaining): void {
  loaded = functions;
}

function explaining(): Explaining {
  if (loaded === undefined) throw new SinterError('E_STATE', notLoaded('explain'));
  return loaded;
}

/**
 * Loads all of the compiler at once. In a bundled page `explain` and `lower` throw E_STATE before; nothing else asks for it,
 * because what reading a value needs is loaded when one is read. In Node it has nothing to do. Rejects with E_IO where a file
 * does not come.
 */
export async function loadCompiler(): Promise<void> {
  const [functions] = await Promise.all([import('./explain.ts'), loadAll()]);
  loaded = functions;
}

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
  return explaining().explain(subject, ...args);
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
  return explaining().lower(fn, args, options);
}
