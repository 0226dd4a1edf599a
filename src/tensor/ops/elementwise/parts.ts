// What a float is made of: its sign, exponent, mantissa and neighbours, by its bits; and which class
// of numbers it is in.

import type { Floated } from '../../inferred.ts';
import type { Common } from '../operand.ts';
import { TensorError } from '../../../errors.ts';
import * as arg from '../../../ir/arguments.ts';
import { add, binary, cast, constant, fullLike, mul, sub, unary, where } from '../../../ir/build.ts';
import { dtypeKind, isComplex, isFloat, partType, type DType } from '../../../ir/dtype.ts';
import type { GraphBuilder, Node } from '../../../ir/graph.ts';
import { dropWhere, keepWhere } from '../../../autograd/cotangent.ts';
import type { CustomRule } from '../../../autograd/custom.ts';
import { anOperand } from '../../expect.ts';
import { asTensor, recordMany } from '../../record.ts';
import type { Tensor, TensorLike } from '../../tensor.ts';
import {
  apply,
  checkFloat,
  combine,
  operandType,
  resultType,
  show,
  takesOne,
  type Predicate,
} from '../operand.ts';
import { mul as product, pow, sub as difference } from './arithmetic.ts';
import { cast as castTo } from './cast.ts';
import { exp2, trunc } from './elementwise.ts';
import * as formula from '../../formula/elementwise.ts';

/** The layout of a float's bits: those of its mantissa, and what is added to its exponent. */
interface Layout {
  readonly bits: 'i16' | 'i32' | 'i64';
  readonly mantissa: number;
  readonly bias: number;
}

const layouts: Readonly<Partial<Record<DType, Layout>>> = {
  f16: { bits: 'i16', mantissa: 10, bias: 15 },
  bf16: { bits: 'i16', mantissa: 7, bias: 127 },
  f32: { bits: 'i32', mantissa: 23, bias: 127 },
  f64: { bits: 'i64', mantissa: 52, bias: 1023 },
};

function layoutOf(x: Node): Layout {
  const layout = layouts[x.dtype];
  if (layout === undefined) throw new TensorError('E_DTYPE', 'bits', `${x.dtype} is no float`);
  return layout;
}

const bitcast = (b: GraphBuilder, x: Node, dtype: DType): Node => b.add('bitcast', [x], { dtype }) as Node;

/** The sign bit, which tells −0 from 0. @internal */
export function signBit(b: GraphBuilder, x: Node): Node {
  const kind = dtypeKind(x.dtype);
  if (kind === 'int') return binary(b, 'lt', x, 0);
  if (kind !== 'float') return formula.spreadTo(b, constant(b, 0, 'bool'), x);
  return binary(b, 'lt', bitcast(b, x, layoutOf(x).bits), 0);
}

/* @__NO_SIDE_EFFECTS__ */
function predicate(op: string, make: (b: GraphBuilder, x: Node) => Node): Predicate {
  return (x) => {
    takesOne(op, x);
    return apply([x], make);
  };
}

const never = (b: GraphBuilder, x: Node): Node => formula.spreadTo(b, constant(b, 0, 'bool'), x);

/**
 * true where the sign bit is set: below 0, and −0.
 *
 * @example
 * const x = sn.tensor([[1, -2, 3], [0.5, 4, -1]]);
 * sn.signbit(x);
 */
export const signbit: Predicate = predicate('signbit', signBit);
/**
 * true where −∞.
 *
 * @family Comparisons, booleans, bits and casts
 * @example
 * const edge = sn.tensor([NaN, Infinity, -Infinity, 1]);
 * sn.isneginf(edge);
 */
export const isneginf: Predicate = predicate('isneginf', (b, x) =>
  isFloat(x.dtype) ? binary(b, 'and', formula.isInf(b, x), binary(b, 'lt', x, 0)) : never(b, x),
);
/**
 * true where +∞.
 *
 * @family Comparisons, booleans, bits and casts
 * @example
 * const edge = sn.tensor([NaN, Infinity, -Infinity, 1]);
 * sn.isposinf(edge);
 */
export const isposinf: Predicate = predicate('isposinf', (b, x) =>
  isFloat(x.dtype) ? binary(b, 'and', formula.isInf(b, x), binary(b, 'lt', 0, x)) : never(b, x),
);

const takesPair = arg.takes<(x: TensorLike, y: TensorLike) => Tensor>(['x', anOperand], ['y', anOperand]);

/**
 * |x| with the sign of y, also that of −0.
 *
 * @example
 * const x = sn.tensor([[1, -2, 3], [0.5, 4, -1]]);
 * const y = sn.tensor([[2, 3, 1], [1, 5, 4]]);
 * sn.copysign(x, y);
 */
export function copysign<X extends TensorLike, Y extends TensorLike>(
  x: X,
  y: Y,
): Tensor<Floated<Common<X, Y>>> {
  takesPair('copysign', x, y);
  return combine('copysign', [x, y], 'realFloat', (b, p, q) => {
    const size = unary(b, 'abs', p);
    const value = where(b, signBit(b, q), unary(b, 'neg', size), size);
    return formula.withRule(b, value, [p], copysignRule);
  });
}

/** d|x|·sign(y) = ±dx; 0 where x is 0. */
const copysignRule: CustomRule = (b, [x], value, g) => {
  const flips = binary(b, 'ne', binary(b, 'lt', x!, 0), binary(b, 'lt', value, 0));
  const turned = where(b, flips, unary(b, 'neg', g), g);
  return [dropWhere(b, binary(b, 'eq', x!, 0), turned)];
};

/**
 * x less its whole part; the sign is that of x.
 *
 * @example
 * const x = sn.tensor([[1, -2, 3], [0.5, 4, -1]]);
 * sn.frac(x);
 */
export function frac(x: Tensor): Tensor {
  takesOne('frac', x);
  checkFloat('frac', x);
  return difference(x, trunc(x));
}

/**
 * A mantissa m in [½, 1) and an i32 exponent e with x = m·2^e; 0, ±∞ and NaN are their own mantissa.
 *
 * @example
 * const x = sn.tensor([[1, -2, 3], [0.5, 4, -1]]);
 * sn.frexp(x);
 */
export function frexp(x: Tensor): [mantissa: Tensor, exponent: Tensor] {
  takesOne('frexp', x);
  checkFloat('frexp', x);
  const [mantissa, exponent] = recordMany([x], (b, [node]) => {
    const wide = cast(b, node!, formula.wideType(x.dtype));
    const parts = split(b, wide);
    return [cast(b, parts.mantissa, x.dtype), parts.exponent];
  });
  return [mantissa!, exponent!];
}

/** Mantissa and exponent of f32 and f64; subnormals are scaled into the normal numbers first. */
function split(b: GraphBuilder, x: Node): { mantissa: Node; exponent: Node } {
  const { bits, mantissa: digits, bias } = layoutOf(x);
  const lift = digits + 1;
  const fixed = formula.stopGradient(b, x);
  const smallest = 2 ** (1 - bias);
  const tiny = binary(b, 'lt', unary(b, 'abs', fixed), smallest);
  const normal = where(b, tiny, mul(b, fixed, 2 ** lift), fixed);
  const field = binary(b, 'shr', bitcast(b, normal, bits), digits);
  const biased = cast(b, binary(b, 'and', field, 2 * bias + 1), 'i32');
  const special = binary(b, 'or', binary(b, 'eq', fixed, 0), unary(b, 'not', formula.isFinite(b, fixed)));
  const exponent = sub(b, biased, bias - 1);
  const lowered = where(b, tiny, sub(b, exponent, lift), exponent);
  const none = fullLike(b, lowered, 0);
  const settled = where(b, special, none, lowered);
  // x · 2^−e in two factors, so that neither is out of range.
  const half = binary(b, 'shr', settled, 1);
  const scale = (power: Node): Node => powerOfTwo(b, unary(b, 'neg', power), x.dtype);
  const scaled = mul(b, mul(b, x, scale(half)), scale(sub(b, settled, half)));
  return { mantissa: where(b, special, x, scaled), exponent: settled };
}

/** 2^n for whole n that a normal number holds, by its bits. */
function powerOfTwo(b: GraphBuilder, n: Node, dtype: DType): Node {
  const { bits, mantissa, bias } = layouts[dtype]!;
  return bitcast(b, binary(b, 'shl', cast(b, add(b, n, bias), bits), mantissa), dtype);
}

/**
 * x·2^exponent, also where 2^exponent by itself is out of range.
 *
 * @example
 * const x = sn.tensor([[1, -2, 3], [0.5, 4, -1]]);
 * const c = sn.tensor([1, -0.5, 2]);
 * sn.ldexp(x, c);
 */
export function ldexp(x: TensorLike, exponent: TensorLike): Tensor {
  takesPair('ldexp', x, exponent);
  const dtype = operandType('ldexp', [x, exponent], 'float');
  // 16 bits would round 2^exponent, or overflow before x brings it back.
  const wide = formula.wideType(dtype);
  const value = castTo(asTensor(x, wide, 'ldexp'), wide);
  if (isComplex(resultType([exponent])))
    return product(value, pow(2, castTo(asTensor(exponent, wide, 'ldexp'), wide)));
  const real = isComplex(wide) ? partType(wide) : wide;
  const whole = castTo(asTensor(exponent, real, 'ldexp'), real);
  const half = trunc(product(whole, 0.5));
  return castTo(product(product(value, exp2(half)), exp2(difference(whole, half))), dtype);
}

/**
 * The next float after x on the way to y.
 *
 * @example
 * const x = sn.tensor([[1, -2, 3], [0.5, 4, -1]]);
 * const y = sn.tensor([[2, 3, 1], [1, 5, 4]]);
 * sn.nextafter(x, y);
 */
export function nextafter(x: TensorLike, y: TensorLike): Tensor {
  takesPair('nextafter', x, y);
  return combine('nextafter', [x, y], 'float', (b, p, q) => {
    if (!isFloat(p.dtype)) throw new TensorError('E_DTYPE', 'nextafter', `expects floats: ${show(x, y)}`);
    const { bits } = layoutOf(p);
    const [from, to] = [formula.stopGradient(b, p), formula.stopGradient(b, q)];
    const word = bitcast(b, from, bits);
    const grows = binary(b, 'eq', binary(b, 'lt', from, to), binary(b, 'lt', 0, from));
    const step = where(b, grows, fullLike(b, word, 1), fullLike(b, word, -1));
    // The smallest float above 0 has 1 as its bits, and the one below has the sign bit too.
    const smallest = bitcast(b, fullLike(b, word, 1), p.dtype);
    const fromZero = where(b, binary(b, 'lt', to, 0), unary(b, 'neg', smallest), smallest);
    const moved = where(
      b,
      binary(b, 'eq', from, 0),
      fromZero,
      bitcast(b, binary(b, 'add', word, step), p.dtype),
    );
    const settled = where(b, binary(b, 'eq', from, to), to, moved);
    const broken = binary(b, 'or', formula.isNan(b, from), formula.isNan(b, to));
    return formula.withRule(b, where(b, broken, add(b, from, to), settled), [p, q], stepRule);
  });
}

/** A step beside x moves with x; where x is y there is none. */
const stepRule: CustomRule = (b, [x, y], _value, g) => [keepWhere(b, binary(b, 'ne', x!, y!), g), undefined];
