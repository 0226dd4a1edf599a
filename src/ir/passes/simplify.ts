// Algebraic identities that hold bit for bit: for floats also with NaN, −0 and the infinities, so
// x·0 = 0 and x − x = 0 are for integers only. Not here because they round differently: recip(sqrt
// x) = rsqrt x, exp(log x) = x, x·y + z = fma(x, y, z), and pow with other exponents than 0, 1 and
// 2. Expects constants on the right (`canonicalise`).

import { add, binary, cast, mul, neg, sub, unary } from '../build.ts';
import { dtypeBytes, dtypeKind, integerRange, isFloat, isInteger, type DType } from '../dtype.ts';
import { rebuild, type Graph, type GraphBuilder, type Node } from '../graph.ts';
import { identityOf } from '../interpret/identity.ts';
import { fromInteger } from '../value.ts';
import {
  constantOf,
  held,
  isAllOnes,
  isConstant,
  isNeverMinusZero,
  operandsOf,
  spreadConstant,
} from './pattern.ts';
import { rule, rulePass, selectionRules, type RewriteRule } from './rules.ts';
import { axisRules } from './simplify-axes.ts';

// The identities of conversions and roundings: detours through a dtype that loses nothing, and
// numbers that are whole already. Part of `simplify`.

/** Rules of cast, bitcast and the rounding ops. */
const castRules: readonly RewriteRule[] = [
  rule('cast-cast', 'c → b → a = c → a where b holds all of c, or both wrap', 'cast', (node, b) => {
    const x = node.inputs[0]!;
    if (x.op !== 'cast') return undefined;
    const from = x.inputs[0]!;
    return isDetour(from.dtype, x.dtype, node.dtype) ? cast(b, from, node.dtype) : undefined;
  }),
  rule('bitcast-bitcast', 'bitcast(bitcast x) = bitcast x', 'bitcast', (node, b) => {
    const x = node.inputs[0]!;
    if (x.op !== 'bitcast') return undefined;
    const from = x.inputs[0]!;
    return from.dtype === node.dtype ? from : rebuild(node, [from], b);
  }),
  rule(
    'whole-already',
    'round(n) = n for whole n',
    ['floor', 'ceil', 'round', 'trunc'],
    ({ inputs: [x] }) => {
      const whole = x!.op === 'cast' ? !isFloat(x!.inputs[0]!.dtype) : rounding.has(x!.op);
      return whole ? x : undefined;
    },
  ),
  rule('sign-sign', 'sign(sign x) = sign x', 'sign', ({ inputs: [x] }) => (x!.op === 'sign' ? x : undefined)),
];

const rounding: ReadonlySet<string> = new Set(['floor', 'ceil', 'round', 'trunc', 'sign']);

/** Bits of a float's significand, counting the implicit one. */
const precision: Partial<Record<DType, number>> = { f64: 53, f32: 24, f16: 11, bf16: 8 };

/** True when every value of `from` is a value of `to`. */
function embeds(from: DType, to: DType): boolean {
  if (from === to || from === 'bool') return true;
  if (isFloat(from)) return precision[from]! < (precision[to] ?? 0) && dtypeBytes(from) < dtypeBytes(to);
  const [low, high] = integerRange(from);
  if (isFloat(to)) return high < 1n << BigInt(precision[to]!);
  const [lowest, highest] = integerRange(to);
  return to !== 'bool' && lowest <= low && high <= highest;
}

/** True when casting `from` → `through` → `to` gives what `from` → `to` gives. */
function isDetour(from: DType, through: DType, to: DType): boolean {
  if (isInteger(from) && isInteger(through) && isInteger(to)) {
    return embeds(from, through) || dtypeBytes(to) <= dtypeBytes(through);
  }
  if (!embeds(from, through)) return false;
  // Floats saturate into integers where integers would wrap.
  return !(isInteger(from) && isFloat(through) && isInteger(to)) || embeds(from, to);
}

const zeroLike = (b: GraphBuilder, node: Node): Node => spreadConstant(b, 0, node.dtype, node.shape);
const truth = (b: GraphBuilder, node: Node, value: boolean): Node =>
  spreadConstant(b, value ? 1 : 0, 'bool', node.shape);
const isInt = (node: Node): boolean => isInteger(node.dtype);

const signs: readonly RewriteRule[] = [
  rule('neg-neg', '−(−x) = x', 'neg', ({ inputs: [x] }) => (x!.op === 'neg' ? x!.inputs[0] : undefined)),
  // An unsigned −x wraps around, and |x| = x.
  rule('abs-unsigned', '|u| = u for unsigned u', 'abs', (node) =>
    dtypeKind(node.dtype) === 'uint' ? node.inputs[0] : undefined,
  ),
  rule('abs-neg', '|−x| = |x| for signed x', 'abs', ({ inputs: [x] }, b) =>
    x!.op === 'neg' && dtypeKind(x!.dtype) !== 'uint' ? unary(b, 'abs', x!.inputs[0]!) : undefined,
  ),
  rule('abs-abs', '||x|| = |x|', 'abs', ({ inputs: [x] }) => (x!.op === 'abs' ? x : undefined)),
  rule('add-neg', 'x + (−y) = x − y', 'add', (node, b) => {
    const [x, y] = operandsOf(node);
    if (y.op === 'neg') return sub(b, x, y.inputs[0]!);
    return x.op === 'neg' ? sub(b, y, x.inputs[0]!) : undefined;
  }),
  rule('sub-neg', 'x − (−y) = x + y', 'sub', (node, b) => {
    const [x, y] = operandsOf(node);
    return y.op === 'neg' ? add(b, x, y.inputs[0]!) : undefined;
  }),
  rule('mul-neg', '(−x)·(−y) = x·y; (−x)·c = x·(−c)', 'mul', (node, b) => {
    const [x, y] = operandsOf(node);
    if (x.op !== 'neg') return undefined;
    if (y.op === 'neg') return mul(b, x.inputs[0]!, y.inputs[0]!);
    const c = constantOf(y);
    if (c === undefined) return undefined;
    const negated = isFloat(y.dtype) ? -c : fromInteger(y.dtype)(-c);
    return mul(b, x.inputs[0]!, spreadConstant(b, negated, y.dtype, y.shape));
  }),
  rule('div-neg', '(−x)/(−y) = x/y', 'div', (node, b) => {
    const [x, y] = operandsOf(node);
    const both = isFloat(node.dtype) && x.op === 'neg' && y.op === 'neg';
    return both ? (b.add('div', [x.inputs[0]!, y.inputs[0]!], {}) as Node) : undefined;
  }),
  rule('mul-minus-one', 'x·(−1) = −x', 'mul', (node, b) => {
    const [x, c] = operandsOf(node);
    return isConstant(c, -1) ? neg(b, x) : undefined;
  }),
  rule('sub-from-zero', '−0 − x = −x; for integers 0 − x = −x', 'sub', (node, b) => {
    const [c, x] = operandsOf(node);
    return isConstant(c, isFloat(node.dtype) ? -0 : 0) ? neg(b, x) : undefined;
  }),
];

const neutral: readonly RewriteRule[] = [
  // 0 would turn −0 into 0.
  rule('add-zero', 'x + (−0) = x; x + 0 = x where x is never −0', 'add', (node) => {
    const [x, c] = operandsOf(node);
    const zero = isConstant(c, -0) || (isConstant(c, 0) && isNeverMinusZero(x));
    return zero ? x : undefined;
  }),
  rule('sub-zero', 'x − 0 = x', 'sub', (node) => {
    const [x, c] = operandsOf(node);
    return isConstant(c, 0) ? x : undefined;
  }),
  rule('mul-one', 'x·1 = x', 'mul', (node) => {
    const [x, c] = operandsOf(node);
    return isConstant(c, 1) ? x : undefined;
  }),
  rule('div-one', 'x/1 = x', 'div', (node) => {
    const [x, c] = operandsOf(node);
    return isConstant(c, 1) ? x : undefined;
  }),
  rule(
    'extreme',
    'min(x, ∞) = x; max(x, −∞) = x; for integers the ends of the range',
    ['min', 'max'],
    (node) => {
      const [x, c] = operandsOf(node);
      const identity = identityOf(node.op, node.dtype);
      return Object.is(constantOf(c), identity) ? x : undefined;
    },
  ),
  rule('bits-neutral', 'x ∧ 1… = x; x ∨ 0 = x; x ⊻ 0 = x', ['and', 'or', 'xor'], (node) => {
    const [x, c] = operandsOf(node);
    return (node.op === 'and' ? isAllOnes(c) : isConstant(c, 0)) ? x : undefined;
  }),
  rule('shift-zero', 'x shifted by 0 = x', ['shl', 'shr'], (node) => {
    const [x, c] = operandsOf(node);
    return isConstant(c, 0) ? x : undefined;
  }),
];

const absorbing: readonly RewriteRule[] = [
  rule('mul-zero', 'n·0 = 0 for integers', 'mul', (node) => {
    const [, c] = operandsOf(node);
    return isInt(node) && isConstant(c, 0) ? c : undefined;
  }),
  rule('bits-absorb', 'x ∧ 0 = 0; x ∨ 1… = 1…', ['and', 'or'], (node) => {
    const [, c] = operandsOf(node);
    return (node.op === 'and' ? isConstant(c, 0) : isAllOnes(c)) ? c : undefined;
  }),
  // Integers only: for floats a NaN operand must give NaN.
  rule('extreme-absorb', 'min(n, least) = least; max(n, greatest) = greatest', ['min', 'max'], (node) => {
    const [, c] = operandsOf(node);
    if (isFloat(node.dtype)) return undefined;
    const [least, greatest] = integerRange(node.dtype);
    return constantOf(c) === held(node.op === 'min' ? least : greatest, node.dtype) ? c : undefined;
  }),
];

const sameOperand: readonly RewriteRule[] = [
  rule('idempotent', 'x ∘ x = x', ['min', 'max', 'and', 'or'], (node) => {
    const [x, y] = operandsOf(node);
    return x === y ? x : undefined;
  }),
  rule(
    'self-inverse',
    'n − n = 0 and n mod n = 0 for integers; x ⊻ x = 0',
    ['sub', 'mod', 'xor'],
    (node, b) => {
      const [x, y] = operandsOf(node);
      return x === y && !isFloat(node.dtype) ? zeroLike(b, node) : undefined;
    },
  ),
  rule('never-less', '(x < x) = false', 'lt', (node, b) => {
    const [x, y] = operandsOf(node);
    return x === y ? truth(b, node, false) : undefined;
  }),
  rule(
    'self-equal',
    '(n = n) = (n ≤ n) = true, (n ≠ n) = false; (x ≠ x) = isNan x',
    ['eq', 'le', 'ne'],
    (node, b) => {
      const [x, y] = operandsOf(node);
      if (x !== y) return undefined;
      if (!isFloat(x.dtype)) return truth(b, node, node.op !== 'ne');
      return node.op === 'ne' ? unary(b, 'isNan', x) : undefined;
    },
  ),
];

const logic: readonly RewriteRule[] = [
  rule('not-not', '¬¬x = x', 'not', ({ inputs: [x] }) => (x!.op === 'not' ? x!.inputs[0] : undefined)),
  rule(
    'not-compare',
    '¬(x = y) = (x ≠ y); for integers ¬(m < n) = (n ≤ m)',
    'not',
    ({ inputs: [test] }, b) => {
      if (test!.op !== 'eq' && test!.op !== 'ne' && test!.op !== 'lt' && test!.op !== 'le') return undefined;
      const [x, y] = operandsOf(test!);
      if (test!.op === 'eq') return binary(b, 'ne', x, y);
      if (test!.op === 'ne') return binary(b, 'eq', x, y);
      // NaN is neither less than a number nor not less than it.
      if (isFloat(x.dtype)) return undefined;
      return binary(b, test!.op === 'lt' ? 'le' : 'lt', y, x);
    },
  ),
  rule('compare-bool', '(p = true) = p; (p = false) = ¬p', ['eq', 'ne'], (node, b) => {
    const [p, c] = operandsOf(node);
    const value = p.dtype === 'bool' ? constantOf(c) : undefined;
    if (value === undefined) return undefined;
    return (value === 1) === (node.op === 'eq') ? p : unary(b, 'not', p);
  }),
  rule('mask', '(cast p ≠ 0) = p for bool p', 'ne', (node) => {
    const [x, c] = operandsOf(node);
    const isMask = x.op === 'cast' && x.inputs[0]!.dtype === 'bool';
    return isMask && (isConstant(c, 0) || isConstant(c, -0)) ? x.inputs[0] : undefined;
  }),
];

const arithmetic: readonly RewriteRule[] = [
  rule('pow-constant', 'x⁰ = 1, x¹ = x, x² = x·x', 'pow', (node, b) => {
    const [x, c] = operandsOf(node);
    switch (constantOf(c)) {
      case 0:
        return spreadConstant(b, 1, node.dtype, node.shape);
      case 1:
        return x;
      case 2:
        return mul(b, x, x);
      default:
        return undefined;
    }
  }),
  rule('div-power-of-two', 'x/2ᵏ = x·2⁻ᵏ', 'div', (node, b) => {
    const [x, c] = operandsOf(node);
    const divisor = constantOf(c);
    if (!isFloat(node.dtype) || typeof divisor !== 'number' || !isPowerOfTwo(divisor, node.dtype))
      return undefined;
    return mul(b, x, spreadConstant(b, 1 / divisor, c.dtype, c.shape));
  }),
];

/** Smallest exponent of a normal number; devices may flush smaller ones to 0. */
const leastExponent: Partial<Record<DType, number>> = { f64: -1022, f32: -126, f16: -14, bf16: -126 };

/** ±2ᵏ whose reciprocal is a normal number too. */
function isPowerOfTwo(value: number, dtype: DType): boolean {
  const k = Math.log2(Math.abs(value));
  const smallestExponent = leastExponent[dtype]!;
  return Number.isInteger(k) && 2 ** k === Math.abs(value) && k >= smallestExponent && k <= -smallestExponent;
}

/** The rules, in the order they are tried. */
export const simplifyRules: readonly RewriteRule[] = [
  ...neutral,
  ...absorbing,
  ...signs,
  ...sameOperand,
  ...logic,
  ...castRules,
  ...arithmetic,
  ...axisRules,
];

/** Applies the algebraic identities. */
export const simplify: (graph: Graph) => Graph = rulePass('simplify', simplifyRules, selectionRules.simplify);
