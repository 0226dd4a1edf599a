// Which leaves of a tree are trained, for derivatives and optimizers alike. Modules say it by
// `requiresGrad`, as for loops of `backward` and `step`: their frozen tensors, constants, and
// tensors of integers and booleans are left alone. In trees of plain arrays and objects every float
// is a parameter, as in JAX.

import { TensorError } from '../../errors.ts';
import { isInexact } from '../../ir/dtype.ts';
import { Tensor } from '../tensor.ts';
import type { Flat } from '../tree.ts';

/**
 * Whether each leaf is trained. Throws E_GRAD where modules hold floats and none of the tree is.
 */
export function trainedLeaves(op: string, what: string, { leaves, paths, owned }: Flat): boolean[] {
  const isOfFloats = leaves.map((leaf) => leaf instanceof Tensor && isInexact(leaf.dtype));
  const trained = leaves.map(
    (leaf, i) => isOfFloats[i] === true && (owned[i] === false || (leaf as Tensor).requiresGrad),
  );
  const idle = trained.includes(true) ? -1 : isOfFloats.indexOf(true);
  if (idle < 0) return trained;
  throw new TensorError(
    'E_GRAD',
    op,
    `no tensor of ${what} requires gradients, ${paths[idle]} for one: all of them are frozen or constants`,
    'requiresGrad_() on the tensors to train: operations on parameters return values, not parameters',
  );
}
