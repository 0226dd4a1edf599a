// Calls of PyTorch's operators as ours: arithmetic and functions of single elements.

import * as sn from '../../../../src/operations/index.ts';
import type { Tensor } from '../../../../src/tensor/tensor.ts';
import { binary, signature, unary, type Calls, type Operand } from '../args.ts';

const swapped = (f: (x: Operand, y: Operand) => Tensor): ReturnType<typeof binary> =>
  binary((x, y) => f(y, x));
const rounded = signature('input, decimals=0')((a) => sn.round(a.tensor('input'), a.options('decimals')));
const quotient = signature('input, other, rounding_mode=None')((a) =>
  sn.div(a.operand('input'), a.operand('other'), a.options('rounding_mode=rounding')),
);
const scaledSum = (f: typeof sn.addcmul): ReturnType<typeof binary> =>
  signature('input, tensor1, tensor2, value=1')((a) =>
    f(a.tensor('input'), a.operand('tensor1'), a.operand('tensor2'), a.options('value')),
  );

export const elementwise: Calls = {
  __radd__: swapped(sn.add),
  __rdiv__: swapped(sn.div),
  __rmod__: swapped(sn.remainder),
  __rmul__: swapped(sn.mul),
  __rpow__: swapped(sn.pow),
  __rsub__: swapped(sn.sub),
  abs: unary(sn.abs),
  acos: unary(sn.acos),
  acosh: unary(sn.acosh),
  add: signature('input, other, alpha=1')((a) =>
    sn.add(a.operand('input'), a.operand('other'), a.options('alpha')),
  ),
  addcdiv: scaledSum(sn.addcdiv),
  addcmul: scaledSum(sn.addcmul),
  asin: unary(sn.asin),
  asinh: unary(sn.asinh),
  atan: unary(sn.atan),
  atan2: binary(sn.atan2),
  atanh: unary(sn.atanh),
  ceil: unary(sn.ceil),
  clamp: signature('input, min=None, max=None')((a) =>
    sn.clamp(a.tensor('input'), a.maybeOperand('min'), a.maybeOperand('max')),
  ),
  clamp_max: signature('input, max')((a) => sn.clampMax(a.tensor('input'), a.operand('max'))),
  clamp_min: signature('input, min')((a) => sn.clampMin(a.tensor('input'), a.operand('min'))),
  copysign: binary(sn.copysign),
  cos: unary(sn.cos),
  cosh: unary(sn.cosh),
  deg2rad: unary(sn.deg2rad),
  'div.floor_rounding': quotient,
  'div.no_rounding_mode': quotient,
  'div.trunc_rounding': quotient,
  exp: unary(sn.exp),
  exp2: unary(sn.exp2),
  expm1: unary(sn.expm1),
  float_power: binary(sn.floatPower),
  floor: unary(sn.floor),
  floor_divide: binary(sn.floorDivide),
  fmax: binary(sn.fmax),
  fmin: binary(sn.fmin),
  fmod: binary(sn.fmod),
  frac: unary(sn.frac),
  frexp: unary(sn.frexp),
  gcd: binary(sn.gcd),
  heaviside: binary(sn.heaviside),
  hypot: binary(sn.hypot),
  lcm: binary(sn.lcm),
  ldexp: binary(sn.ldexp),
  lerp: signature('input, end, weight')((a) =>
    sn.lerp(a.operand('input'), a.operand('end'), a.operand('weight')),
  ),
  log: unary(sn.log),
  log10: unary(sn.log10),
  log1p: unary(sn.log1p),
  log2: unary(sn.log2),
  logaddexp: binary(sn.logaddexp),
  logaddexp2: binary(sn.logaddexp2),
  'max.binary': binary(sn.maximum),
  maximum: binary(sn.maximum),
  'min.binary': binary(sn.minimum),
  minimum: binary(sn.minimum),
  mul: binary(sn.mul),
  nan_to_num: signature('input, nan=0, posinf=None, neginf=None')((a) =>
    sn.nanToNum(a.tensor('input'), a.options('nan', 'posinf', 'neginf')),
  ),
  neg: unary(sn.neg),
  nextafter: binary(sn.nextafter),
  positive: unary(sn.positive),
  pow: binary(sn.pow),
  rad2deg: unary(sn.rad2deg),
  reciprocal: unary(sn.reciprocal),
  remainder: binary(sn.remainder),
  round: rounded,
  'round.decimals_0': rounded,
  'round.decimals_3': rounded,
  'round.decimals_neg_3': rounded,
  rsqrt: unary(sn.rsqrt),
  rsub: signature('input, other, alpha=1')((a) =>
    sn.rsub(a.operand('input'), a.operand('other'), a.options('alpha')),
  ),
  sigmoid: unary(sn.sigmoid),
  sign: unary(sn.sign),
  sin: unary(sn.sin),
  sinh: unary(sn.sinh),
  sqrt: unary(sn.sqrt),
  square: unary(sn.square),
  sub: signature('input, other, alpha=1')((a) =>
    sn.sub(a.operand('input'), a.operand('other'), a.options('alpha')),
  ),
  tan: unary(sn.tan),
  tanh: unary(sn.tanh),
  true_divide: binary(sn.trueDivide),
  trunc: unary(sn.trunc),
};
