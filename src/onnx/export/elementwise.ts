// Elementwise primitives as ONNX nodes. What the standard leaves open (quotients by zero, shifts
// past the width, floats that no integer is) is written out, so that a file means what
// ir/interpret/scalar.ts says.

import { CompilerBug } from '../../errors.ts';
import { dtypeBytes, dtypeKind, integerRange, isFloat, isWide, type DType } from '../../ir/dtype.ts';
import type { Node } from '../../ir/graph.ts';
import { byFormula, hasSteps } from '../../ir/formula.ts';
import { elementwiseRows, givesBool, mapRows, type ElementwiseOp, type WrittenAs } from '../../ir/ops.ts';
import { constantOf } from '../../ir/passes/pattern.ts';
import { codeOf, typeOf } from '../element.ts';
import { Unspelled, type ModelEmitter, type Val } from './emitter.ts';
import type { ExportRow, ExportRows, ExportScope } from './row.ts';

const unary =
  (spell: (e: ModelEmitter, x: Val) => Val) =>
  ({ e, compact }: ExportScope, { inputs }: { readonly inputs: readonly Node[] }): Val =>
    spell(e, compact(inputs[0]!));

const binary =
  (spell: (e: ModelEmitter, x: Val, y: Val, right: Node) => Val) =>
  ({ e, compact }: ExportScope, { inputs }: { readonly inputs: readonly Node[] }): Val =>
    spell(e, compact(inputs[0]!), compact(inputs[1]!), inputs[1]!);

/**
 * 16-bit floats through f32: for formulas of several nodes, whose intermediate results must not be
 * rounded.
 */
const wide =
  (spell: (e: ModelEmitter, ...operands: Val[]) => Val) =>
  (
    { e, compact }: ExportScope,
    { inputs, dtype }: { readonly inputs: readonly Node[]; readonly dtype: DType },
  ): Val => {
    const via = dtype === 'f64' ? 'f64' : 'f32';
    return e.cast(spell(e, ...inputs.map((input) => e.cast(compact(input), via))), dtype);
  };

/** 0 for NaN; of 64 bits from comparisons, as ONNX Runtime 1.30 looks at 32 of them in `Sign`. */
function sign(e: ModelEmitter, x: Val): Val {
  const zero = e.scalar(0, x.dtype);
  if (isFloat(x.dtype)) return e.where(e.test('IsNaN', [x]), zero, e.map('Sign', [x]));
  if (!isWide(x.dtype)) return e.map('Sign', [x]);
  const [above, below] = [e.test('Less', [zero, x]), e.test('Less', [x, zero])];
  return e.map('Sub', [e.cast(above, x.dtype), e.cast(below, x.dtype)]);
}

/** Towards zero: up where it is negative. */
const trunc = unary((e, x) => {
  const negative = e.test('Less', [x, e.scalar(0, x.dtype)]);
  return e.where(negative, e.map('Ceil', [x]), e.map('Floor', [x]));
});

/** e^x − 1: near 0 by 2t / (1 − t) with t = tanh(x/2), which loses no digits there. */
const expm1 = wide((e, x) => {
  const number = (value: number): Val => e.scalar(value, x!.dtype);
  const t = e.map('Tanh', [e.map('Mul', [x!, number(0.5)])]);
  const near = e.map('Div', [e.map('Add', [t, t]), e.map('Sub', [number(1), t])]);
  const isNear = e.test('Less', [e.map('Abs', [x!]), number(1)]);
  return e.where(isNear, near, e.map('Sub', [e.map('Exp', [x!]), number(1)]));
});

/** log(1 + x) = log(u)·x / (u − 1) with u = 1 + x rounded: both are off by the same. */
const log1p = wide((e, x) => {
  const one = e.scalar(1, x!.dtype);
  const u = e.map('Add', [x!, one]);
  const [log, rest] = [e.map('Log', [u]), e.map('Sub', [u, one])];
  const mended = e.map('Mul', [log, e.map('Div', [x!, rest])]);
  const far = e.where(e.test('Equal', [rest, x!]), log, mended);
  return e.where(e.test('Equal', [rest, e.scalar(0, x!.dtype)]), x!, far);
});

/** Below 0, or −0. */
function hasSign(e: ModelEmitter, x: Val): Val {
  const zero = e.scalar(0, x.dtype);
  const isMinusZero = e.map('And', [
    e.test('Equal', [x, zero]),
    e.test('Less', [e.map('Reciprocal', [x]), zero]),
  ]);
  return e.map('Or', [e.test('Less', [x, zero]), isMinusZero]);
}

/** The angle of |y| / |x| in the first quadrant, turned over to x's side and then to y's. */
const atan2 = wide((e, y, x) => {
  const number = (value: number): Val => e.scalar(value, x!.dtype);
  const [up, right] = [e.map('Abs', [y!]), e.map('Abs', [x!])];
  const corner = e.where(e.test('Equal', [up, number(0)]), number(0), number(Math.PI / 4));
  // 0/0 and ∞/∞ have no quotient.
  const equal = e.test('Equal', [up, right]);
  const acute = e.where(equal, corner, e.map('Atan', [e.map('Div', [up, right])]));
  const half = e.where(hasSign(e, x!), e.map('Sub', [number(Math.PI), acute]), acute);
  return e.where(hasSign(e, y!), e.map('Neg', [half]), half);
});

/** Integer quotients truncate; x / 0 = x, and the least one by −1 is itself. */
function quotient(e: ModelEmitter, x: Val, y: Val, right: Node): Val {
  if (isFloat(x.dtype)) return e.map('Div', [x, y]);
  const known = constantOf(right);
  if (known !== undefined && Number(known) !== 0 && Number(known) !== -1) return e.map('Div', [x, y]);
  const found = e.map('Div', [x, divisor(e, y)]);
  if (dtypeKind(x.dtype) === 'uint') return found;
  return e.where(e.test('Equal', [y, e.scalar(-1, y.dtype)]), e.map('Sub', [e.scalar(0, x.dtype), x]), found);
}

/** y, with 1 in place of what processors refuse to divide by. */
function divisor(e: ModelEmitter, y: Val): Val {
  const zero = e.test('Equal', [y, e.scalar(0, y.dtype)]);
  const refused =
    dtypeKind(y.dtype) === 'uint' ? zero : e.map('Or', [zero, e.test('Equal', [y, e.scalar(-1, y.dtype)])]);
  return e.where(refused, e.scalar(1, y.dtype), y);
}

/**
 * `Mod` of integers has the divisor's sign, and with `fmod` may go through doubles. x mod 0 = x mod
 * ±1 = 0.
 */
function remainder(e: ModelEmitter, x: Val, y: Val): Val {
  if (isFloat(x.dtype)) return e.map('Mod', [x, y], { fmod: 1 });
  const by = divisor(e, y);
  const rest = e.map('Mod', [x, by]);
  if (dtypeKind(x.dtype) === 'uint') return rest;
  const zero = e.scalar(0, x.dtype);
  const isOpposite = e.map('Xor', [e.test('Less', [x, zero]), e.test('Less', [by, zero])]);
  const isCrossed = e.map('And', [isOpposite, e.map('Not', [e.test('Equal', [rest, zero])])]);
  return e.where(isCrossed, e.map('Sub', [rest, by]), rest);
}

/** The count lies inside of the width; undefined where it is known to. */
function isShift(e: ModelEmitter, count: Val, right: Node, bits: number): Val | undefined {
  const known = constantOf(right);
  if (known !== undefined && Number(known) >= 0 && Number(known) < bits) return undefined;
  const small = e.test('Less', [count, e.scalar(bits, count.dtype)]);
  if (dtypeKind(count.dtype) === 'uint') return small;
  return e.map('And', [small, e.test('LessOrEqual', [e.scalar(0, count.dtype), count])]);
}

/** A count past the width shifts everything out. */
function shiftOut(e: ModelEmitter, x: Val, count: Val, right: Node, direction: 'LEFT' | 'RIGHT'): Val {
  const inside = isShift(e, count, right, bitsOf(x.dtype));
  const zero = e.scalar(0, x.dtype);
  const by = inside === undefined ? count : e.where(inside, count, zero);
  const shifted = e.map('BitShift', [x, by], { direction });
  return inside === undefined ? shifted : e.where(inside, shifted, zero);
}

/** Of a negative number the complement is shifted, which has no sign. */
function shiftRight(e: ModelEmitter, x: Val, count: Val, right: Node): Val {
  if (dtypeKind(x.dtype) === 'uint') return shiftOut(e, x, count, right, 'RIGHT');
  const bits = bitsOf(x.dtype);
  const inside = isShift(e, count, right, bits);
  const by = inside === undefined ? count : e.where(inside, count, e.scalar(bits - 1, x.dtype));
  const negative = e.test('Less', [x, e.scalar(0, x.dtype)]);
  const turned = (value: Val): Val => e.where(negative, e.map('BitwiseNot', [value]), value);
  return turned(e.map('BitShift', [turned(x), by], { direction: 'RIGHT' }));
}

/** The upper half of the product, from the product in twice the bits. */
function upperHalf(e: ModelEmitter, x: Val, y: Val): Val {
  const bits = bitsOf(x.dtype);
  if (bits === 64) return upperHalfWide(e, x, y);
  const [product, shifted] = bits === 32 ? (['i64', 'u64'] as const) : (['i32', 'u32'] as const);
  const whole = e.cast(e.map('Mul', [e.cast(x, product), e.cast(y, product)]), shifted);
  return e.cast(e.map('BitShift', [whole, e.scalar(bits, shifted)], { direction: 'RIGHT' }), x.dtype);
}

/**
 * From products of 32-bit halves, as ir/interpret/random.ts has it; a negative factor counts 2⁶⁴
 * too much as an unsigned one.
 */
function upperHalfWide(e: ModelEmitter, x: Val, y: Val): Val {
  const add = (...terms: readonly Val[]): Val => terms.reduce((sum, term) => e.map('Add', [sum, term]));
  const mul = (a: Val, b: Val): Val => e.map('Mul', [a, b]);
  const low = (a: Val): Val => e.map('BitwiseAnd', [a, e.scalar(0xffff_ffffn, 'u64')]);
  const high = (a: Val): Val => e.map('BitShift', [a, e.scalar(32n, 'u64')], { direction: 'RIGHT' });
  const [a, b] = [e.cast(x, 'u64'), e.cast(y, 'u64')];
  const first = add(mul(high(a), low(b)), high(mul(low(a), low(b))));
  const second = add(mul(low(a), high(b)), low(first));
  const found = e.cast(add(mul(high(a), high(b)), high(first), high(second)), x.dtype);
  if (x.dtype === 'u64') return found;
  const zero = e.scalar(0, x.dtype);
  const excess = (factor: Val, other: Val): Val => e.where(e.test('Less', [factor, zero]), other, zero);
  return e.map('Sub', [e.map('Sub', [found, excess(x, y)]), excess(y, x)]);
}

function bitsOf(dtype: DType): number {
  return dtypeBytes(dtype) * 8;
}

/** A float as an integer: truncated, limited to the range, 0 for NaN. */
function truncated(e: ModelEmitter, x: Val, dtype: DType): Val {
  const [low, high] = integerRange(dtype);
  // The largest double below 2⁶³ or 2⁶⁴; smaller ranges are doubles themselves.
  const largest = isWide(dtype) ? Number(high) * (1 - 2 ** -53) : Number(high);
  const double = e.cast(x.dtype === 'bf16' ? e.cast(x, 'f32') : x, 'f64');
  const number = e.where(e.test('IsNaN', [double]), e.scalar(0, 'f64'), double);
  const limited = e.map('Clip', [number, e.scalar(Number(low), 'f64'), e.scalar(largest, 'f64')]);
  const whole = e.cast(limited, dtype);
  if (!isWide(dtype)) return whole;
  const beyond = e.test('Less', [e.scalar(largest, 'f64'), number]);
  return e.where(beyond, e.scalar(high, dtype), whole);
}

/** A value in another dtype, as `cast` of the graph means it. */
export function converted(e: ModelEmitter, x: Val, dtype: DType): Val {
  const isTruncated = isFloat(x.dtype) && !isFloat(dtype) && dtype !== 'bool';
  return isTruncated ? truncated(e, x, dtype) : e.cast(x, dtype);
}

const bitcast: ExportRow<'bitcast'> = ({ e, compact }, { inputs, attrs: { dtype } }) => {
  const x = compact(inputs[0]!);
  if (!isFloat(x.dtype) && !isFloat(dtype)) return e.cast(x, dtype);
  if (e.opset < 26) throw new Unspelled(`the bits of floats (BitCast is of opset 26)`);
  return e.node('BitCast', [x], { dtype, shape: x.shape }, { to: codeOf(typeOf(dtype)) });
};

/** bool has operators of its own. */
const logical = (
  ofBool: string,
  ofBits: string,
): ((scope: ExportScope, node: { readonly inputs: readonly Node[] }) => Val) =>
  binary((e, x, y) => e.map(x.dtype === 'bool' ? ofBool : ofBits, [x, y]));

/**
 * The lesser or greater; ONNX Runtime 1.30 compares 64 bits by 32 of them in `Min` and `Max`, and
 * by all in `Less`.
 */
export function extremum(e: ModelEmitter, op: 'Min' | 'Max', x: Val, y: Val): Val {
  if (x.dtype === 'bool') return e.map(op === 'Min' ? 'And' : 'Or', [x, y]);
  if (!isWide(x.dtype)) return e.map(op, [x, y]);
  const isLess = e.test('Less', [x, y]);
  return op === 'Min' ? e.where(isLess, x, y) : e.where(isLess, y, x);
}

/** What is more than an operator or the formula of the op's row: a missing row is a type error. */
const own: ExportRows<WrittenAs<'onnx'>> = {
  neg: unary((e, x) =>
    isFloat(x.dtype) || ['i8', 'i32', 'i64'].includes(x.dtype)
      ? e.map('Neg', [x])
      : e.map('Sub', [e.scalar(0, x.dtype), x]),
  ),
  sign: unary(sign),
  trunc,
  expm1,
  log2: wide((e, x) => e.map('Div', [e.map('Log', [x!]), e.scalar(Math.LN2, x!.dtype)])),
  log1p,
  not: unary((e, x) => e.map(x.dtype === 'bool' ? 'Not' : 'BitwiseNot', [x])),
  div: binary(quotient),
  mod: binary(remainder),
  min: binary((e, x, y) => extremum(e, 'Min', x, y)),
  max: binary((e, x, y) => extremum(e, 'Max', x, y)),
  atan2,
  and: logical('And', 'BitwiseAnd'),
  or: logical('Or', 'BitwiseOr'),
  xor: logical('Xor', 'BitwiseXor'),
  shl: binary((e, x, y, right) => shiftOut(e, x, y, right, 'LEFT')),
  shr: binary(shiftRight),
  mulhi: binary(upperHalf),
  ne: binary((e, x, y) => e.map('Not', [e.test('Equal', [x, y])])),
  cast: ({ e, compact }, { inputs, attrs }) => converted(e, compact(inputs[0]!), attrs.dtype),
  bitcast,
  where: ({ e, compact }, { inputs }) => {
    const [condition, x, y] = inputs.map(compact);
    return e.where(condition!, x!, y!);
  },
  // Rounded once: a product of two f32 is exact in f64.
  fma: ({ e, compact }, { inputs, dtype }) => {
    const [x, y, z] = inputs.map((input) => e.cast(compact(input), 'f64'));
    return e.cast(e.map('Add', [e.map('Mul', [x!, y!]), z!]), dtype);
  },
};

/** One operator; comparisons give bool whatever they take. */
function operator(e: ModelEmitter, op: ElementwiseOp, operands: readonly Val[]): Val {
  const name = elementwiseRows[op].onnx;
  if (name === 'formula') return expanded(e, op, operands);
  if (name === 'own') throw new CompilerBug('exportOnnx', `${op} is no operator that a formula may use`);
  return givesBool(op) ? e.test(name, operands) : e.map(name, operands);
}

/** By the op's formula; of several steps, 16-bit floats through f32. */
function expanded(e: ModelEmitter, op: ElementwiseOp, operands: readonly Val[]): Val {
  const { dtype } = operands.at(-1)!;
  const via = hasSteps(op) && (dtype === 'f16' || dtype === 'bf16') ? 'f32' : dtype;
  const args = operands.map((x) => (x.dtype === dtype ? e.cast(x, via) : x));
  const value = byFormula<Val>(op, args, {
    constant: (number) => e.scalar(number, via),
    op: (name, parts) => operator(e, name, parts),
  });
  return value.dtype === via ? e.cast(value, dtype) : value;
}

function rowOf<K extends ElementwiseOp>(op: K): ExportRow<K> {
  if (elementwiseRows[op].onnx === 'own') return own[op as WrittenAs<'onnx'>] as ExportRow<K>;
  return ({ e, compact }, { inputs }) => operator(e, op, inputs.map(compact));
}

/** Every elementwise primitive. */
export const elementwise: ExportRows<ElementwiseOp> = mapRows(rowOf) as ExportRows<ElementwiseOp>;
