// Derivatives of the elementwise ops. Each line carries its law; `g` is the cotangent of the
// result, `x` (and `y`, `z`) the operands and `out` the result, which is reused wherever that is
// cheaper than computing the derivative anew.

import { add, binary, div, fullLike, mul, neg, sub, unary, where } from '../ir/build.ts';
import { isFloat, largestOf } from '../ir/dtype.ts';
import type { GraphBuilder, Node, NodeOf } from '../ir/graph.ts';
import type { BinaryOp, Op, TernaryOp, UnaryOp } from '../ir/ops.ts';
import { convert, dropWhere, keepWhere, negate, over, times, uniform, type VjpRule } from './cotangent.ts';

type Pullback1 = (b: GraphBuilder, g: Node, x: Node, out: Node) => Node;
type Pullback2 = (b: GraphBuilder, g: Node, x: Node, y: Node, out: Node) => Node | undefined;

const square = (b: GraphBuilder, x: Node): Node => mul(b, x, x);

/** `flat`: constant pieces between jumps, or no float result; 0 wherever there is a derivative. */
const unaryRules: { readonly [K in Exclude<UnaryOp, 'cast'>]: Pullback1 | 'flat' } = {
  // d(−x) = −dx
  neg: (b, g) => negate(b, g),
  // d|x| = sign(x)·dx, and 0 at 0
  abs: (b, g, x) => times(b, g, unary(b, 'sign', x)),
  // d eˣ = eˣ·dx
  exp: (b, g, _x, out) => times(b, g, out),
  // d 2ˣ = ln 2·2ˣ·dx
  exp2: (b, g, _x, out) => times(b, g, mul(b, out, Math.LN2)),
  // d(eˣ − 1) = eˣ·dx, of which the result keeps no digits where it is next to −1
  expm1: (b, g, x) => times(b, g, unary(b, 'exp', x)),
  // d ln x = dx/x
  log: (b, g, x) => over(b, g, x),
  // d log₂ x = dx/x/ln 2: x·ln 2 may leave the normal numbers
  log2: (b, g, x) => times(b, over(b, g, x), 1 / Math.LN2),
  // d ln(1 + x) = dx/(1 + x)
  log1p: (b, g, x) => over(b, g, add(b, x, 1)),
  // d sin x = cos x·dx
  sin: (b, g, x) => times(b, g, unary(b, 'cos', x)),
  // d cos x = −sin x·dx
  cos: (b, g, x) => times(b, g, neg(b, unary(b, 'sin', x))),
  // d tan x = (1 + tan² x)·dx
  tan: (b, g, _x, out) => times(b, g, add(b, square(b, out), 1)),
  // d asin x = dx/√(1 − x²)
  asin: (b, g, x) => times(b, g, unary(b, 'rsqrt', sub(b, 1, square(b, x)))),
  // d acos x = −dx/√(1 − x²)
  acos: (b, g, x) => times(b, g, neg(b, unary(b, 'rsqrt', sub(b, 1, square(b, x))))),
  // d atan x = dx/(1 + x²)
  atan: (b, g, x) => over(b, g, add(b, square(b, x), 1)),
  // d sinh x = cosh x·dx
  sinh: (b, g, x) => times(b, g, unary(b, 'cosh', x)),
  // d cosh x = sinh x·dx
  cosh: (b, g, x) => times(b, g, unary(b, 'sinh', x)),
  // d tanh x = (1 − tanh² x)·dx
  tanh: (b, g, _x, out) => times(b, g, sub(b, 1, square(b, out))),
  // d erf x = 2/√π·e^(−x²)·dx
  erf: (b, g, x) => times(b, g, mul(b, unary(b, 'exp', neg(b, square(b, x))), 2 / Math.sqrt(Math.PI))),
  // d√x = dx/(2√x)
  sqrt: (b, g, _x, out) => over(b, g, mul(b, out, 2)),
  // d x^(−½) = −½·x^(−3/2)·dx
  rsqrt: (b, g, _x, out) => times(b, g, mul(b, mul(b, square(b, out), out), -0.5)),
  // d(1/x) = −dx/x²
  recip: (b, g, _x, out) => times(b, g, neg(b, square(b, out))),
  sign: 'flat',
  floor: 'flat',
  ceil: 'flat',
  round: 'flat',
  trunc: 'flat',
  not: 'flat',
  isNan: 'flat',
  bitcast: 'flat',
};

type Pullbacks = readonly [Pullback2, Pullback2];

/** One pullback per operand, in order. */
const binaryRules: { readonly [K in BinaryOp]: Pullbacks | 'flat' } = {
  // d(x + y) = dx + dy
  add: [(_b, g) => g, (_b, g) => g],
  // d(x − y) = dx − dy
  sub: [(_b, g) => g, (b, g) => negate(b, g)],
  // d(x·y) = y·dx + x·dy
  mul: [(b, g, _x, y) => times(b, g, y), (b, g, x) => times(b, g, x)],
  // d(x/y) = dx/y − (x/y)/y·dy, in this order: 1/y may be ∞ or 0 where the quotient is 0 or ∞
  div: [(b, g, _x, y) => over(b, g, y), (b, g, _x, y, out) => negate(b, times(b, g, div(b, out, y)))],
  // x mod y = x − y·trunc(x/y), and trunc is flat: d = dx − trunc(x/y)·dy
  mod: [(_b, g) => g, (b, g, x, y) => times(b, g, neg(b, unary(b, 'trunc', div(b, x, y))))],
  pow: [powBase, powExponent],
  // The lesser operand gets nothing, ties share evenly, and a NaN sends g to both (as PyTorch).
  max: [
    (b, g, x, y) => share(b, g, binary(b, 'lt', x, y), x, y),
    (b, g, x, y) => share(b, g, binary(b, 'lt', y, x), x, y),
  ],
  min: [
    (b, g, x, y) => share(b, g, binary(b, 'lt', y, x), x, y),
    (b, g, x, y) => share(b, g, binary(b, 'lt', x, y), x, y),
  ],
  atan2: [(b, g, x, y) => turn(b, g, y, x), (b, g, x, y) => turn(b, g, neg(b, x), y)],
  and: 'flat',
  or: 'flat',
  xor: 'flat',
  shl: 'flat',
  shr: 'flat',
  mulhi: 'flat',
  lt: 'flat',
  le: 'flat',
  eq: 'flat',
  ne: 'flat',
};

function share(b: GraphBuilder, g: Node, loses: Node, x: Node, y: Node): Node {
  return dropWhere(b, loses, where(b, binary(b, 'eq', x, y), times(b, g, 0.5), g));
}

/**
 * θ = atan2(x, y): dθ = (y·dx − x·dy)/(x² + y²), here p/(p² + q²)·g, and 0 at the origin (as PyTorch).
 * Both are divided by the larger first, unless that is infinite, since the squares may leave the range.
 * The quotient does not depend on what they are divided by, so derivatives take that as a constant.
 */
function turn(b: GraphBuilder, g: Node, p: Node, q: Node): Node {
  const larger = binary(b, 'max', unary(b, 'abs', p), unary(b, 'abs', q));
  const origin = binary(b, 'eq', larger, 0);
  const divides = binary(b, 'and', binary(b, 'lt', 0, larger), binary(b, 'lt', larger, Infinity));
  const scale = b.add('stopGradient', [where(b, divides, larger, fullLike(b, larger, 1))], {}) as Node;
  const [near, far] = [div(b, p, scale), div(b, q, scale)];
  const length = add(b, square(b, near), square(b, far));
  const safe = where(b, origin, fullLike(b, length, 1), length);
  return dropWhere(b, origin, over(b, over(b, times(b, g, near), safe), scale));
}

/** d xᵉ = e·xᵉ⁻¹·dx, and 0 where e = 0, whatever x is. */
function powBase(b: GraphBuilder, g: Node, x: Node, e: Node): Node | undefined {
  const known = uniform(e);
  if (known === 0) return undefined;
  if (known === 1) return g;
  if (known !== undefined) {
    const power = known === 2 ? x : binary(b, 'pow', x, known - 1);
    return times(b, g, mul(b, power, known));
  }
  // 0·x⁻¹ is 0 by itself unless x⁻¹ overflows or x is NaN: there, and only there, another base
  // stands in.
  const flat = binary(b, 'eq', e, 0);
  const invertible = binary(b, 'lt', fullLike(b, x, 1 / largestOf(x.dtype)), unary(b, 'abs', x));
  const safe = where(b, binary(b, 'and', flat, unary(b, 'not', invertible)), fullLike(b, x, 1), x);
  return times(b, g, mul(b, binary(b, 'pow', safe, sub(b, e, 1)), e));
}

/** d xᵉ = xᵉ·ln x·de, and 0 where x = 0 and e ≥ 0. */
function powExponent(b: GraphBuilder, g: Node, x: Node, e: Node, out: Node): Node {
  const flat = binary(b, 'and', binary(b, 'eq', x, 0), binary(b, 'le', fullLike(b, e, 0), e));
  const safe = where(b, flat, fullLike(b, x, 1), x);
  return times(b, g, mul(b, out, unary(b, 'log', safe)));
}

function liftUnary(pullback: Pullback1): VjpRule {
  return (b, node, g) => [pullback(b, g, node.inputs[0]!, node as Node)];
}

function liftBinary([first, second]: Pullbacks): VjpRule {
  return (b, node, g, wanted) => {
    const [x, y] = [node.inputs[0]!, node.inputs[1]!];
    return [first, second].map((pullback, i) =>
      wanted[i] === true ? pullback(b, g, x, y, node as Node) : undefined,
    );
  };
}

function lift<K extends Op, P>(
  table: { readonly [O in K]: P | 'flat' },
  make: (pullback: P) => VjpRule,
): { readonly [O in K]: VjpRule<O> | 'flat' } {
  const entries = Object.entries(table) as [K, P | 'flat'][];
  const lifted = entries.map(([op, row]) => [op, row === 'flat' ? row : make(row)] as const);
  return Object.fromEntries(lifted) as never;
}

function castRule(b: GraphBuilder, { inputs }: NodeOf<'cast'>, g: Node): readonly (Node | undefined)[] {
  const { dtype } = inputs[0]!;
  return [isFloat(dtype) ? convert(b, g, dtype) : undefined];
}

const ternaryRules: { readonly [K in TernaryOp]: VjpRule<K> } = {
  // The branch not taken gets 0 by selection; the condition gets nothing.
  where: (b, { inputs: [when] }, g, wanted) => [
    undefined,
    wanted[1] === true ? keepWhere(b, when!, g) : undefined,
    wanted[2] === true ? dropWhere(b, when!, g) : undefined,
  ],
  // d(x·y + z) = y·dx + x·dy + dz
  fma: (b, { inputs: [x, y] }, g, wanted) => [
    wanted[0] === true ? times(b, g, y!) : undefined,
    wanted[1] === true ? times(b, g, x!) : undefined,
    g,
  ],
};

type Table = { readonly [K in UnaryOp | BinaryOp | TernaryOp]: VjpRule<K> | 'flat' };

/** Rules of the unary, binary and ternary ops; `flat` ones pass nothing on. */
export const elementwiseRules: Table = {
  ...lift<keyof typeof unaryRules, Pullback1>(unaryRules, liftUnary),
  ...lift<keyof typeof binaryRules, Pullbacks>(binaryRules, liftBinary),
  ...ternaryRules,
  // A conversion is the identity up to rounding: g converts back. From or to integers it is flat.
  cast: castRule,
};
