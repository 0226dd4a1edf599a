// Quantised numbers: x = (q − zero) · scale, with one scale for everything, one a slice of an axis,
// or one a block. Rounding is to nearest even; integers saturate.

import { integerRange, isFloat } from '../../ir/dtype.ts';
import { sameShape } from '../../ir/shape.ts';
import * as sn from '../../operations/index.ts';
import type { Tensor } from '../../tensor/tensor.ts';
import type { Call, Rows } from '../call.ts';
import { hostType, isNarrow, type ElementType } from '../element.ts';
import { codecs } from '../narrow.ts';
import { Value } from '../value.ts';
import { converted, wantedType } from './convert.ts';
import { convolve } from './conv.ts';
import { row } from './row.ts';

/** How many blocks an axis has; one that is told by no size has as many as it has scales. */
function blocks(dim: number, block: number, given: number | undefined): number {
  return block === 0 ? (given ?? 0) : Math.ceil(dim / block);
}

/** A scale or zero in a shape that broadcasts to x. */
function spread(call: Call, x: Tensor, values: Tensor): Tensor {
  if (values.size === 1) return sn.reshape(values, []);
  const axis = call.axis(call.attributes.int('axis', 1), x.rank);
  const block = call.attributes.int('block_size', 0);
  const expected =
    values.rank === 1 && block === 0
      ? [x.shape[axis]!]
      : x.shape.map((dim, i) => (i === axis ? blocks(dim, block, values.shape[axis]) : dim));
  if (!sameShape(values.shape, expected))
    call.fail(
      `a scale or zero has the shape [${values.shape.join()}], expected [${expected.join()}] ` +
        `for x [${x.shape.join()}], axis ${axis} and block_size ${block}`,
    );
  if (values.rank === 1 && block === 0) {
    return sn.reshape(
      values,
      x.shape.map((_, i) => (i === axis ? values.size : 1)),
    );
  }
  const size = block === 0 ? Math.ceil(x.shape[axis]! / values.shape[axis]!) : block;
  return sn.narrow(sn.repeatInterleave(values, size, axis), axis, 0, x.shape[axis]!);
}

function rangeOf(type: ElementType): readonly [number, number] {
  if (isNarrow(type)) {
    const { values } = codecs[type];
    return [Math.min(...values), Math.max(...values)];
  }
  const [low, high] = integerRange(hostType(type));
  return [Number(low), Number(high)];
}

/**
 * Whole numbers (in floats) as a type of integers: those outside become its ends. The standard leaves open what NaN becomes: as
 * in ONNX Runtime it is the least number, which 0 is where there are no negative ones.
 */
function saturated(x: Tensor, type: ElementType): Value {
  const [low, high] = rangeOf(type);
  const limited = low < 0 ? sn.minimum(sn.where(sn.gt(x, low), x, low), high) : sn.clamp(x, low, high);
  return converted(sn.cast(limited, 'i32'), type);
}

function isIntegerType(type: ElementType): boolean {
  return isNarrow(type) ? type.includes('int') : !isFloat(hostType(type));
}

export function quantised(
  x: Tensor,
  scale: Tensor,
  zero: Tensor | undefined,
  type: ElementType,
  saturate = true,
): Value {
  const wide = scale.dtype === 'f64' || x.dtype === 'f64' ? 'f64' : 'f32';
  const ratio = sn.div(sn.cast(x, wide), sn.cast(scale, wide));
  if (!isIntegerType(type)) {
    const moved = zero === undefined ? ratio : sn.add(ratio, sn.cast(zero, wide));
    return converted(moved, type, { saturate });
  }
  const whole = sn.round(ratio);
  return saturated(zero === undefined ? whole : sn.add(whole, sn.cast(zero, wide)), type);
}

export function quantize(call: Call): Value {
  const x = call.tensor(0);
  const zero = call.inputs[2];
  const code = call.attributes.int('output_dtype', 0);
  if (zero !== undefined && code !== 0 && wantedType(code) !== zero.type)
    call.fail(`output_dtype is ${wantedType(code)}, and the zero is ${zero.type}`);
  const type = zero?.type ?? (code === 0 ? 'uint8' : wantedType(code));
  const saturate = call.attributes.int('saturate', 1) === 1;
  const precision = call.attributes.int('precision', 0);
  if (precision > 1 && wantedType(precision) !== call.type(1))
    call.fail(
      `attribute 'precision': ${wantedType(precision)} is not supported for scales of ${call.type(1)}`,
    );
  const zeros = zero === undefined ? undefined : spread(call, x, zero.tensor);
  return quantised(x, spread(call, x, call.tensor(1)), zeros, type, saturate);
}

export function dequantize(call: Call): Value {
  const x = call.tensor(0);
  const scale = call.value(1);
  const zero = call.optional(2);
  const code = call.attributes.int('output_dtype', 0);
  const type = code === 0 ? scale.type : wantedType(code);
  const wide = (value: Tensor): Tensor => (isFloat(value.dtype) ? value : sn.cast(value, 'i32'));
  const centred = zero === undefined ? x : sn.sub(wide(x), spread(call, x, wide(zero)));
  const compute = scale.tensor.dtype === 'f64' ? 'f64' : 'f32';
  return converted(sn.mul(sn.cast(centred, compute), sn.cast(spread(call, x, scale.tensor), compute)), type);
}

/** Bytes, with the scale and zero that fit what is there. */
export interface QuantisedBytes {
  readonly value: Value;
  readonly scale: Tensor;
  readonly zero: Value;
}

export function toBytes(x: Tensor): QuantisedBytes {
  const [low, high] = [sn.minimum(sn.amin(x), 0), sn.maximum(sn.amax(x), 0)];
  const range = sn.div(sn.sub(high, low), 255);
  // Of zeros alone: 0 / 0 would be no number.
  const scale = sn.where(sn.eq(range, 0), 1, range);
  const zero = saturated(sn.round(sn.clamp(sn.div(sn.neg(low), scale), 0, 255)), 'uint8');
  return { value: quantised(x, scale, zero.tensor, 'uint8'), scale, zero };
}

function dynamicQuantize(call: Call): (Tensor | Value)[] {
  const { value, scale, zero } = toBytes(call.tensor(0));
  return [value, scale, zero];
}

/**
 * An operand of a product without its zero: in i32, one zero for all, a row (left) or a column
 * (right).
 */
export function centred(x: Tensor, zero: Tensor | undefined, side: 'left' | 'right'): Tensor {
  const wide = sn.cast(x, 'i32');
  if (zero === undefined) return wide;
  const own = sn.cast(zero, 'i32');
  if (own.size === 1) return sn.sub(wide, sn.reshape(own, []));
  return sn.sub(wide, side === 'left' && own.rank === 1 ? sn.unsqueeze(own, 1) : own);
}

function matMulInteger(call: Call): Tensor {
  const a = centred(call.tensor(0), call.optional(2), 'left');
  return sn.matmul(a, centred(call.tensor(1), call.optional(3), 'right'));
}

/** A scale of each row or of each column, as a factor of a product. */
export function factor(scale: Tensor, side: 'left' | 'right'): Tensor {
  const wide = sn.cast(scale, 'f32');
  if (wide.size === 1) return sn.reshape(wide, []);
  return side === 'left' && wide.rank === 1 ? sn.unsqueeze(wide, 1) : wide;
}

function qLinearMatMul(call: Call): Value {
  const product = sn.matmul(
    centred(call.tensor(0), call.tensor(2), 'left'),
    centred(call.tensor(3), call.tensor(5), 'right'),
  );
  const scaled = sn.mul(
    sn.mul(sn.cast(product, 'f32'), factor(call.tensor(1), 'left')),
    factor(call.tensor(4), 'right'),
  );
  return quantised(scaled, factor(call.tensor(6), 'left'), factor(call.tensor(7), 'left'), call.type(7));
}

/** One zero or scale for each output channel of a kernel, or one for all. */
function perOutput(values: Tensor, rank: number): Tensor {
  return values.size === 1
    ? sn.reshape(values, [])
    : sn.reshape(values, [values.size, ...new Array<number>(rank - 1).fill(1)]);
}

/** The convolution of integers without their zeros, in i32. */
function convolvedIntegers(
  call: Call,
  x: Tensor,
  xZero: Tensor | undefined,
  w: Tensor,
  wZero: Tensor | undefined,
): Tensor {
  const left =
    xZero === undefined
      ? sn.cast(x, 'i32')
      : sn.sub(sn.cast(x, 'i32'), sn.cast(sn.reshape(xZero, []), 'i32'));
  const right =
    wZero === undefined
      ? sn.cast(w, 'i32')
      : sn.sub(sn.cast(w, 'i32'), sn.cast(perOutput(wZero, w.rank), 'i32'));
  return convolve(call, left, right);
}

export function qLinearConv(call: Call, x: Tensor = call.tensor(0)): Value {
  const w = call.tensor(3);
  const sum = convolvedIntegers(call, x, call.tensor(2), w, call.tensor(5));
  const bias = call.optional(8);
  const whole = bias === undefined ? sum : sn.add(sum, perOutput(bias, w.rank - 1));
  const scale = sn.mul(sn.reshape(call.tensor(1), []), perOutput(call.tensor(4), w.rank - 1));
  const [outScale, outZero] = [6, 7].map((place) => sn.reshape(call.tensor(place), []));
  return quantised(sn.mul(sn.cast(whole, 'f32'), scale), outScale!, outZero, call.type(7));
}

export const quantise: Rows = {
  ConvInteger: row([10], (call) =>
    convolvedIntegers(call, call.tensor(0), call.optional(2), call.tensor(1), call.optional(3)),
  ),
  DequantizeLinear: row([10, 13, 19, 21, 23, 24, 25], dequantize),
  DynamicQuantizeLinear: row([11], dynamicQuantize),
  MatMulInteger: row([10], matMulInteger),
  QLinearConv: row([10], (call) => qLinearConv(call)),
  QLinearMatMul: row([10, 21], qLinearMatMul),
  QuantizeLinear: row([10, 13, 19, 21, 23, 24, 25], quantize),
};
