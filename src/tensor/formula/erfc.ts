// erfc as a formula of primitives that keeps its digits where 1 − erf has none left: e^(−x²) times
// Cody's quotient ("Rational Chebyshev approximations for the error function", Math. Comp. 23,
// 1969). Takes f32 or f64 nodes.

import { times } from '../../autograd/cotangent.ts';
import type { CustomRule } from '../../autograd/custom.ts';
import { add, binary, div, fullLike, mul, neg, sub, unary, where } from '../../ir/build.ts';
import { erfcMiddle, erfcOuter } from '../../ir/interpret/erf.ts';
import type { GraphBuilder, Node } from '../../ir/graph.ts';
import { square, withRule } from '../ops/elementwise/formula.ts';

/** Below this 1 − erf(x) is at least ½ and right to the last digit. */
const TAIL = 0.46875;

/** erfc(x) = 2/√π ∫ₓ^∞ e^{−t²} dt. */
export function erfc(b: GraphBuilder, x: Node): Node {
  const near = sub(b, 1, unary(b, 'erf', x));
  // Where the tail is not taken it is computed at TAIL; from 27 on it is 0 in either dtype, and its
  // square must not overflow.
  const beyond = binary(b, 'min', binary(b, 'max', x, TAIL), 28);
  const value = where(b, binary(b, 'lt', x, TAIL), near, mul(b, gaussian(b, beyond), quotient(b, beyond)));
  return withRule(b, value, [x], rule);
}

/** d erfc x = −2/√π·e^(−x²)·dx */
const rule: CustomRule = (b, [x], _value, g) => [
  times(b, g, mul(b, unary(b, 'exp', neg(b, square(b, x!))), -2 / Math.sqrt(Math.PI))),
];

/**
 * e^(−x²) for x in steps of 1/16 plus a rest, so that the greater exponent is exact: x² alone would
 * be off by up to x²·2⁻²⁴.
 */
function gaussian(b: GraphBuilder, x: Node): Node {
  const head = mul(b, unary(b, 'round', mul(b, x, 16)), 1 / 16);
  const rest = mul(b, sub(b, x, head), add(b, x, head));
  return mul(b, unary(b, 'exp', neg(b, square(b, head))), unary(b, 'exp', neg(b, rest)));
}

/**
 * erfc(x)·e^{x²}: to 5e-7 in f32, where one quotient does; to the last digits in f64, which takes
 * another from 4 on.
 */
function quotient(b: GraphBuilder, x: Node): Node {
  const middle = div(b, horner(b, erfcMiddle.top, x), horner(b, erfcMiddle.bottom, x));
  if (x.dtype !== 'f64') return middle;
  const inverse = unary(b, 'recip', square(b, binary(b, 'max', x, 4)));
  const tail = mul(
    b,
    inverse,
    div(b, horner(b, erfcOuter.top, inverse), horner(b, erfcOuter.bottom, inverse)),
  );
  const outer = div(b, sub(b, 1 / Math.sqrt(Math.PI), tail), x);
  return where(b, binary(b, 'le', x, 4), middle, outer);
}

function horner(b: GraphBuilder, coefficients: readonly number[], x: Node): Node {
  const [first = 0, ...rest] = coefficients;
  return rest.reduce<Node>((sum, c) => add(b, mul(b, sum, x), c), fullLike(b, x, first));
}
