// Operators on each element: arithmetic, functions of real numbers, comparisons, logic and bits.

import { dtypeKind, isFloat } from '../../ir/dtype.ts';
import * as sn from '../../operations/index.ts';
import type { Tensor } from '../../tensor/tensor.ts';
import type { Call, Row, Rows } from '../call.ts';
import { row, unary } from './row.ts';

const { cast } = sn;

/** The second operand of opsets below 7, which broadcasts from an axis and only when told to. */
function aligned(call: Call, x: Tensor, y: Tensor): Tensor {
  if (call.opset >= 7 || call.attributes.int('broadcast', 0) === 0) return y;
  const axis = call.attributes.int('axis', x.rank - y.rank);
  const trailing = x.rank - axis - y.rank;
  return trailing <= 0 ? y : sn.reshape(y, [...y.shape, ...new Array<number>(trailing).fill(1)]);
}

function binary(since: readonly number[], run: (x: Tensor, y: Tensor, call: Call) => Tensor): Row {
  return row(since, (call) => {
    const x = call.tensor(0);
    return run(x, aligned(call, x, call.tensor(1)), call);
  });
}

/** Any number of operands, one after the other. */
function variadic(since: readonly number[], run: (x: Tensor, y: Tensor) => Tensor): Row {
  return row(since, (call) => call.tensors().reduce((x, y) => run(x, y)));
}

function divide(x: Tensor, y: Tensor): Tensor {
  return isFloat(x.dtype) ? sn.div(x, y) : sn.div(x, y, { rounding: 'trunc' });
}

/** The result has the base's type, whatever the exponent's. */
function power(base: Tensor, exponent: Tensor): Tensor {
  if (!isFloat(base.dtype) && isFloat(exponent.dtype)) {
    return cast(sn.pow(cast(base, exponent.dtype), exponent), base.dtype);
  }
  return sn.pow(base, cast(exponent, base.dtype));
}

function infinite(call: Call): Tensor {
  const x = call.tensor(0);
  const [up, down] = [call.attributes.int('detect_positive', 1), call.attributes.int('detect_negative', 1)];
  if (up !== 0 && down !== 0) return sn.isInf(x);
  if (up === 0 && down === 0) return sn.zeros(x.shape, { dtype: 'bool' });
  return sn.eq(x, up !== 0 ? Infinity : -Infinity);
}

function shift(call: Call): Tensor {
  const [x, y] = [call.tensor(0), call.tensor(1)];
  const isLeft = call.attributes.string('direction', 'LEFT') === 'LEFT';
  return isLeft ? sn.bitwiseLeftShift(x, y) : sn.bitwiseRightShift(x, y);
}

function clip(call: Call): Tensor {
  const x = call.tensor(0);
  // Opset 6 cuts infinities off where no bound is given.
  const largest = call.opset < 11 && call.opset >= 6 ? 3.4028234663852886e38 : undefined;
  const low = call.attributes.float('min') ?? call.optional(1) ?? (largest && -largest);
  const high = call.attributes.float('max') ?? call.optional(2) ?? largest;
  if (low === undefined && high === undefined) return x;
  return sn.clamp(x, low, high);
}

/** 0, or the sign of what is there, NaN staying NaN. */
function signum(x: Tensor): Tensor {
  return isFloat(x.dtype) ? sn.where(sn.isNan(x), x, sn.sign(x)) : sn.sign(x);
}

/** x − y·trunc(x / y) of floats under `fmod`, else with the divisor's sign. */
function modulo(x: Tensor, y: Tensor, call: Call): Tensor {
  return call.attributes.int('fmod', 0) === 1 ? sn.fmod(x, y) : sn.remainder(x, y);
}

function mean(call: Call): Tensor {
  const list = call.tensors();
  return sn.div(
    list.reduce((x, y) => sn.add(x, y)),
    list.length,
  );
}

/** Absolute values of unsigned numbers are what they are. */
function absolute(x: Tensor): Tensor {
  return dtypeKind(x.dtype) === 'uint' ? x : sn.abs(x);
}

export const elementwise: Rows = {
  Abs: unary([1, 6, 13], absolute),
  Acos: unary([7, 22], sn.acos),
  Acosh: unary([9, 22], sn.acosh),
  Add: binary([1, 6, 7, 13, 14], (x, y) => sn.add(x, y)),
  And: binary([1, 7], sn.logicalAnd),
  Asin: unary([7, 22], sn.asin),
  Asinh: unary([9, 22], sn.asinh),
  Atan: unary([7, 22], sn.atan),
  Atanh: unary([9, 22], sn.atanh),
  BitShift: row([11], shift),
  BitwiseAnd: binary([18], sn.bitwiseAnd),
  BitwiseNot: unary([18], sn.bitwiseNot),
  BitwiseOr: binary([18], sn.bitwiseOr),
  BitwiseXor: binary([18], sn.bitwiseXor),
  Ceil: unary([1, 6, 13], sn.ceil),
  Clip: row([1, 6, 11, 12, 13], clip),
  Cos: unary([7, 22], sn.cos),
  Cosh: unary([9, 22], sn.cosh),
  Div: binary([1, 6, 7, 13, 14], divide),
  Equal: binary([1, 7, 11, 13, 19], sn.eq),
  Erf: unary([9, 13], sn.erf),
  Exp: unary([1, 6, 13], sn.exp),
  Floor: unary([1, 6, 13], sn.floor),
  Greater: binary([1, 7, 9, 13], sn.gt),
  GreaterOrEqual: binary([12, 16], sn.ge),
  IsInf: row([10, 20], infinite),
  IsNaN: unary([9, 13, 20], sn.isNan),
  Less: binary([1, 7, 9, 13], sn.lt),
  LessOrEqual: binary([12, 16], sn.le),
  Log: unary([1, 6, 13], sn.log),
  Max: variadic([1, 6, 8, 12, 13], sn.maximum),
  Mean: row([1, 6, 8, 13], mean),
  Min: variadic([1, 6, 8, 12, 13], sn.minimum),
  Mod: binary([10, 13], modulo),
  Mul: binary([1, 6, 7, 13, 14], (x, y) => sn.mul(x, y)),
  Neg: unary([1, 6, 13], sn.neg),
  Not: unary([1], sn.logicalNot),
  Or: binary([1, 7], sn.logicalOr),
  Pow: binary([1, 7, 12, 13, 15], power),
  Reciprocal: unary([1, 6, 13], sn.reciprocal),
  Round: unary([11, 22], sn.round),
  Sign: unary([9, 13], signum),
  Sin: unary([7, 22], sn.sin),
  Sinh: unary([9, 22], sn.sinh),
  Sqrt: unary([1, 6, 13], sn.sqrt),
  Sub: binary([1, 6, 7, 13, 14], (x, y) => sn.sub(x, y)),
  Sum: variadic([1, 6, 8, 13], (x, y) => sn.add(x, y)),
  Tan: unary([7, 22], sn.tan),
  Where: row([9, 16], (call) => sn.where(call.tensor(0), call.tensor(1), call.tensor(2))),
  Xor: binary([1, 7], sn.logicalXor),
};
