// Derivatives of complex values, in PyTorch's convention: the cotangent of z = x + iy is ∂L/∂x + i·∂L/∂y
// of a real L, so the direction of steepest descent is −cotangent. A holomorphic f passes g·f′(z)* back.
// The rules for real numbers, products and quotients included, give g·f′(z). With a conjugation before and
// after they serve complex numbers too. Ops that are not holomorphic have their own row here.

import {
  binary,
  cast,
  complex,
  conj,
  div,
  fullLike,
  imag,
  mul,
  neg,
  real,
  sub,
  unary,
  where,
} from '../ir/build.ts';
import { isComplex, isFloat } from '../ir/dtype.ts';
import type { GraphBuilder, Node } from '../ir/graph.ts';
import type { ComplexOp, Op } from '../ir/ops.ts';
import { convert, times, type VjpRule } from './cotangent.ts';

/** Rules of the ops that make complex numbers of parts and take them apart. */
export const complexRules: { readonly [K in ComplexOp]: VjpRule<K> } = {
  complex: (b, _, g) => [real(b, g), imag(b, g)],
  real: (b, _, g) => [complex(b, g, fullLike(b, g, 0))],
  imag: (b, _, g) => [complex(b, fullLike(b, g, 0), g)],
  conj: (b, _, g) => [conj(b, g)],
};

/** d|z| = Re(sgn(z)*·dz). */
const absRule: VjpRule = (b, { inputs: [z] }, g) => [times(b, cast(b, g, z!.dtype), unary(b, 'sign', z!))];

/** sgn z = z/|z| turns only: d sgn(z) = (dz − sgn(z)·Re(sgn(z)*·dz))/|z|, and 0 at 0. */
const signRule: VjpRule = (b, node, g) => {
  const z = node.inputs[0]!;
  const out = node as Node;
  const size = unary(b, 'abs', z);
  const zero = binary(b, 'eq', size, 0);
  const safe = cast(b, where(b, zero, fullLike(b, size, 1), size), z.dtype);
  const along = cast(b, real(b, mul(b, conj(b, out), g)), z.dtype);
  const across = div(b, sub(b, g, mul(b, out, along)), safe);
  return [where(b, zero, fullLike(b, across, 0), across)];
};

/** From a real number only the real part of g goes back. */
const castRule: VjpRule = (b, { inputs: [x] }, g) => {
  const { dtype } = x!;
  if (isComplex(dtype)) return [isComplex(g.dtype) ? convert(b, g, dtype) : undefined];
  return [isFloat(dtype) ? convert(b, real(b, g), dtype) : undefined];
};

/** d zʷ = w·zʷ⁻¹·dz + zʷ·log z·dw: nothing to z where w = 0, and to w where z = 0 and w ≥ 0. */
const powRule: VjpRule = (b, node, g, wanted) => {
  const [z, w] = [node.inputs[0]!, node.inputs[1]!];
  const one = fullLike(b, z, 1);
  const selected = (when: Node, x: Node): Node => where(b, when, fullLike(b, x, 0), x);
  const base = (): Node => {
    const flat = binary(b, 'eq', w, fullLike(b, w, 0));
    const power = binary(b, 'pow', where(b, flat, one, z), sub(b, w, 1));
    return selected(flat, mul(b, g, mul(b, w, power)));
  };
  const exponent = (): Node => {
    const rises = binary(b, 'and', binary(b, 'eq', imag(b, w), 0), isAtLeastZero(b, real(b, w)));
    const flat = binary(b, 'and', binary(b, 'eq', z, fullLike(b, z, 0)), rises);
    return selected(flat, mul(b, g, mul(b, node as Node, unary(b, 'log', where(b, flat, one, z)))));
  };
  return [wanted[0] === true ? base() : undefined, wanted[1] === true ? exponent() : undefined];
};

function isAtLeastZero(b: GraphBuilder, x: Node): Node {
  return binary(b, 'le', fullLike(b, x, 0), x);
}

/** d asin z = dz/(√(1−z)·√(1+z)): on its cuts the root of the product has another sign. */
const arcRule =
  (turned: boolean): VjpRule =>
  (b, { inputs: [z] }, g) => {
    // By parts, since a complex 1 would turn −0·i into 0.
    const [x, y] = [real(b, z!), imag(b, z!)];
    const [below, above] = [complex(b, sub(b, 1, x), neg(b, y)), complex(b, binary(b, 'add', x, 1), y)];
    const roots = mul(b, unary(b, 'sqrt', below), unary(b, 'sqrt', above));
    return [div(b, turned ? neg(b, g) : g, roots)];
  };

const own: Partial<Record<Op, VjpRule>> = { abs: absRule, sign: signRule, cast: castRule };
/** Holomorphic, but with formulas of their own. */
const ownHolomorphic: Partial<Record<Op, VjpRule>> = {
  pow: powRule,
  asin: arcRule(false),
  acos: arcRule(true),
};

/** Ops that are linear over the real numbers, part by part: their rules do as they are. */
const partwise: ReadonlySet<Op> = new Set<Op>([
  'neg',
  'add',
  'sub',
  'where',
  'complex',
  'real',
  'imag',
  'conj',
  'customVjp',
]);
const multiplies: ReadonlySet<Op> = new Set<Op>(['dot', 'conv']);

/** The rule of a node with complex operands or results, from that of its op. */
export function complexRule(node: Node, rule: VjpRule | 'flat', isElementwise: boolean): VjpRule | 'flat' {
  const special = own[node.op];
  if (special !== undefined) return special;
  const holomorphic = ownHolomorphic[node.op] ?? rule;
  if (holomorphic === 'flat' || !isComplex(node.dtype)) return holomorphic;
  const isProduct = (node.op === 'reduce' || node.op === 'scan') && node.attrs.monoid === 'prod';
  const isBilinear = multiplies.has(node.op) || isProduct;
  return isBilinear || (isElementwise && !partwise.has(node.op)) ? conjugated(holomorphic) : holomorphic;
}

function conjugated(rule: VjpRule): VjpRule {
  return (b, node, g, wanted) =>
    rule(b, node, conj(b, g), wanted).map((cotangent) => cotangent && conj(b, cotangent));
}
