// Reductions that give several results or compare two tensors, and sums back to a smaller shape.

import type { DType } from '../../../ir/dtype.ts';
import type { Floated, SizeOf } from '../../inferred.ts';
import { TensorError } from '../../../errors.ts';
import * as arg from '../../../ir/arguments.ts';
import { cast, constant, sumTo } from '../../../ir/build.ts';
import { checkList, checkShape } from '../../../ir/shape.ts';
import { anOperand, aTensor } from '../../expect.ts';
import type { Tensor, TensorLike } from '../../tensor.ts';
import { record } from '../../record.ts';
import { eq, where } from '../elementwise/compare.ts';
import { sqrt } from '../elementwise/elementwise.ts';
import { closeness, closeOptions, type CloseOptions } from '../elementwise/pairs.ts';
import * as formula from '../../formula/elementwise.ts';
import { apply, checkInexact, show } from '../operand.ts';
import { reshape } from '../shape/view.ts';
import { axesOf, type Axes } from './axes.ts';
import { all, sum, varMean, type VarOptions } from './reduce.ts';

const takesStdMean = arg.takes<typeof stdMean>(
  ['the operand', aTensor],
  ['axes', arg.inside()],
  ['options', arg.options<VarOptions>({ keepdim: arg.flag, correction: arg.finite })],
);

/**
 * Standard deviation and mean over the same axes.
 *
 * @example
 * const x = sn.tensor([[1, -2, 3], [0.5, 4, -1]]);
 * sn.stdMean(x, 1);
 */
export function stdMean<D extends DType>(
  x: Tensor<D>,
  axes?: Axes,
  options: VarOptions = {},
): [deviation: Tensor<SizeOf<Floated<D>>>, mean: Tensor<Floated<D>>] {
  takesStdMean('stdMean', x, axes, options);
  checkInexact('stdMean', x);
  axesOf('stdMean', axes, x);
  const [spread, mean]: [Tensor, Tensor] = varMean(x, axes, options);
  // The derivative of √ at 0 is taken as 0, as in `std`.
  const isFlat = eq(spread, 0);
  return [where(isFlat, spread, sqrt(where(isFlat, 1, spread))), mean];
}

const takesSumToSize = arg.takes<typeof sumToSize>(['x', aTensor], ['the shape', arg.inside()]);

/**
 * Sums over what broadcasting `shape` to x's would repeat.
 *
 * @example
 * const x = sn.tensor([[1, -2, 3], [0.5, 4, -1]]);
 * sn.sumToSize(x, [1, 3]);
 */
export function sumToSize(x: Tensor, shape: readonly number[]): Tensor {
  takesSumToSize('sumToSize', x, shape);
  checkList('sumToSize', 'a shape', shape);
  const to = [...shape];
  checkShape('sumToSize', to);
  const lead = x.rank - to.length;
  if (lead < 0 || !to.every((dim, i) => dim === 1 || dim === x.shape[i + lead]))
    throw new TensorError('E_SHAPE', 'sumToSize', `[${to.join(',')}] does not broadcast to ${show(x)}`);
  if (to.length === 0) return sum(x);
  const isWhole = lead === 0 && to.every((dim, i) => dim === x.shape[i]);
  if (isWhole) return reshape(x, to);
  return apply([x], (b, node) => sumTo(b, cast(b, node, formula.sumType(node.dtype)), to));
}

const takesAllclose = arg.takes<typeof allclose>(
  ['x', anOperand],
  ['y', anOperand],
  ['options', arg.options<CloseOptions>(closeOptions)],
);

/**
 * Whether all elements are close, as `isclose` has it: one bool.
 *
 * @family Comparisons, booleans, bits and casts
 * @example
 * const a = sn.tensor([1, 2, 3]);
 * const b = sn.tensor([1, 2, 4]);
 * sn.allclose(a, b, { atol: 1.5 });
 */
export function allclose(x: TensorLike, y: TensorLike, options: CloseOptions = {}): Tensor<'bool'> {
  takesAllclose('allclose', x, y, options);
  return all(closeness('allclose', x, y, options));
}

const takesEqual = arg.takes<typeof equal>(['x', aTensor], ['y', aTensor]);

/**
 * Whether two tensors have one shape and the same elements: one bool.
 *
 * @family Comparisons, booleans, bits and casts
 * @jax jnp.array_equal
 * @example
 * const a = sn.tensor([1, 2, 3]);
 * const b = sn.tensor([1, 2, 4]);
 * sn.equal(a, b);
 */
export function equal(x: Tensor, y: Tensor): Tensor<'bool'> {
  takesEqual('equal', x, y);
  const sameShape = x.rank === y.rank && x.shape.every((dim, i) => dim === y.shape[i]);
  return sameShape ? all(eq(x, y)) : record([], (b) => constant(b, 0, 'bool'));
}
