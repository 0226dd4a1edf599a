// Axes and elements in another order, by PyTorch's names for it: turned, mirrored, transposed.

import type { DType } from '../../../ir/dtype.ts';
import { TensorError } from '../../../errors.ts';
import * as arg from '../../../ir/arguments.ts';
import { checkList, normalizeAxis } from '../../../ir/shape.ts';
import { aTensor } from '../../expect.ts';
import type { Tensor } from '../../tensor.ts';
import { show, takesOne } from '../operand.ts';
import { flip } from './movement.ts';
import { moved, reshape, transpose } from './view.ts';

/**
 * Columns in reverse order.
 *
 * @example
 * const x = sn.tensor([[1, 2, 3], [4, 5, 6]]);
 * sn.fliplr(x);
 */
export function fliplr<D extends DType>(x: Tensor<D>): Tensor<D> {
  takesOne('fliplr', x);
  if (x.rank < 2) throw new TensorError('E_SHAPE', 'fliplr', `expects at least two axes: ${show(x)}`);
  return flip(x, 1);
}

/**
 * Rows in reverse order.
 *
 * @example
 * const x = sn.tensor([[1, 2, 3], [4, 5, 6]]);
 * sn.flipud(x);
 */
export function flipud<D extends DType>(x: Tensor<D>): Tensor<D> {
  takesOne('flipud', x);
  if (x.rank < 1) throw new TensorError('E_SHAPE', 'flipud', `expects at least one axis: ${show(x)}`);
  return flip(x, 0);
}

const takesRot90 = arg.takes<typeof rot90>(
  ['x', aTensor],
  ['the number of turns', arg.optional(arg.integer)],
  ['axes', arg.inside()],
);

/**
 * Turned by `turns` right angles in the plane of two axes, from the first towards the second.
 *
 * @example
 * const x = sn.tensor([[1, 2, 3], [4, 5, 6]]);
 * sn.rot90(x);
 */
export function rot90<D extends DType>(
  x: Tensor<D>,
  turns = 1,
  axes: readonly [number, number] = [0, 1],
): Tensor<D> {
  takesRot90('rot90', x, turns, axes);
  checkList('rot90', 'axes', axes);
  const [from, to] = Array.from(axes, (axis) => normalizeAxis('rot90', axis, x.rank));
  if (axes.length !== 2 || from === to)
    throw new TensorError('E_AXIS', 'rot90', `expects two axes, got [${[...axes].join(',')}]: ${show(x)}`);
  switch (((turns % 4) + 4) % 4) {
    case 1:
      return transpose(flip(x, to!), from, to);
    case 2:
      return flip(x, [from!, to!]);
    case 3:
      return flip(transpose(x, from, to), to!);
    default:
      return reshape(x, x.shape);
  }
}

const takesMovedim = arg.takes<typeof movedim>(['x', aTensor], ['from', arg.inside()], ['to', arg.inside()]);

/**
 * PyTorch's first name for `moveaxis`.
 *
 * @jax jnp.moveaxis
 * @example
 * const cube = sn.linspace(0, 7, 8).reshape([2, 2, 2]);
 * sn.movedim(cube, 0, 2);
 */
export function movedim<D extends DType>(
  x: Tensor<D>,
  from: number | readonly number[],
  to: number | readonly number[],
): Tensor<D> {
  takesMovedim('movedim', x, from, to);
  return moved('movedim', x, from, to);
}

const takesSwapaxes = arg.takes<typeof swapaxes>(
  ['x', aTensor],
  ['first', arg.inside()],
  ['second', arg.inside()],
);

/**
 * Two axes exchanged: NumPy's name for `transpose`.
 *
 * @method
 * @example
 * const x = sn.tensor([[1, 2, 3], [4, 5, 6]]);
 * sn.swapaxes(x, 0, 1);
 */
export function swapaxes<D extends DType>(x: Tensor<D>, first: number, second: number): Tensor<D> {
  takesSwapaxes('swapaxes', x, first, second);
  for (const axis of [first, second]) normalizeAxis('swapaxes', axis, Math.max(1, x.rank));
  return transpose(x, first, second);
}

/**
 * All elements in one axis, in C-order.
 *
 * @method
 * @example
 * const x = sn.tensor([[1, 2, 3], [4, 5, 6]]);
 * sn.ravel(x);
 */
export function ravel<D extends DType>(x: Tensor<D>): Tensor<D> {
  takesOne('ravel', x);
  return reshape(x, [x.size]);
}

const takesReshapeAs = arg.takes<typeof reshapeAs>(['x', aTensor], ['the other', aTensor]);

/**
 * x in the shape of another tensor of as many elements.
 *
 * @jax jnp.reshape
 * @example
 * const v = sn.tensor([1, 2, 3]);
 * const row = sn.tensor([[1, 2, 3]]);
 * sn.reshapeAs(row, v.unsqueeze(1));
 */
export function reshapeAs<D extends DType>(x: Tensor<D>, other: Tensor): Tensor<D> {
  takesReshapeAs('reshapeAs', x, other);
  return reshape(x, other.shape);
}
