// Functions of one tensor that are formulas of others: angles in degrees, and x itself.

import type { DType } from '../../../ir/dtype.ts';
import { TensorError } from '../../../errors.ts';
import { mul } from '../../../ir/build.ts';
import type { Tensor } from '../../tensor.ts';
import { apply, floatFormula, show, takesOne, type FloatUnary } from '../operand.ts';

/**
 * Degrees as radians.
 *
 * @jax jnp.deg2rad, jnp.radians
 * @example
 * const x = sn.tensor([[1, -2, 3], [0.5, 4, -1]]);
 * sn.deg2rad(x);
 */
export const deg2rad: FloatUnary = floatFormula('deg2rad', (b, x) => mul(b, x, Math.PI / 180));
/**
 * Radians as degrees.
 *
 * @jax jnp.rad2deg, jnp.degrees
 * @example
 * const x = sn.tensor([[1, -2, 3], [0.5, 4, -1]]);
 * sn.rad2deg(x);
 */
export const rad2deg: FloatUnary = floatFormula('rad2deg', (b, x) => mul(b, x, 180 / Math.PI));

/**
 * x, which must be numbers.
 *
 * @example
 * const x = sn.tensor([[1, -2, 3], [0.5, 4, -1]]);
 * sn.positive(x);
 */
export function positive<D extends DType>(x: Tensor<D>): Tensor<D> {
  takesOne('positive', x);
  if (x.dtype === 'bool')
    throw new TensorError('E_DTYPE', 'positive', `expects numbers, not bool: ${show(x)}`, ".cast('i32')");
  return apply([x], (_, node) => node);
}
