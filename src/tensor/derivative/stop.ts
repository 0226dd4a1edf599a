// Where derivatives end.

import { Tensor } from '../tensor.ts';
import { flatten, unflatten } from '../tree.ts';

/**
 * The same tree, whose tensors are constants to every derivative, forwards and backwards: as
 * `x.detach()` for each of them. What is no tensor stays.
 */
export function stopGradient<T>(tree: T): T {
  if (tree instanceof Tensor) return tree.detach() as T;
  const { leaves, structure } = flatten(tree, 'stopGradient');
  const stopped = leaves.map((leaf) => (leaf instanceof Tensor ? leaf.detach() : leaf));
  return unflatten(structure, stopped) as T;
}
