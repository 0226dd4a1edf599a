// Functions of two or three elements that are formulas of others: extrema that pass over NaN,
// logarithms of sums, scaled products, closeness. Operands promote and broadcast.

import type { Floated } from '../../inferred.ts';
import type { Common } from '../operand.ts';
import { TensorError } from '../../../errors.ts';
import * as arg from '../../../ir/arguments.ts';
import { add, binary, cast, div, fullLike, mul, neg, sub, unary, where } from '../../../ir/build.ts';
import { dtypeKind, isComplex, isFloat, isInexact, type DType } from '../../../ir/dtype.ts';
import type { GraphBuilder, Node } from '../../../ir/graph.ts';
import { times } from '../../../autograd/cotangent.ts';
import type { CustomRule } from '../../../autograd/custom.ts';
import { anOperand, aTensor } from '../../expect.ts';
import type { Tensor, TensorLike } from '../../tensor.ts';
import { numberOf } from '../../record.ts';
import { calledAs, checkNotComplex, combine, fit, resultType, show, type Binary } from '../operand.ts';
import { add as sum, sub as difference, mul as product, div as quotient, pow } from './arithmetic.ts';
import { cast as converted } from './cast.ts';
import { clamp } from './elementwise.ts';
import { maximum, minimum } from './arithmetic.ts';
import * as formula from '../../formula/elementwise.ts';

const takesPair = arg.takes<Binary>(['x', anOperand], ['y', anOperand]);

/**
 * The larger of both; the other where one is NaN. Of equals, x has the gradient.
 *
 * @example
 * const x = sn.tensor([[1, -2, 3], [0.5, 4, -1]]);
 * const y = sn.tensor([[2, 3, 1], [1, 5, 4]]);
 * sn.fmax(x, y);
 */
export function fmax<X extends TensorLike, Y extends TensorLike>(x: X, y: Y): Tensor<Common<X, Y>> {
  takesPair('fmax', x, y);
  return chosen('fmax', x, y, (b, p, q) => binary(b, 'le', q, p));
}

/**
 * The smaller of both; the other where one is NaN. Of equals, x has the gradient.
 *
 * @example
 * const x = sn.tensor([[1, -2, 3], [0.5, 4, -1]]);
 * const y = sn.tensor([[2, 3, 1], [1, 5, 4]]);
 * sn.fmin(x, y);
 */
export function fmin<X extends TensorLike, Y extends TensorLike>(x: X, y: Y): Tensor<Common<X, Y>> {
  takesPair('fmin', x, y);
  return chosen('fmin', x, y, (b, p, q) => binary(b, 'le', p, q));
}

function chosen(
  op: 'fmax' | 'fmin',
  x: TensorLike,
  y: TensorLike,
  takesFirst: (b: GraphBuilder, p: Node, q: Node) => Node,
): Tensor {
  checkNotComplex(op, x, y);
  const dtype = resultType([x, y]);
  if (!isFloat(dtype)) return op === 'fmax' ? maximum(x, y) : minimum(x, y);
  return combine(op, [x, y], 'any', (b, p, q) =>
    where(b, binary(b, 'or', takesFirst(b, p, q), formula.isNan(b, q)), p, q),
  );
}

/**
 * √(x² + y²), also where the squares are out of range.
 *
 * @example
 * const x = sn.tensor([[1, -2, 3], [0.5, 4, -1]]);
 * const y = sn.tensor([[2, 3, 1], [1, 5, 4]]);
 * sn.hypot(x, y);
 */
export function hypot<X extends TensorLike, Y extends TensorLike>(x: X, y: Y): Tensor<Floated<Common<X, Y>>> {
  takesPair('hypot', x, y);
  return combine('hypot', [x, y], 'realFloat', (b, p, q) => formula.widened2(b, p, q, hypotOf));
}

function hypotOf(b: GraphBuilder, p: Node, q: Node): Node {
  const [left, right] = [unary(b, 'abs', p), unary(b, 'abs', q)];
  const [large, small] = [binary(b, 'max', left, right), binary(b, 'min', left, right)];
  const ratio = div(b, small, large);
  const root = mul(b, large, unary(b, 'sqrt', add(b, mul(b, ratio, ratio), 1)));
  const infinite = binary(b, 'or', formula.isInf(b, p), formula.isInf(b, q));
  const value = where(b, binary(b, 'eq', small, 0), large, root);
  return formula.withRule(b, where(b, infinite, fullLike(b, value, Infinity), value), [p, q], hypotRule);
}

/** d√(x² + y²) = (x·dx + y·dy) / √(x² + y²). */
const hypotRule: CustomRule = (b, [x, y], value, g) => [
  times(b, g, div(b, x!, value)),
  times(b, g, div(b, y!, value)),
];

/**
 * log(eˣ + e^y), without overflow.
 *
 * @example
 * const x = sn.tensor([[1, -2, 3], [0.5, 4, -1]]);
 * const y = sn.tensor([[2, 3, 1], [1, 5, 4]]);
 * sn.logaddexp(x, y);
 */
export function logaddexp<X extends TensorLike, Y extends TensorLike>(
  x: X,
  y: Y,
): Tensor<Floated<Common<X, Y>>> {
  takesPair('logaddexp', x, y);
  return combine('logaddexp', [x, y], 'realFloat', (b, p, q) =>
    formula.widened2(b, p, q, (c, wideP, wideQ) => {
      const decay = unary(c, 'exp', negativeDistance(c, wideP, wideQ));
      const value = logSum(c, wideP, wideQ, unary(c, 'log1p', decay));
      return formula.withRule(c, value, [wideP, wideQ], logaddexpRule);
    }),
  );
}

/**
 * log₂(2ˣ + 2^y), without overflow.
 *
 * @example
 * const x = sn.tensor([[1, -2, 3], [0.5, 4, -1]]);
 * const y = sn.tensor([[2, 3, 1], [1, 5, 4]]);
 * sn.logaddexp2(x, y);
 */
export function logaddexp2<X extends TensorLike, Y extends TensorLike>(
  x: X,
  y: Y,
): Tensor<Floated<Common<X, Y>>> {
  takesPair('logaddexp2', x, y);
  return combine('logaddexp2', [x, y], 'realFloat', (b, p, q) =>
    formula.widened2(b, p, q, (c, wideP, wideQ) => {
      const decay = unary(c, 'exp2', negativeDistance(c, wideP, wideQ));
      const value = logSum(c, wideP, wideQ, mul(c, unary(c, 'log1p', decay), Math.LOG2E));
      return formula.withRule(c, value, [wideP, wideQ], logaddexp2Rule);
    }),
  );
}

function negativeDistance(b: GraphBuilder, x: Node, y: Node): Node {
  return neg(b, unary(b, 'abs', sub(b, x, y)));
}

/** The larger and what the smaller adds; equal infinities stay, where their difference is NaN. */
function logSum(b: GraphBuilder, x: Node, y: Node, more: Node): Node {
  const same = binary(b, 'and', binary(b, 'eq', x, y), formula.isInf(b, x));
  return where(b, same, x, add(b, binary(b, 'max', x, y), more));
}

/** d log(eˣ + e^y) = σ(x − y)·dx + σ(y − x)·dy. */
const logaddexpRule: CustomRule = (b, [x, y], _value, g) => [
  times(b, g, formula.sigmoid(b, sub(b, x!, y!))),
  times(b, g, formula.sigmoid(b, sub(b, y!, x!))),
];

const logaddexp2Rule: CustomRule = (b, [x, y], _value, g) => {
  const share = (p: Node, q: Node): Node => formula.sigmoid(b, mul(b, sub(b, p, q), Math.LN2));
  return [times(b, g, share(x!, y!)), times(b, g, share(y!, x!))];
};

/**
 * 0 below 0, 1 above, and `values` at 0; NaN gives 0.
 *
 * @example
 * const x = sn.tensor([[1, -2, 3], [0.5, 4, -1]]);
 * const y = sn.tensor([[2, 3, 1], [1, 5, 4]]);
 * sn.heaviside(x, y);
 */
export function heaviside<X extends TensorLike, Y extends TensorLike>(x: X, values: Y): Tensor<Common<X, Y>> {
  takesPair('heaviside', x, values);
  return combine('heaviside', [x, values], 'ordered', (b, p, q) => {
    const numbers = p.dtype === 'bool' ? cast(b, p, 'i32') : p;
    const above = cast(b, binary(b, 'lt', 0, numbers), p.dtype);
    return where(b, binary(b, 'eq', numbers, 0), q, above);
  });
}

/**
 * y − alpha·x: `sub` with its operands exchanged.
 *
 * @example
 * const x = sn.tensor([[1, -2, 3], [0.5, 4, -1]]);
 * const y = sn.tensor([[2, 3, 1], [1, 5, 4]]);
 * sn.rsub(x, y);
 */
export function rsub<X extends TensorLike, Y extends TensorLike>(
  x: X,
  y: Y,
  options: { readonly alpha?: number } = {},
): Tensor<Common<X, Y>> {
  takesRsub('rsub', x, y, options);
  const left: TensorLike = y;
  const right: TensorLike = x;
  return calledAs('rsub', () => difference(left, right, options));
}

const takesRsub = arg.takes<typeof rsub>(
  ['x', anOperand],
  ['y', anOperand],
  ['options', arg.options<{ readonly alpha?: number }>({ alpha: arg.number })],
);

/**
 * x / y in floats: `div` by PyTorch's other name.
 *
 * @example
 * const x = sn.tensor([[1, -2, 3], [0.5, 4, -1]]);
 * const y = sn.tensor([[2, 3, 1], [1, 5, 4]]);
 * sn.trueDivide(x, y);
 */
export function trueDivide<X extends TensorLike, Y extends TensorLike>(
  x: X,
  y: Y,
): Tensor<Floated<Common<X, Y>>> {
  takesPair('trueDivide', x, y);
  const [top, bottom]: readonly [TensorLike, TensorLike] = [x, y];
  return quotient(top, bottom);
}

/**
 * x^exponent in f64, or c128 of complex numbers, whatever the operands are.
 *
 * @example
 * const y = sn.tensor([[2, 3, 1], [1, 5, 4]]);
 * sn.floatPower(y, 2);
 */
export function floatPower(x: TensorLike, exponent: TensorLike): Tensor {
  takesPair('floatPower', x, exponent);
  const dtype = isComplex(resultType([x, exponent])) ? 'c128' : 'f64';
  const double = (value: TensorLike): Tensor =>
    fit(
      'floatPower',
      [value],
      () => dtype,
      (_, node) => node,
    );
  if (numberOf(exponent) !== undefined) return pow(double(x), exponent);
  return pow(double(x), typeof exponent === 'object' ? double(exponent) : Number(exponent));
}

export interface ScaledOptions {
  /** Factor on the product or the quotient, 1 by default. */
  readonly value?: number;
}

const takesScaled = arg.takes<typeof addcmul>(
  ['x', aTensor],
  ['the first factor', anOperand],
  ['the second factor', anOperand],
  ['options', arg.options<ScaledOptions>({ value: arg.number })],
);

/** x + value·join(first, second); of 16-bit floats in f32, and rounded once. */
function withScaled(
  x: Tensor,
  first: TensorLike,
  second: TensorLike,
  { value = 1 }: ScaledOptions,
  join: (first: TensorLike, second: TensorLike) => Tensor,
): Tensor {
  const dtype = resultType([x, first, second]);
  const wide = formula.wideType(dtype);
  if (wide === dtype) return sum(x, join(first, second), { alpha: value });
  const widened = (operand: TensorLike): Tensor =>
    fit(
      'cast',
      [operand],
      () => wide,
      (_, node) => node,
    );
  return converted(sum(widened(x), join(widened(first), widened(second)), { alpha: value }), dtype);
}

/**
 * x + value·first·second.
 *
 * @example
 * const x = sn.tensor([[1, -2, 3], [0.5, 4, -1]]);
 * const y = sn.tensor([[2, 3, 1], [1, 5, 4]]);
 * const z = sn.tensor([[1, 2, 3], [4, 5, 6]]);
 * sn.addcmul(x, y, z, { value: 2 });
 */
export function addcmul(
  x: Tensor,
  first: TensorLike,
  second: TensorLike,
  options: ScaledOptions = {},
): Tensor {
  takesScaled('addcmul', x, first, second, options);
  return calledAs('addcmul', () => withScaled(x, first, second, options, product));
}

/**
 * x + value·first/second, of floats.
 *
 * @example
 * const x = sn.tensor([[1, -2, 3], [0.5, 4, -1]]);
 * const y = sn.tensor([[2, 3, 1], [1, 5, 4]]);
 * const z = sn.tensor([[1, 2, 3], [4, 5, 6]]);
 * sn.addcdiv(x, y, z, { value: 2 });
 */
export function addcdiv(
  x: Tensor,
  first: TensorLike,
  second: TensorLike,
  options: ScaledOptions = {},
): Tensor {
  takesScaled('addcdiv', x, first, second, options);
  if (!isInexact(resultType([x, first, second])))
    throw new TensorError('E_DTYPE', 'addcdiv', `expects floats: ${show(x, first, second)}`, ".cast('f32')");
  return calledAs('addcdiv', () => withScaled(x, first, second, options, quotient));
}

const takesLimit = arg.takes<typeof clampMin>(['x', aTensor], ['the limit', anOperand]);

/**
 * At least `low`; NaN stays.
 *
 * @example
 * const x = sn.tensor([[1, -2, 3], [0.5, 4, -1]]);
 * sn.clampMin(x, 0);
 */
export function clampMin(x: Tensor, low: TensorLike): Tensor {
  takesLimit('clampMin', x, low);
  return calledAs('clampMin', () => (resultType([x, low]) === 'bool' ? maximum(x, low) : clamp(x, low)));
}

/**
 * At most `high`; NaN stays.
 *
 * @example
 * const x = sn.tensor([[1, -2, 3], [0.5, 4, -1]]);
 * sn.clampMax(x, 2);
 */
export function clampMax(x: Tensor, high: TensorLike): Tensor {
  takesLimit('clampMax', x, high);
  return calledAs('clampMax', () =>
    resultType([x, high]) === 'bool' ? minimum(x, high) : clamp(x, undefined, high),
  );
}

export interface CloseOptions {
  /** Allowed difference as a share of |y|, 1e-5 by default. */
  readonly rtol?: number;
  /** Allowed difference besides, 1e-8 by default. */
  readonly atol?: number;
  /** Whether NaN is close to NaN; false by default. */
  readonly equalNan?: boolean;
}

/** @internal */
export const closeOptions: arg.Table<CloseOptions> = {
  rtol: arg.notNegative,
  atol: arg.notNegative,
  equalNan: arg.flag,
};

const takesClose = arg.takes<typeof isclose>(
  ['x', anOperand],
  ['y', anOperand],
  ['options', arg.options<CloseOptions>(closeOptions)],
);

/**
 * true where |x − y| ≤ atol + rtol·|y|, and where x = y.
 *
 * @family Comparisons, booleans, bits and casts
 * @example
 * const a = sn.tensor([1, 2, 3]);
 * const b = sn.tensor([1, 2, 4]);
 * sn.isclose(a, b);
 */
export function isclose(x: TensorLike, y: TensorLike, options: CloseOptions = {}): Tensor<'bool'> {
  takesClose('isclose', x, y, options);
  return closeness('isclose', x, y, options);
}

/** As `isclose`, for what is named `op`. @internal */
export function closeness(op: string, x: TensorLike, y: TensorLike, options: CloseOptions): Tensor {
  const { rtol = 1e-5, atol = 1e-8, equalNan = false } = options;
  return combine(op, [x, y], 'any', (b, p, q) => {
    const same = binary(b, 'eq', p, q);
    if (isComplex(p.dtype)) return complexCloseness(b, p, q, { rtol, atol, equalNan });
    const compute: DType = isFloat(p.dtype) ? formula.wideType(p.dtype) : 'f32';
    const numbers = p.dtype === 'bool' ? [cast(b, p, 'i32'), cast(b, q, 'i32')] : [p, q];
    // Of integers the difference is exact, and only its size becomes a float.
    const [low, high] = [
      binary(b, 'min', numbers[0]!, numbers[1]!),
      binary(b, 'max', numbers[0]!, numbers[1]!),
    ];
    const distance = isFloat(p.dtype)
      ? unary(b, 'abs', sub(b, cast(b, p, compute), cast(b, q, compute)))
      : cast(b, sub(b, high, low), compute);
    const size = unary(b, 'abs', cast(b, q, compute));
    const allowed = add(b, mul(b, size, rtol), atol);
    const near = binary(b, 'and', binary(b, 'le', distance, allowed), formula.isFinite(b, distance));
    const close = binary(b, 'or', same, binary(b, 'and', near, formula.isFinite(b, size)));
    if (!equalNan || dtypeKind(p.dtype) !== 'float') return close;
    return binary(b, 'or', close, binary(b, 'and', formula.isNan(b, p), formula.isNan(b, q)));
  });
}

/** By the lengths of differences; NaN in a part is NaN. */
function complexCloseness(b: GraphBuilder, x: Node, y: Node, options: Required<CloseOptions>): Node {
  const [distance, size] = [unary(b, 'abs', sub(b, x, y)), unary(b, 'abs', y)];
  const allowed = add(b, mul(b, size, options.rtol), options.atol);
  const bounded = binary(b, 'and', formula.isFinite(b, distance), formula.isFinite(b, size));
  const near = binary(b, 'and', binary(b, 'le', distance, allowed), bounded);
  const close = binary(b, 'or', binary(b, 'eq', x, y), near);
  if (!options.equalNan) return close;
  return binary(b, 'or', close, binary(b, 'and', formula.isNan(b, x), formula.isNan(b, y)));
}

/**
 * The greatest common divisor, at least 0: Euclid's, in as many steps as the width may need.
 *
 * @example
 * const x = sn.tensor([4, 6, 9], { dtype: 'i32' });
 * const y = sn.tensor([6, 10, 3], { dtype: 'i32' });
 * sn.gcd(x, y);
 */
export function gcd<X extends TensorLike, Y extends TensorLike>(x: X, y: Y): Tensor<Common<X, Y>> {
  takesPair('gcd', x, y);
  return ofIntegers('gcd', x, y, (b, p, q) => divisorOf(b, p, q));
}

/**
 * The least common multiple, at least 0.
 *
 * @example
 * const x = sn.tensor([4, 6, 9], { dtype: 'i32' });
 * const y = sn.tensor([6, 10, 3], { dtype: 'i32' });
 * sn.lcm(x, y);
 */
export function lcm<X extends TensorLike, Y extends TensorLike>(x: X, y: Y): Tensor<Common<X, Y>> {
  takesPair('lcm', x, y);
  return ofIntegers('lcm', x, y, (b, p, q) => {
    const divisor = divisorOf(b, p, q);
    const safe = where(b, binary(b, 'eq', divisor, 0), fullLike(b, divisor, 1), divisor);
    return sizeOf(b, mul(b, div(b, p, safe), q));
  });
}

function ofIntegers(
  op: string,
  x: TensorLike,
  y: TensorLike,
  make: (b: GraphBuilder, p: Node, q: Node) => Node,
): Tensor {
  const dtype = resultType([x, y]);
  const kind = dtypeKind(dtype);
  if (kind !== 'int' && kind !== 'uint')
    throw new TensorError('E_DTYPE', op, `expects integers: ${show(x, y)}`, ".cast('i32')");
  return combine(op, [x, y], 'number', make);
}

const sizeOf = (b: GraphBuilder, x: Node): Node => (dtypeKind(x.dtype) === 'int' ? unary(b, 'abs', x) : x);

/** The most divisions that Euclid's algorithm takes: consecutive Fibonacci numbers need them. */
const mostSteps: Readonly<Partial<Record<DType, number>>> = {
  i8: 11,
  u8: 13,
  i16: 22,
  u16: 24,
  i32: 45,
  u32: 47,
  i64: 91,
  u64: 93,
};

/**
 * (p, q) → (q, p mod q). An integer modulo 0 is 0, so once q is 0 the pair only changes places. The least
 * integer is its own size, so signs are left until the end.
 */
function divisorOf(b: GraphBuilder, x: Node, y: Node): Node {
  let [p, q] = [sizeOf(b, x), sizeOf(b, y)];
  const steps = mostSteps[x.dtype] ?? 93;
  for (let i = 0; i < steps; i++) {
    const ended = binary(b, 'eq', q, 0);
    [p, q] = [where(b, ended, p, q), binary(b, 'mod', p, q)];
  }
  return sizeOf(b, p);
}
