// Sums, products, quotients and powers of two tensors, and what they are of one.

import type { Floated } from '../../inferred.ts';
import type { Common } from '../operand.ts';
import { TensorError } from '../../../errors.ts';
import * as arg from '../../../ir/arguments.ts';
import {
  add as plus,
  binary,
  div as over,
  fullLike,
  mul as times,
  sub as less,
  unary,
  where,
} from '../../../ir/build.ts';
import { dtypeBytes, dtypeKind, isComplex, isFloat, isInexact } from '../../../ir/dtype.ts';
import type { GraphBuilder, Node } from '../../../ir/graph.ts';
import type { BinaryOp } from '../../../ir/ops.ts';
import { anOperand, expectOperand } from '../../expect.ts';
import { numberOf } from '../../record.ts';
import type { Tensor, TensorLike } from '../../tensor.ts';
import { isZero, wholeNumber } from '../number.ts';
import { apply, type Binary, casted, combine, fit, operandType, show } from '../operand.ts';
import * as formula from '../../formula/elementwise.ts';
import { widened } from '../../formula/elementwise.ts';

export interface AddOptions {
  /** Factor on the second operand, 1 by default. */
  readonly alpha?: number;
}

const takesSum = arg.takes<typeof add>(
  ['x', anOperand],
  ['y', anOperand],
  ['options', arg.options<AddOptions>({ alpha: arg.number })],
);

/**
 * x + alpha·y.
 *
 * @method
 * @example
 * const x = sn.tensor([[1, -2, 3], [0.5, 4, -1]]);
 * const y = sn.tensor([[2, 3, 1], [1, 5, 4]]);
 * sn.add(x, y);
 * @example <caption>alpha</caption>
 * const x = sn.tensor([[1, -2, 3], [0.5, 4, -1]]);
 * const y = sn.tensor([[2, 3, 1], [1, 5, 4]]);
 * sn.add(x, y, { alpha: 2 });
 */
export function add<X extends TensorLike, Y extends TensorLike>(
  x: X,
  y: Y,
  options: AddOptions = {},
): Tensor<Common<X, Y>> {
  takesSum('add', x, y, options);
  return scaledSum('add', x, y, options.alpha ?? 1);
}

/**
 * x − alpha·y.
 *
 * @method
 * @jax jnp.subtract
 * @example
 * const x = sn.tensor([[1, -2, 3], [0.5, 4, -1]]);
 * const y = sn.tensor([[2, 3, 1], [1, 5, 4]]);
 * sn.sub(x, y);
 */
export function sub<X extends TensorLike, Y extends TensorLike>(
  x: X,
  y: Y,
  options: AddOptions = {},
): Tensor<Common<X, Y>> {
  takesSum('sub', x, y, options);
  return scaledSum('sub', x, y, -(options.alpha ?? 1));
}

/**
 * x + alpha·y with one rounding where the target has a fused multiply-add.
 *
 * @example
 * const x = sn.tensor([[1, -2, 3], [0.5, 4, -1]]);
 * const y = sn.tensor([[2, 3, 1], [1, 5, 4]]);
 * sn.addScaled(x, y, 0.5);
 */
export function addScaled<X extends TensorLike, Y extends TensorLike>(
  x: X,
  y: Y,
  alpha: number,
): Tensor<Common<X, Y>> {
  return scaledSum('addScaled', x, y, alpha);
}

function scaledSum(op: string, x: TensorLike, y: TensorLike, alpha: number): Tensor {
  if (!arg.number.accepts(alpha)) arg.number.refuse(op, 'alpha', alpha);
  return combine(op, [x, y], op === 'add' && alpha === 1 ? 'any' : 'number', (b, p, q) => {
    if (alpha === 1) return p.dtype === 'bool' ? binary(b, 'or', p, q) : plus(b, p, q);
    if (alpha === -1) return less(b, p, q);
    if (isInexact(p.dtype)) return b.add('fma', [q, fullLike(b, q, alpha), p], {}) as Node;
    if (!Number.isInteger(alpha))
      throw new TensorError('E_VALUE', op, `alpha ${alpha} must be whole for ${show(x, y)}`);
    // Unsigned integers have no negative factors: the sum wraps as the difference does.
    return alpha < 0 ? less(b, p, times(b, q, -alpha)) : plus(b, p, times(b, q, alpha));
  });
}

/**
 * x · y.
 *
 * @method
 * @jax jnp.multiply
 * @example
 * const x = sn.tensor([[1, -2, 3], [0.5, 4, -1]]);
 * const y = sn.tensor([[2, 3, 1], [1, 5, 4]]);
 * sn.mul(x, y);
 * @example <caption>number</caption>
 * const x = sn.tensor([[1, -2, 3], [0.5, 4, -1]]);
 * sn.mul(x, 0.5);
 */
export function mul<X extends TensorLike, Y extends TensorLike>(x: X, y: Y): Tensor<Common<X, Y>> {
  return combine('mul', [x, y], 'any', (b, p, q) =>
    p.dtype === 'bool' ? binary(b, 'and', p, q) : times(b, p, q),
  );
}

export interface DivOptions {
  /** Rounds the quotient down or toward zero and keeps integers integer; no rounding by default. */
  readonly rounding?: 'floor' | 'trunc';
}

const takesDiv = arg.takes<typeof div>(
  ['x', anOperand],
  ['y', anOperand],
  ['options', arg.options<DivOptions>({ rounding: arg.oneOf('floor', 'trunc') })],
);

/**
 * x / y; integers divide as f32 unless `rounding` is given.
 *
 * @method
 * @jax jnp.divide
 * @example
 * const x = sn.tensor([[1, -2, 3], [0.5, 4, -1]]);
 * const y = sn.tensor([[2, 3, 1], [1, 5, 4]]);
 * sn.div(x, y);
 * @example <caption>floor</caption>
 * const x = sn.tensor([[1, -2, 3], [0.5, 4, -1]]);
 * const y = sn.tensor([[2, 3, 1], [1, 5, 4]]);
 * sn.div(x, y, { rounding: 'floor' });
 */
export function div<X extends TensorLike, Y extends TensorLike>(
  x: X,
  y: Y,
  options: DivOptions = {},
): Tensor<Common<X, Y> | Floated<Common<X, Y>>> {
  takesDiv('div', x, y, options);
  if (options.rounding === undefined) return combine('div', [x, y], 'float', (b, p, q) => over(b, p, q));
  if (options.rounding === 'floor') return quotient('div', x, y, formula.floorDivide);
  return quotient('div', x, y, (b, p, q) =>
    isFloat(p.dtype) ? unary(b, 'trunc', over(b, p, q)) : over(b, p, q),
  );
}

/**
 * ⌊x / y⌋: −7 by 2 is −4. Integers by a 0 in a tensor stay what they are.
 *
 * @method
 * @example
 * const x = sn.tensor([[1, -2, 3], [0.5, 4, -1]]);
 * const y = sn.tensor([[2, 3, 1], [1, 5, 4]]);
 * sn.floorDivide(x, y);
 */
export function floorDivide<X extends TensorLike, Y extends TensorLike>(x: X, y: Y): Tensor<Common<X, Y>> {
  return quotient('floorDivide', x, y, formula.floorDivide);
}

/**
 * x − y·⌊x / y⌋: the result has the divisor's sign, −7 by 2 leaves 1.
 *
 * @method
 * @jax jnp.remainder, jnp.mod
 * @example
 * const x = sn.tensor([[1, -2, 3], [0.5, 4, -1]]);
 * const y = sn.tensor([[2, 3, 1], [1, 5, 4]]);
 * sn.remainder(x, y);
 */
export function remainder<X extends TensorLike, Y extends TensorLike>(x: X, y: Y): Tensor<Common<X, Y>> {
  return quotient('remainder', x, y, formula.remainder);
}

/**
 * x − y·trunc(x / y): the result has the dividend's sign, −7 by 2 leaves −1.
 *
 * @method
 * @example
 * const x = sn.tensor([[1, -2, 3], [0.5, 4, -1]]);
 * const y = sn.tensor([[2, 3, 1], [1, 5, 4]]);
 * sn.fmod(x, y);
 */
export function fmod<X extends TensorLike, Y extends TensorLike>(x: X, y: Y): Tensor<Common<X, Y>> {
  return quotient('fmod', x, y, (b, p, q) => binary(b, 'mod', p, q));
}

/** A division that stays within integers; there, dividing by the number 0 is a mistake. */
function quotient(
  op: string,
  x: TensorLike,
  y: TensorLike,
  make: (b: GraphBuilder, p: Node, q: Node) => Node,
): Tensor {
  const dtype = operandType(op, [x, y], 'real');
  if (!isFloat(dtype) && isZero(y)) {
    throw new TensorError(
      'E_VALUE',
      op,
      `integers cannot be divided by 0: ${show(x, y)}`,
      ".cast('f32') first, for ±∞ and NaN",
    );
  }
  return fit(op, [x, y], () => dtype, make);
}

/* @__NO_SIDE_EFFECTS__ */
function pairwise(name: string, op: BinaryOp, onBool?: BinaryOp): Binary {
  return (x, y) =>
    combine(name, [x, y], 'ordered', (b, p, q) =>
      binary(b, p.dtype === 'bool' && onBool !== undefined ? onBool : op, p, q),
    );
}

/**
 * The larger of both; NaN wins. Equal operands share the gradient.
 *
 * @method
 * @example
 * const x = sn.tensor([[1, -2, 3], [0.5, 4, -1]]);
 * const y = sn.tensor([[2, 3, 1], [1, 5, 4]]);
 * sn.maximum(x, y);
 */
export const maximum: Binary = pairwise('maximum', 'max', 'or');
/**
 * The smaller of both; NaN wins. Equal operands share the gradient.
 *
 * @method
 * @example
 * const x = sn.tensor([[1, -2, 3], [0.5, 4, -1]]);
 * const y = sn.tensor([[2, 3, 1], [1, 5, 4]]);
 * sn.minimum(x, y);
 */
export const minimum: Binary = pairwise('minimum', 'min', 'and');

/**
 * The angle of the point (x: `x`, y: `y`) in (−π, π], argument order as atan2(y, x).
 *
 * @method
 * @jax jnp.atan2, jnp.arctan2
 * @example
 * const x = sn.tensor([[1, -2, 3], [0.5, 4, -1]]);
 * const y = sn.tensor([[2, 3, 1], [1, 5, 4]]);
 * sn.atan2(x, y);
 */
export function atan2<X extends TensorLike, Y extends TensorLike>(y: Y, x: X): Tensor<Floated<Common<X, Y>>> {
  return combine('atan2', [y, x], 'realFloat', (b, p, q) => binary(b, 'atan2', p, q));
}

/**
 * x^exponent. Integers stay integer (a negative power of one is 0 but for ±1); common exponents
 * become products, roots.
 *
 * @method
 * @jax jnp.pow, jnp.power
 * @example
 * const y = sn.tensor([[2, 3, 1], [1, 5, 4]]);
 * sn.pow(y, 2);
 * @example <caption>tensor</caption>
 * const y = sn.tensor([[2, 3, 1], [1, 5, 4]]);
 * const powers = sn.tensor([1, 2, 3]);
 * sn.pow(y, powers);
 */
export function pow<X extends TensorLike, Y extends TensorLike>(x: X, exponent: Y): Tensor<Common<X, Y>> {
  expectOperand('pow', x);
  if (typeof x === 'object' && isInexact(x.dtype)) {
    const known =
      typeof exponent === 'number' ? exponent : isComplex(x.dtype) ? knownPower(exponent) : undefined;
    if (known !== undefined) return floatPower(casted('pow', x), known);
  } else if (typeof x === 'object' && x.dtype !== 'bool') {
    const count = wholeNumber(exponent);
    if (count !== undefined) return integerPower(x, count);
  }
  return combine('pow', [x, exponent], 'number', (b, p, q) =>
    isInexact(p.dtype) ? binary(b, 'pow', p, q) : integerPowers(b, p, q),
  );
}

const powers: Readonly<Record<string, (b: GraphBuilder, x: Node) => Node>> = {
  '0': (b, x) => fullLike(b, x, 1),
  '1': (_, x) => x,
  '2': (b, x) => times(b, x, x),
  '3': (b, x) => times(b, times(b, x, x), x),
  '-1': (b, x) => unary(b, 'recip', x),
  '0.5': (b, x) => unary(b, 'sqrt', x),
  '-0.5': (b, x) => unary(b, 'rsqrt', x),
};

/** An exponent that there is a formula for. Other formulas have other values where a complex number is 0. */
function knownPower(exponent: TensorLike): number | undefined {
  const number = numberOf(exponent);
  return (
    number &&
    Object.keys(powers)
      .map(Number)
      .find((equals) => number.is({ equals }))
  );
}

function floatPower(x: Tensor, exponent: number): Tensor {
  const known = powers[String(exponent)];
  if (known !== undefined) return apply([x], (b, node) => widened(b, node, (wide) => known(b, wide)));
  return apply([x], (b, node) => binary(b, 'pow', node, exponent));
}

/** By squaring; the graph has at most two products per bit of the exponent. */
function integerPower(x: Tensor, exponent: number): Tensor {
  if (exponent < 0) {
    throw new TensorError(
      'E_VALUE',
      'pow',
      `integers take exponents ≥ 0: ${show(x, exponent)}`,
      ".cast('f32')",
    );
  }
  return apply([x], (b, node) => {
    let result = fullLike(b, node, 1);
    let factor = node;
    for (let rest = exponent; rest > 0; rest = Math.floor(rest / 2)) {
      if (rest % 2 === 1) result = times(b, result, factor);
      if (rest > 1) factor = times(b, factor, factor);
    }
    return result;
  });
}

/** By squaring, one bit of the exponents after the other. */
function integerPowers(b: GraphBuilder, x: Node, exponent: Node): Node {
  const odd = (rest: Node): Node => binary(b, 'ne', binary(b, 'and', rest, 1), 0);
  const signed = dtypeKind(x.dtype) === 'int';
  const one = fullLike(b, x, 1);
  let result = one;
  let factor = x;
  for (let bit = 0; bit < dtypeBytes(x.dtype) * 8 - (signed ? 1 : 0); bit++) {
    const rest = bit === 0 ? exponent : binary(b, 'shr', exponent, bit);
    result = where(b, odd(rest), times(b, result, factor), result);
    factor = times(b, factor, factor);
  }
  if (!signed) return result;
  const unit = where(
    b,
    binary(b, 'eq', unary(b, 'abs', x), one),
    where(b, odd(exponent), x, one),
    fullLike(b, x, 0),
  );
  return where(b, binary(b, 'lt', exponent, 0), unit, result);
}
