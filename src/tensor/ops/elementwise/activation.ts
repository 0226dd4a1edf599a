// Activation functions, as PyTorch defines them in value and in derivative: at a kink the
// derivative is that of one named side, which is why they are written with `where` and not with min
// and max (those share ties).

import type { Floated, Limited } from '../../inferred.ts';
import { keepWhere, times } from '../../../autograd/cotangent.ts';
import type { CustomRule } from '../../../autograd/custom.ts';
import { TensorError } from '../../../errors.ts';
import { add, binary, cast, div, fullLike, mul, neg, sub, unary, where } from '../../../ir/build.ts';
import { isComplex, isFloat, type DType } from '../../../ir/dtype.ts';
import type { GraphBuilder, Node } from '../../../ir/graph.ts';
import * as arg from '../../../ir/arguments.ts';
import { normalizeAxis } from '../../../ir/shape.ts';
import { aTensor } from '../../expect.ts';
import type { Tensor } from '../../tensor.ts';
import * as formula from '../../formula/elementwise.ts';
import { sliceAxis } from '../../formula/layout.ts';
import { checkHeld } from '../number.ts';
import {
  apply,
  casted,
  checkNotComplex,
  checkReal,
  floatFormula,
  realFormula,
  show,
  takesOne,
  type FloatUnary,
} from '../operand.ts';

/**
 * 1 / (1 + e⁻ˣ).
 *
 * @names sigmoid, special.expit
 * @method
 * @example
 * const x = sn.tensor([[1, -2, 3], [0.5, 4, -1]]);
 * sn.sigmoid(x);
 */
export const sigmoid: FloatUnary = floatFormula('sigmoid', (b, x) =>
  // Complex numbers have no sides to choose the safe exponential by.
  isComplex(x.dtype) ? unary(b, 'recip', add(b, unary(b, 'exp', neg(b, x)), 1)) : formula.sigmoid(b, x),
);

/**
 * log σ(x) = −softplus(−x).
 *
 * @example
 * const x = sn.tensor([[1, -2, 3], [0.5, 4, -1]]);
 * sn.logSigmoid(x);
 */
export const logSigmoid: FloatUnary = realFormula('logSigmoid', (b, x) =>
  neg(b, formula.softplus(b, neg(b, x))),
);

/**
 * max(x, 0): NaN stays NaN, the derivative at 0 is 0.
 *
 * @method
 * @example
 * const x = sn.tensor([[1, -2, 3], [0.5, 4, -1]]);
 * sn.relu(x);
 */
export function relu<D extends DType>(x: Tensor<D>): Tensor<D> {
  takesOne('relu', x);
  checkReal('relu', x);
  return apply([x], (b, node) => {
    const zero = fullLike(b, node, 0);
    return where(b, binary(b, 'le', node, zero), zero, node);
  });
}

/**
 * The open interval's inside keeps x, the outside is its nearer end; the derivative at both ends,
 * and of NaN, is 0.
 */
function hardClamp(b: GraphBuilder, x: Node, low: number, high: number): Node {
  const [lower, upper] = [fullLike(b, x, low), fullLike(b, x, high)];
  const capped = where(b, binary(b, 'le', upper, x), upper, x);
  const value = where(b, binary(b, 'le', x, lower), lower, capped);
  return formula.withRule(b, value, [x, lower, upper], hardClampRule);
}

const hardClampRule: CustomRule = (b, [x, lower, upper], _value, g) => [
  keepWhere(b, binary(b, 'and', binary(b, 'lt', lower!, x!), binary(b, 'lt', x!, upper!)), g),
  undefined,
  undefined,
];

/**
 * x limited to [0, 6]; integers stay integers.
 *
 * @example
 * const x = sn.tensor([[1, -2, 3], [0.5, 4, -1]]);
 * sn.relu6(x);
 */
export function relu6<D extends DType>(x: Tensor<D>): Tensor<Limited<D>> {
  takesOne('relu6', x);
  return clamped('relu6', x, 0, 6);
}

/** x within its limits: integers stay so, bool is no number. */
function clamped(op: string, x: Tensor, low: number, high: number): Tensor {
  if (isFloat(x.dtype) || x.dtype === 'bool')
    return realFormula(op, (b, wide) => hardClamp(b, wide, low, high))(x);
  checkNotComplex(op, x);
  checkHeld(op, low, x.dtype);
  checkHeld(op, high, x.dtype);
  return apply([x], (b, node) => binary(b, 'min', binary(b, 'max', node, low), high));
}

const takesSlope = arg.takes<typeof leakyRelu>(['x', aTensor], ['slope', arg.optional(arg.number)]);

/**
 * x above 0, slope·x below; slope is 0.01 by default.
 *
 * @method
 * @example
 * const x = sn.tensor([[1, -2, 3], [0.5, 4, -1]]);
 * sn.leakyRelu(x);
 */
export function leakyRelu<D extends DType>(x: Tensor<D>, slope = 0.01): Tensor<Floated<D>> {
  takesSlope('leakyRelu', x, slope);
  return realFormula('leakyRelu', (b, wide) =>
    where(b, binary(b, 'lt', fullLike(b, wide, 0), wide), wide, mul(b, wide, slope)),
  )(x);
}

const takesPrelu = arg.takes<typeof prelu>(['the operand', aTensor], ['the weight', aTensor]);

/**
 * x above 0, weight·x below, with one learned weight or one per channel (axis 1).
 *
 * @example
 * const x = sn.tensor([[1, -2, 3], [0.5, 4, -1]]);
 * const w = sn.tensor([0.25]);
 * sn.prelu(x, w);
 */
export function prelu(x: Tensor, weight: Tensor): Tensor {
  takesPrelu('prelu', x, weight);
  const channels = x.rank < 2 ? 1 : x.shape[1]!;
  if (weight.rank > 1 || (weight.size !== 1 && weight.size !== channels)) {
    throw new TensorError('E_SHAPE', 'prelu', `expects 1 or ${channels} weights: ${show(x, weight)}`);
  }
  checkReal('prelu', x);
  if (x.dtype !== weight.dtype)
    throw new TensorError('E_DTYPE', 'prelu', `both must have one dtype: ${show(x, weight)}`);
  return apply([casted('prelu', x), casted('prelu', weight)], (b, p, w) => {
    const slope = w.shape.length === 0 || x.rank < 2 ? w : formula.alongAxis(b, w, x.rank, 1);
    const below = mul(b, formula.spreadTo(b, slope, p), p);
    return where(b, binary(b, 'lt', fullLike(b, p, 0), p), p, below);
  });
}

/** x above 0, alpha·(e^(x/width) − 1) below. */
function eluOf(b: GraphBuilder, x: Node, alpha: number, width = 1): Node {
  const positive = binary(b, 'lt', fullLike(b, x, 0), x);
  // The side not taken must not overflow: its exponential is of 0 there.
  const power = where(b, positive, fullLike(b, x, 0), x);
  const below = unary(b, 'expm1', width === 1 ? power : div(b, power, width));
  return where(b, positive, x, mul(b, below, alpha));
}

const takesAlpha = arg.takes<typeof elu>(['x', aTensor], ['alpha', arg.optional(arg.number)]);

/**
 * x above 0, alpha·(eˣ − 1) below; alpha is 1 by default.
 *
 * @method
 * @example
 * const x = sn.tensor([[1, -2, 3], [0.5, 4, -1]]);
 * sn.elu(x);
 */
export function elu<D extends DType>(x: Tensor<D>, alpha = 1): Tensor<Floated<D>> {
  takesAlpha('elu', x, alpha);
  return realFormula('elu', (b, wide) => eluOf(b, wide, alpha))(x);
}

/**
 * x above 0, alpha·(e^(x/alpha) − 1) below: elu with derivative 1 at 0 for every alpha.
 *
 * @example
 * const x = sn.tensor([[1, -2, 3], [0.5, 4, -1]]);
 * sn.celu(x);
 */
export function celu<D extends DType>(x: Tensor<D>, alpha = 1): Tensor<Floated<D>> {
  takesAlpha('celu', x, alpha);
  if (alpha === 0) throw new TensorError('E_VALUE', 'celu', 'alpha must not be 0');
  return realFormula('celu', (b, wide) => eluOf(b, wide, alpha, alpha))(x);
}

/**
 * Scaled elu whose outputs keep mean 0 and variance 1 (Klambauer et al., 2017).
 *
 * @example
 * const x = sn.tensor([[1, -2, 3], [0.5, 4, -1]]);
 * sn.selu(x);
 */
export const selu: FloatUnary = realFormula('selu', (b, x) =>
  mul(b, eluOf(b, x, 1.6732632423543772), 1.0507009873554805),
);

export interface GeluOptions {
  /**
   * `none`: x·Φ(x), by erf; `tanh`: its classic approximation; `sigmoid`: x·σ(1.702·x); `none` by
   * default.
   */
  readonly approximate?: 'none' | 'tanh' | 'sigmoid';
}

/** Its forms of gelu. @internal */
export const geluForm: arg.Kind<NonNullable<GeluOptions['approximate']>> = arg.oneOf(
  'none',
  'tanh',
  'sigmoid',
);
const takesGelu = arg.takes<typeof gelu>(
  ['x', aTensor],
  ['options', arg.options<GeluOptions>({ approximate: geluForm })],
);

/**
 * Gaussian error linear unit x·Φ(x).
 *
 * @method
 * @example
 * const x = sn.tensor([[1, -2, 3], [0.5, 4, -1]]);
 * sn.gelu(x);
 * @example <caption>tanh</caption>
 * const x = sn.tensor([[1, -2, 3], [0.5, 4, -1]]);
 * sn.gelu(x, { approximate: 'tanh' });
 * @example <caption>sigmoid</caption>
 * const x = sn.tensor([[1, -2, 3], [0.5, 4, -1]]);
 * sn.gelu(x, { approximate: 'sigmoid' });
 */
export function gelu<D extends DType>(x: Tensor<D>, options: GeluOptions = {}): Tensor<Floated<D>> {
  takesGelu('gelu', x, options);
  const form = options.approximate ?? 'none';
  switch (form) {
    case 'none':
      return realFormula('gelu', (b, wide) => {
        const twice = add(b, unary(b, 'erf', mul(b, wide, Math.SQRT1_2)), 1);
        return mul(b, mul(b, wide, 0.5), twice);
      })(x);
    case 'tanh':
      return floatFormula('gelu', (b, wide) => {
        const cubic = add(b, mul(b, mul(b, formula.square(b, wide), wide), 0.044715), wide);
        const twice = add(b, unary(b, 'tanh', mul(b, cubic, Math.sqrt(2 / Math.PI))), 1);
        return mul(b, mul(b, wide, 0.5), twice);
      })(x);
    case 'sigmoid':
      return floatFormula('gelu', (b, wide) => mul(b, wide, formula.sigmoid(b, mul(b, wide, 1.702))))(x);
    default:
      return form satisfies never;
  }
}

/**
 * x·σ(x).
 *
 * @method
 * @jax jax.nn.silu, jax.nn.swish
 * @example
 * const x = sn.tensor([[1, -2, 3], [0.5, 4, -1]]);
 * sn.silu(x);
 */
export const silu: FloatUnary = floatFormula('silu', (b, x) => {
  const value = mul(b, x, formula.sigmoid(b, x));
  return isComplex(x.dtype) ? value : formula.withRule(b, value, [x], siluRule);
});

/** d(x·σ) = σ·(1 + x·(1 − σ))·dx, where σ is 0 before g·x overflows. */
const siluRule: CustomRule = (b, [x], _value, g) => {
  const gate = formula.sigmoid(b, x!);
  return [times(b, g, mul(b, gate, add(b, mul(b, x!, sub(b, 1, gate)), 1)))];
};

/**
 * x·tanh(softplus(x)).
 *
 * @example
 * const x = sn.tensor([[1, -2, 3], [0.5, 4, -1]]);
 * sn.mish(x);
 */
export const mish: FloatUnary = realFormula('mish', (b, x) =>
  formula.withRule(b, mul(b, x, unary(b, 'tanh', formula.softplus(b, x))), [x], mishRule),
);

/** d(x·t) = (t + x·(1 − t²)·σ(x))·dx for t = tanh(softplus(x)) */
const mishRule: CustomRule = (b, [x], _value, g) => {
  const gate = unary(b, 'tanh', formula.softplus(b, x!));
  const slope = mul(b, sub(b, 1, formula.square(b, gate)), formula.sigmoid(b, x!));
  return [times(b, g, add(b, mul(b, x!, slope), gate))];
};

export interface SoftplusOptions {
  /** Sharpness, 1 by default. */
  readonly beta?: number;
  /** Where beta·x is greater, the result is x itself. By default it is nowhere, and the function exact. PyTorch takes 20. */
  readonly threshold?: number;
}

const takesSoftplus = arg.takes<typeof softplus>(
  ['x', aTensor],
  ['options', arg.options<SoftplusOptions>({ beta: arg.number, threshold: arg.number })],
);

/**
 * log(1 + e^(beta·x)) / beta, exact for large x as well.
 *
 * @method
 * @example
 * const x = sn.tensor([[1, -2, 3], [0.5, 4, -1]]);
 * sn.softplus(x);
 */
export function softplus<D extends DType>(x: Tensor<D>, options: SoftplusOptions = {}): Tensor<Floated<D>> {
  takesSoftplus('softplus', x, options);
  const { beta = 1, threshold } = options;
  return realFormula('softplus', (b, wide) => {
    const scaled = beta === 1 ? wide : mul(b, wide, beta);
    const smooth = beta === 1 ? formula.softplus(b, wide) : softplusOf(b, wide, scaled, beta);
    return threshold === undefined ? smooth : where(b, binary(b, 'lt', threshold, scaled), wide, smooth);
  })(x);
}

/** log(1 + e^scaled) / beta, for scaled = beta·x. */
function softplusOf(b: GraphBuilder, x: Node, scaled: Node, beta: number): Node {
  // max(x, 0) for itself, since beta·x may overflow where x does not.
  const tail = unary(b, 'log1p', unary(b, 'exp', formula.negativeAbs(b, scaled)));
  const positive = where(b, binary(b, 'lt', scaled, 0), fullLike(b, x, 0), x);
  return add(b, positive, div(b, tail, beta));
}

/**
 * x / (1 + |x|).
 *
 * @jax jax.nn.soft_sign
 * @example
 * const x = sn.tensor([[1, -2, 3], [0.5, 4, -1]]);
 * sn.softsign(x);
 */
export const softsign: FloatUnary = floatFormula('softsign', (b, x) =>
  isComplex(x.dtype)
    ? div(b, x, cast(b, add(b, unary(b, 'abs', x), 1), x.dtype))
    : div(b, x, sub(b, 1, formula.negativeAbs(b, x))),
);

/**
 * x − tanh(x).
 *
 * @example
 * const x = sn.tensor([[1, -2, 3], [0.5, 4, -1]]);
 * sn.tanhshrink(x);
 */
export const tanhshrink: FloatUnary = floatFormula('tanhshrink', (b, x) => sub(b, x, unary(b, 'tanh', x)));

const takesEnds = arg.takes<typeof hardtanh>(
  ['x', aTensor],
  ['low', arg.optional(arg.number)],
  ['high', arg.optional(arg.number)],
);

/**
 * x limited to [low, high], −1 and 1 by default; the derivative at both ends is 0. Integers stay
 * integers, and so do their limits.
 *
 * @jax jax.nn.hard_tanh
 * @example
 * const x = sn.tensor([[1, -2, 3], [0.5, 4, -1]]);
 * sn.hardtanh(x);
 */
export function hardtanh<D extends DType>(x: Tensor<D>, low = -1, high = 1): Tensor<Limited<D>> {
  takesEnds('hardtanh', x, low, high);
  const isWhole = !isFloat(x.dtype) && x.dtype !== 'bool';
  const [from, to] = isWhole ? [Math.trunc(low) + 0, Math.trunc(high) + 0] : [low, high];
  if (!(from <= to)) throw new TensorError('E_VALUE', 'hardtanh', `low ${from} must not be above high ${to}`);
  return clamped('hardtanh', x, from, to);
}

function hardGate(b: GraphBuilder, x: Node): Node {
  return div(b, hardClamp(b, add(b, x, 3), 0, 6), 6);
}

/**
 * x / 6 + ½, limited to [0, 1].
 *
 * @jax jax.nn.hard_sigmoid
 * @example
 * const x = sn.tensor([[1, -2, 3], [0.5, 4, -1]]);
 * sn.hardsigmoid(x);
 */
export const hardsigmoid: FloatUnary = realFormula('hardsigmoid', hardGate);

/**
 * x·hardsigmoid(x).
 *
 * @jax jax.nn.hard_swish, jax.nn.hard_silu
 * @example
 * const x = sn.tensor([[1, -2, 3], [0.5, 4, -1]]);
 * sn.hardswish(x);
 */
export const hardswish: FloatUnary = realFormula('hardswish', (b, x) => mul(b, x, hardGate(b, x)));

/**
 * The first half of an axis (the last by default) gated by the second: a·σ(b).
 *
 * @example
 * const even = sn.tensor([[1, -2, 3, 0.5]]);
 * sn.glu(even);
 */
export function glu<D extends DType>(x: Tensor<D>, axis = -1): Tensor<Floated<D>> {
  takesOne('glu', x);
  const at = normalizeAxis('glu', axis, x.rank);
  const half = x.shape[at]! / 2;
  if (!Number.isInteger(half))
    throw new TensorError('E_SHAPE', 'glu', `axis ${axis} does not halve: ${show(x)}`);
  return floatFormula('glu', (b, wide) => {
    const gate = formula.sigmoid(b, sliceAxis(b, wide, at, half, half));
    return mul(b, sliceAxis(b, wide, at, 0, half), gate);
  })(x);
}
