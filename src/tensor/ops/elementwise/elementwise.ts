// Elementwise arithmetic and functions of real numbers. Operands promote and broadcast
// (operand.ts); functions that make no sense in integers take them as f32. `x + y` on bool is `or`,
// `x · y` is `and`.

import {
  add as plus,
  binary,
  cast,
  complex,
  div as over,
  fullLike,
  imag,
  mul as times,
  neg as minus,
  real,
  signBit,
  sub as less,
  unary,
  where,
} from '../../../ir/build.ts';
import { keepWhere, times as pulled } from '../../../autograd/cotangent.ts';
import type { CustomRule } from '../../../autograd/custom.ts';
import { TensorError } from '../../../errors.ts';
import { isComplex, isFloat, largestOf, type DType } from '../../../ir/dtype.ts';
import type { GraphBuilder, Node } from '../../../ir/graph.ts';
import type { UnaryOp } from '../../../ir/ops.ts';
import * as arg from '../../../ir/arguments.ts';
import { aTensor, expectTensor } from '../../expect.ts';
import type { SizeOf } from '../../inferred.ts';
import type { Tensor, TensorLike } from '../../tensor.ts';
import * as formula from '../../formula/elementwise.ts';
import {
  apply,
  applyFloat,
  casted,
  checkNotComplex,
  combine,
  floatFormula,
  show,
  takesOne,
  type FloatUnary,
  type Unary,
} from '../operand.ts';
import { mul } from './arithmetic.ts';
import { eachPart } from './each-part.ts';

/** An operation on each element, whose results are real. */
type RealUnary = <D extends DType>(x: Tensor<D>) => Tensor<SizeOf<D>>;

type PlainUnary = Exclude<UnaryOp, 'cast' | 'bitcast'>;

/** A float primitive. */
/* @__NO_SIDE_EFFECTS__ */
function primitive(op: PlainUnary, name: string = op): FloatUnary {
  return (x) => {
    takesOne(name, x);
    return applyFloat(casted(name, x), (b, node) => unary(b, op, node));
  };
}

/** Rounding: integers and bool are what they are. */
/* @__NO_SIDE_EFFECTS__ */
function rounding(op: PlainUnary): Unary {
  return (x) => {
    takesOne(op, x);
    checkNotComplex(op, x);
    return apply([x], (b, node) => (isFloat(node.dtype) ? unary(b, op, node) : node));
  };
}

/** A primitive of numbers of any kind. */
/* @__NO_SIDE_EFFECTS__ */
function numeric(op: 'neg' | 'abs' | 'sign', name: string): Unary {
  return (x) => {
    takesOne(name, x);
    if (x.dtype === 'bool' && op === 'sign') return apply([x], (_, node) => node);
    if (x.dtype === 'bool')
      throw new TensorError('E_DTYPE', name, `expects numbers, not bool: ${show(x)}`, ".cast('i32')");
    if (op === 'sign') checkNotComplex(name, x);
    return apply([x], (b, node) => unary(b, op, node));
  };
}

/**
 * −x.
 *
 * @method
 * @family Arithmetic
 * @jax jnp.negative
 * @example
 * const x = sn.tensor([[1, -2, 3], [0.5, 4, -1]]);
 * sn.neg(x);
 */
export const neg: Unary = numeric('neg', 'neg');
/**
 * |x|.
 *
 * @method
 * @family Arithmetic
 * @jax jnp.abs, jnp.absolute
 * @example
 * const x = sn.tensor([[1, -2, 3], [0.5, 4, -1]]);
 * sn.abs(x);
 */
export const abs: RealUnary = numeric('abs', 'abs') as RealUnary;
/**
 * −1, 0 or 1; NaN gives 0, and bool is what it is.
 *
 * @method
 * @family Arithmetic
 * @example
 * const x = sn.tensor([[1, -2, 3], [0.5, 4, -1]]);
 * sn.sign(x);
 */
export const sign: Unary = numeric('sign', 'sign');
/**
 * Rounds down.
 *
 * @method
 * @family Arithmetic
 * @example
 * const x = sn.tensor([[1, -2, 3], [0.5, 4, -1]]);
 * sn.floor(x);
 */
export const floor: Unary = rounding('floor');
/**
 * Rounds up.
 *
 * @method
 * @family Arithmetic
 * @example
 * const x = sn.tensor([[1, -2, 3], [0.5, 4, -1]]);
 * sn.ceil(x);
 */
export const ceil: Unary = rounding('ceil');
const wholes: Unary = rounding('round');

export interface RoundOptions {
  /** How many decimals are kept, 0 by default; −3 rounds to thousands. */
  readonly decimals?: number;
}

const takesRound = arg.takes<typeof round>(
  ['x', aTensor],
  ['options', arg.options<RoundOptions>({ decimals: arg.integer })],
);

/**
 * Rounds to the nearest integer, or to some decimals; halves to the even one.
 *
 * @names round, special.round
 * @method
 * @family Arithmetic
 * @jax jnp.round, jnp.around, jnp.rint
 * @example
 * const x = sn.tensor([[1, -2, 3], [0.5, 4, -1]]);
 * sn.round(x);
 * @example <caption>decimals</caption>
 * const x = sn.tensor([[1, -2, 3], [0.5, 4, -1]]);
 * sn.round(x, { decimals: 1 });
 */
export function round<D extends DType>(x: Tensor<D>, options: RoundOptions = {}): Tensor<D> {
  takesRound('round', x, options);
  const { decimals = 0 } = options;
  if (decimals === 0) return wholes(x);
  if (!isFloat(x.dtype))
    throw new TensorError('E_DTYPE', 'round', `decimals needs floats: ${show(x)}`, ".cast('f32')");
  const scale = 10 ** Math.abs(decimals);
  return apply([x], (b, node) =>
    formula.widened(b, node, (wide) =>
      decimals > 0
        ? over(b, unary(b, 'round', times(b, wide, scale)), scale)
        : times(b, unary(b, 'round', over(b, wide, scale)), scale),
    ),
  );
}
/**
 * Rounds toward zero.
 *
 * @method
 * @family Arithmetic
 * @example
 * const x = sn.tensor([[1, -2, 3], [0.5, 4, -1]]);
 * sn.trunc(x);
 */
export const trunc: Unary = rounding('trunc');
/**
 * eˣ.
 *
 * @method
 * @example
 * const x = sn.tensor([[1, -2, 3], [0.5, 4, -1]]);
 * sn.exp(x);
 */
export const exp: FloatUnary = primitive('exp');
/**
 * 2ˣ.
 *
 * @names exp2, special.exp2
 * @method
 * @example
 * const x = sn.tensor([[1, -2, 3], [0.5, 4, -1]]);
 * sn.exp2(x);
 */
export const exp2: FloatUnary = primitive('exp2');
/**
 * eˣ − 1, exact near 0.
 *
 * @names expm1, special.expm1
 * @method
 * @example
 * const x = sn.tensor([[1, -2, 3], [0.5, 4, -1]]);
 * sn.expm1(x);
 */
export const expm1: FloatUnary = primitive('expm1');
/**
 * Natural logarithm.
 *
 * @method
 * @example
 * const v = sn.tensor([1, 1.5, 4]);
 * sn.log(v);
 */
export const log: FloatUnary = primitive('log');
/**
 * Logarithm to base 2.
 *
 * @method
 * @example
 * const v = sn.tensor([1, 1.5, 4]);
 * sn.log2(v);
 */
export const log2: FloatUnary = primitive('log2');
/**
 * Logarithm to base 10.
 *
 * @method
 * @example
 * const v = sn.tensor([1, 1.5, 4]);
 * sn.log10(v);
 */
export const log10: FloatUnary = floatFormula('log10', (b, x) => over(b, unary(b, 'log', x), Math.LN10));
/**
 * log(1 + x), exact near 0.
 *
 * @names log1p, special.log1p
 * @method
 * @example
 * const v = sn.tensor([1, 1.5, 4]);
 * sn.log1p(v);
 */
export const log1p: FloatUnary = primitive('log1p');
/**
 * Sine; angles are in radians here and below.
 *
 * @method
 * @example
 * const x = sn.tensor([[1, -2, 3], [0.5, 4, -1]]);
 * sn.sin(x);
 */
export const sin: FloatUnary = primitive('sin');
/**
 * Cosine.
 *
 * @method
 * @example
 * const x = sn.tensor([[1, -2, 3], [0.5, 4, -1]]);
 * sn.cos(x);
 */
export const cos: FloatUnary = primitive('cos');
/**
 * Tangent.
 *
 * @method
 * @example
 * const x = sn.tensor([[1, -2, 3], [0.5, 4, -1]]);
 * sn.tan(x);
 */
export const tan: FloatUnary = primitive('tan');
/**
 * Inverse sine, in [−π/2, π/2].
 *
 * @method
 * @jax jnp.asin, jnp.arcsin
 * @example
 * const u = sn.tensor([0.1, 0.5, 0.9]);
 * sn.asin(u);
 */
export const asin: FloatUnary = primitive('asin');
/**
 * Inverse cosine, in [0, π].
 *
 * @method
 * @jax jnp.acos, jnp.arccos
 * @example
 * const u = sn.tensor([0.1, 0.5, 0.9]);
 * sn.acos(u);
 */
export const acos: FloatUnary = primitive('acos');
/**
 * Inverse tangent, in (−π/2, π/2).
 *
 * @method
 * @jax jnp.atan, jnp.arctan
 * @example
 * const x = sn.tensor([[1, -2, 3], [0.5, 4, -1]]);
 * sn.atan(x);
 */
export const atan: FloatUnary = primitive('atan');
/**
 * (eˣ − e⁻ˣ)/2.
 *
 * @method
 * @example
 * const x = sn.tensor([[1, -2, 3], [0.5, 4, -1]]);
 * sn.sinh(x);
 */
export const sinh: FloatUnary = primitive('sinh');
/**
 * (eˣ + e⁻ˣ)/2.
 *
 * @method
 * @example
 * const x = sn.tensor([[1, -2, 3], [0.5, 4, -1]]);
 * sn.cosh(x);
 */
export const cosh: FloatUnary = primitive('cosh');
/**
 * sinh(x) / cosh(x).
 *
 * @method
 * @example
 * const x = sn.tensor([[1, -2, 3], [0.5, 4, -1]]);
 * sn.tanh(x);
 */
export const tanh: FloatUnary = primitive('tanh');
/**
 * The error function.
 *
 * @names erf, special.erf
 * @method
 * @example
 * const x = sn.tensor([[1, -2, 3], [0.5, 4, -1]]);
 * sn.erf(x);
 */
export const erf: FloatUnary = primitive('erf');
/**
 * √x; NaN below 0.
 *
 * @method
 * @example
 * const v = sn.tensor([1, 1.5, 4]);
 * sn.sqrt(v);
 */
export const sqrt: FloatUnary = primitive('sqrt');
/**
 * 1 / √x.
 *
 * @method
 * @jax lax.rsqrt
 * @example
 * const v = sn.tensor([1, 1.5, 4]);
 * sn.rsqrt(v);
 */
export const rsqrt: FloatUnary = primitive('rsqrt');
/**
 * 1 / x.
 *
 * @method
 * @family Arithmetic
 * @example
 * const x = sn.tensor([[1, -2, 3], [0.5, 4, -1]]);
 * sn.reciprocal(x);
 */
export const reciprocal: FloatUnary = primitive('recip', 'reciprocal');

/**
 * x²; bool counts as i32.
 *
 * @method
 * @family Arithmetic
 * @example
 * const x = sn.tensor([[1, -2, 3], [0.5, 4, -1]]);
 * sn.square(x);
 */
export function square<D extends DType>(x: Tensor<D>): Tensor<D> {
  takesOne('square', x);
  const numbers = x.dtype === 'bool' ? apply([x], (b, node) => cast(b, node, 'i32')) : x;
  return mul(numbers, numbers);
}

/** From here on x² + 1 = x² in f32, and x² would soon overflow: the logarithm of 2x is exact. */
const HUGE = 1e9;

/**
 * Inverse hyperbolic sine: odd, log1p(a + a²/(1 + √(1+a²))) for a = |x|.
 *
 * @jax jnp.asinh, jnp.arcsinh
 * @example
 * const x = sn.tensor([[1, -2, 3], [0.5, 4, -1]]);
 * sn.asinh(x);
 */
export const asinh: FloatUnary = floatFormula('asinh', (b, x) => {
  if (isComplex(x.dtype)) return turnedBack(b, unary(b, 'asin', turned(b, x)));
  const size = minus(b, formula.negativeAbs(b, x));
  const near = binary(b, 'min', size, HUGE);
  const root = unary(b, 'sqrt', plus(b, times(b, near, near), 1));
  const small = unary(b, 'log1p', plus(b, near, over(b, times(b, near, near), plus(b, root, 1))));
  const large = plus(b, unary(b, 'log', binary(b, 'max', size, HUGE)), Math.LN2);
  const value = where(b, binary(b, 'lt', size, HUGE), small, large);
  return where(b, binary(b, 'lt', x, 0), minus(b, value), value);
});

/**
 * Inverse hyperbolic cosine: log1p(t + √t·√(t+2)) for t = x − 1; NaN below 1.
 *
 * @jax jnp.acosh, jnp.arccosh
 * @example
 * const v = sn.tensor([1, 1.5, 4]);
 * sn.acosh(v);
 */
export const acosh: FloatUnary = floatFormula('acosh', (b, x) => {
  if (isComplex(x.dtype)) return complexAcosh(b, x);
  const near = less(b, binary(b, 'min', x, HUGE), 1);
  const root = times(b, unary(b, 'sqrt', near), unary(b, 'sqrt', plus(b, near, 2)));
  const large = plus(b, unary(b, 'log', binary(b, 'max', x, HUGE)), Math.LN2);
  const value = where(b, binary(b, 'lt', x, HUGE), unary(b, 'log1p', plus(b, near, root)), large);
  return formula.withRule(b, value, [x], acoshRule);
});

/**
 * d acosh x = dx/√(x² − 1), also where the value is NaN; the product of x − 1 and x + 1 keeps the
 * digits near 1.
 */
const acoshRule: CustomRule = (b, [x], _value, g) => {
  const above = times(b, less(b, x!, 1), plus(b, x!, 1));
  const radicand = where(b, binary(b, 'lt', x!, 0), less(b, formula.square(b, x!), 1), above);
  return [pulled(b, g, unary(b, 'rsqrt', radicand))];
};

/**
 * Inverse hyperbolic tangent: (log1p(x) − log1p(−x)) / 2.
 *
 * @jax jnp.atanh, jnp.arctanh
 * @example
 * const u = sn.tensor([0.1, 0.5, 0.9]);
 * sn.atanh(u);
 */
export const atanh: FloatUnary = floatFormula('atanh', (b, x) =>
  isComplex(x.dtype)
    ? turnedBack(b, unary(b, 'atan', turned(b, x)))
    : times(b, less(b, unary(b, 'log1p', x), unary(b, 'log1p', minus(b, x))), 0.5),
);

/** z·i, and z·(−i): inverse hyperbolic functions are inverse trigonometric ones turned round. */
const turned = (b: GraphBuilder, z: Node): Node => complex(b, minus(b, imag(b, z)), real(b, z));
const turnedBack = (b: GraphBuilder, z: Node): Node => complex(b, imag(b, z), minus(b, real(b, z)));

/** ±i·acos z, with a real part that is not below 0: its angle has the sign of the imaginary part, ±0 too. */
function complexAcosh(b: GraphBuilder, z: Node): Node {
  const arc = unary(b, 'acos', z);
  return where(b, signBit(b, imag(b, z)), turnedBack(b, arc), turned(b, arc));
}

/**
 * start + weight·(end − start), exact at both ends.
 *
 * @method
 * @family Arithmetic
 * @example
 * const x = sn.tensor([[1, -2, 3], [0.5, 4, -1]]);
 * const y = sn.tensor([[2, 3, 1], [1, 5, 4]]);
 * sn.lerp(x, y, 0.25);
 */
export function lerp(start: TensorLike, end: TensorLike, weight: TensorLike): Tensor {
  return combine('lerp', [start, end, weight], 'float', (b, ...given) => {
    const { dtype } = given[0];
    const [p, q, w] = given.map((x) => cast(b, x, formula.wideType(dtype))) as [Node, Node, Node];
    const span = less(b, q, p);
    const fromStart = plus(b, p, times(b, w, span));
    const fromEnd = less(b, q, times(b, less(b, 1, w), span));
    // Of complex weights PyTorch asks for the modulus.
    const near = isComplex(w.dtype) ? unary(b, 'abs', w) : w;
    return cast(b, where(b, binary(b, 'lt', near, 0.5), fromStart, fromEnd), dtype);
  });
}

/**
 * Limits to [low, high], either absent; NaN stays, and low > high gives high. The gradient passes
 * at both ends.
 *
 * @method
 * @family Arithmetic
 * @jax jnp.clip, lax.clamp
 * @example
 * const x = sn.tensor([[1, -2, 3], [0.5, 4, -1]]);
 * sn.clamp(x, 0, 2);
 */
export function clamp(x: Tensor, low?: TensorLike, high?: TensorLike): Tensor {
  expectTensor('clamp', 'x', x);
  if (low === undefined && high === undefined) {
    throw new TensorError('E_VALUE', 'clamp', `needs a low or a high end: ${show(x)}`, 'x.clamp(0, 1)');
  }
  if (low === undefined) return combine('clamp', [x, high!], 'real', (b, p, h) => atMost(b, p, h));
  if (high === undefined) return combine('clamp', [x, low], 'real', (b, p, l) => atLeast(b, p, l));
  if (typeof low === 'number' && typeof high === 'number')
    return combine('clamp', [x, low, high], 'real', (b, p, l, h) => atMost(b, atLeast(b, p, l), h));
  return combine('clamp', [x, low, high], 'real', between);
}

/** Limits that have gradients too. */
function between(b: GraphBuilder, x: Node, low: Node, high: Node): Node {
  const value = binary(b, 'min', binary(b, 'max', x, low), high);
  return isFloat(x.dtype) ? formula.withRule(b, value, [x, low, high], betweenRule) : value;
}

/**
 * x passes g on within both limits, low where x is below and low < high, high where x is above or
 * high < low.
 */
const betweenRule: CustomRule = (b, [x, low, high], _value, g) => {
  const less = (p: Node, q: Node): Node => binary(b, 'lt', p, q);
  const inside = binary(b, 'and', binary(b, 'le', low!, x!), binary(b, 'le', x!, high!));
  return [
    keepWhere(b, inside, g),
    keepWhere(b, binary(b, 'and', less(low!, high!), less(x!, low!)), g),
    keepWhere(b, binary(b, 'or', less(high!, x!), less(high!, low!)), g),
  ];
};

/** x where it is inside. Else the bound, or NaN: through `max`, whose gradient stays outside x. */
function atLeast(b: GraphBuilder, x: Node, low: Node): Node {
  return where(b, binary(b, 'le', low, x), x, binary(b, 'max', formula.stopGradient(b, x), low));
}

function atMost(b: GraphBuilder, x: Node, high: Node): Node {
  return where(b, binary(b, 'le', x, high), x, binary(b, 'min', formula.stopGradient(b, x), high));
}

export interface NanToNumOptions {
  /** Replaces NaN, 0 by default. */
  readonly nan?: number;
  /** Replaces +∞, the dtype's largest value by default. */
  readonly posinf?: number;
  /** Replaces −∞, the dtype's smallest value by default. */
  readonly neginf?: number;
}

const takesNanToNum = arg.takes<typeof nanToNum>(
  ['x', aTensor],
  ['options', arg.options<NanToNumOptions>({ nan: arg.element, posinf: arg.element, neginf: arg.element })],
);

/**
 * Replaces NaN and infinities by finite numbers.
 *
 * @method
 * @family Arithmetic
 * @example
 * const edge = sn.tensor([NaN, Infinity, -Infinity, 1]);
 * sn.nanToNum(edge, { posinf: 9 });
 */
export function nanToNum(x: Tensor, options: NanToNumOptions = {}): Tensor {
  takesNanToNum('nanToNum', x, options);
  if (isComplex(x.dtype)) return eachPart(x, (part) => nanToNum(part, options));
  if (!isFloat(x.dtype)) return x;
  const largest = largestOf(x.dtype);
  const { nan = 0, posinf = largest, neginf = -largest } = options;
  return apply([x], (b, node) => {
    const infinite = where(b, binary(b, 'lt', node, 0), fullLike(b, node, neginf), fullLike(b, node, posinf));
    const finite = where(b, formula.isInf(b, node), infinite, node);
    return where(b, formula.isNan(b, node), fullLike(b, node, nan), finite);
  });
}
