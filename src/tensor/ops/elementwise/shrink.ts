// Activations with a dead zone or a threshold, and those with random slopes.

import { TensorError } from '../../../errors.ts';
import * as arg from '../../../ir/arguments.ts';
import { add, binary, fullLike, mul, sub, where } from '../../../ir/build.ts';
import { isFloat, type DType } from '../../../ir/dtype.ts';
import { dims } from '../../../ir/graph.ts';
import { normalizeAxis } from '../../../ir/shape.ts';
import { aTensor } from '../../expect.ts';
import type { Floated } from '../../inferred.ts';
import type { Tensor } from '../../tensor.ts';
import { gumbelOf, uniformOf } from '../../formula/noise.ts';
import * as formula from '../../formula/elementwise.ts';
import { checkHeld } from '../number.ts';
import { apply, checkFloat, checkReal, floatFormula, realFormula } from '../operand.ts';

const takesLambda = arg.takes<typeof softshrink>(['x', aTensor], ['lambda', arg.optional(arg.notNegative)]);

/**
 * x moved towards 0 by `lambda` (½ by default), 0 within it.
 *
 * @example
 * const x = sn.tensor([[1, -2, 3], [0.5, 4, -1]]);
 * sn.softshrink(x);
 */
export function softshrink<D extends DType>(x: Tensor<D>, lambda = 0.5): Tensor<Floated<D>> {
  takesLambda('softshrink', x, lambda);
  return realFormula('softshrink', (b, wide) => {
    const zero = fullLike(b, wide, 0);
    const above = binary(b, 'lt', fullLike(b, wide, lambda), wide);
    const below = binary(b, 'lt', wide, -lambda);
    // Products with 0 keep NaN.
    const inside = mul(b, formula.stopGradient(b, wide), 0);
    const rest = where(b, formula.isNan(b, wide), inside, zero);
    return where(b, above, sub(b, wide, lambda), where(b, below, add(b, wide, lambda), rest));
  })(x);
}

/**
 * x where |x| is above `lambda` (½ by default), else 0.
 *
 * @example
 * const x = sn.tensor([[1, -2, 3], [0.5, 4, -1]]);
 * sn.hardshrink(x);
 */
export function hardshrink<D extends DType>(x: Tensor<D>, lambda = 0.5): Tensor<Floated<D>> {
  takesLambda('hardshrink', x, lambda);
  return realFormula('hardshrink', (b, wide) => {
    const zero = fullLike(b, wide, 0);
    const inside = binary(
      b,
      'and',
      binary(b, 'le', fullLike(b, wide, -lambda), wide),
      binary(b, 'le', wide, lambda),
    );
    return where(b, inside, zero, wide);
  })(x);
}

const takesThreshold = arg.takes<typeof threshold>(
  ['x', aTensor],
  ['the threshold', arg.number],
  ['the value', arg.element],
);

/**
 * x where it is above the threshold (or NaN), else the value.
 *
 * @example
 * const x = sn.tensor([[1, -2, 3], [0.5, 4, -1]]);
 * sn.threshold(x, 0.75, -1);
 */
export function threshold<D extends DType>(x: Tensor<D>, at: number, value: number): Tensor<D> {
  takesThreshold('threshold', x, at, value);
  checkReal('threshold', x);
  checkHeld('threshold', value, x.dtype);
  return apply([x], (b, node) => {
    const bound = isFloat(x.dtype) ? at : Math.floor(at);
    return where(b, binary(b, 'le', node, bound), fullLike(b, node, value), node);
  });
}

export interface RreluOptions {
  /** The least slope, 1/8 by default. */
  readonly lower?: number;
  /** The greatest slope, 1/3 by default. */
  readonly upper?: number;
  /** Whether slopes are drawn; their mean otherwise (default). */
  readonly training?: boolean;
}

/** @internal */
export const rreluOptions: arg.Table<RreluOptions> = {
  lower: arg.finite,
  upper: arg.finite,
  training: arg.flag,
};
const takesRrelu = arg.takes<typeof rrelu>(
  ['x', aTensor],
  ['options', arg.options<RreluOptions>(rreluOptions)],
);

/**
 * x above 0, below it times a slope drawn for each element from U(lower, upper) (Xu et al., 2015).
 *
 * @family Random numbers, dropout and distributions
 * @example
 * const x = sn.tensor([[1, -2, 3], [0.5, 4, -1]]);
 * sn.rrelu(x, { training: true });
 */
export function rrelu<D extends DType>(x: Tensor<D>, options: RreluOptions = {}): Tensor<Floated<D>> {
  takesRrelu('rrelu', x, options);
  const { lower = 1 / 8, upper = 1 / 3, training = false } = options;
  if (lower > upper)
    throw new TensorError('E_VALUE', 'rrelu', `lower ${lower} must not be above upper ${upper}`);
  return realFormula('rrelu', (b, wide) => {
    const isPositive = binary(b, 'lt', fullLike(b, wide, 0), wide);
    const slope = training
      ? add(b, mul(b, uniformOf(b, dims(wide), wide.dtype), upper - lower), lower)
      : (lower + upper) / 2;
    return where(b, isPositive, wide, mul(b, wide, slope));
  })(x);
}

export interface GumbelSoftmaxOptions {
  /** The temperature: the lower, the closer to one-hot; 1 by default. */
  readonly tau?: number;
  /** One-hot on the way forward, with the gradient of the soft sample; false by default. */
  readonly hard?: boolean;
  /** The last by default. */
  readonly axis?: number;
}

const takesGumbel = arg.takes<typeof gumbelSoftmax>(
  ['the logits', aTensor],
  ['options', arg.options<GumbelSoftmaxOptions>({ tau: arg.positive, hard: arg.flag, axis: arg.integer })],
);

/**
 * A sample from the Gumbel-softmax distribution of logits (Jang et al., 2017), differentiable.
 *
 * @family Random numbers, dropout and distributions
 * @example
 * const x = sn.tensor([[1, -2, 3], [0.5, 4, -1]]);
 * sn.gumbelSoftmax(x);
 */
export function gumbelSoftmax(logits: Tensor, options: GumbelSoftmaxOptions = {}): Tensor {
  takesGumbel('gumbelSoftmax', logits, options);
  const { tau = 1, hard = false, axis = -1 } = options;
  checkFloat('gumbelSoftmax', logits);
  const at = normalizeAxis('gumbelSoftmax', axis, logits.rank);
  return floatFormula('gumbelSoftmax', (b, wide) => {
    const noise = gumbelOf(b, dims(wide), wide.dtype);
    const soft = formula.softmax(b, mul(b, add(b, wide, noise), 1 / tau), [at]);
    if (!hard) return soft;
    const fixed = formula.stopGradient(b, soft);
    const place = b.add('argReduce', [fixed], { monoid: 'max', axis: at });
    const hit = formula.pointedAt(b, soft, place, at);
    const one = where(b, hit, fullLike(b, soft, 1), fullLike(b, soft, 0));
    return add(b, one, sub(b, soft, fixed));
  })(logits);
}
