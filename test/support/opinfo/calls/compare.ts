// Calls of PyTorch's operators as ours: comparisons, logic, bits, selection by a condition.

import * as sn from '../../../../src/operations/index.ts';
import { binary, signature, unary, type Calls } from '../args.ts';

const close = (f: typeof sn.isclose): ReturnType<typeof binary> =>
  signature('input, other, rtol=1e-5, atol=1e-8, equal_nan=False')((a) =>
    f(a.operand('input'), a.operand('other'), a.options('rtol', 'atol', 'equal_nan')),
  );

export const compare: Calls = {
  __rand__: binary(sn.bitwiseAnd),
  __ror__: binary(sn.bitwiseOr),
  __rxor__: binary(sn.bitwiseXor),
  allclose: close(sn.allclose),
  bitwise_and: binary(sn.bitwiseAnd),
  bitwise_left_shift: binary(sn.bitwiseLeftShift),
  bitwise_not: unary(sn.bitwiseNot),
  bitwise_or: binary(sn.bitwiseOr),
  bitwise_right_shift: binary(sn.bitwiseRightShift),
  bitwise_xor: binary(sn.bitwiseXor),
  eq: binary(sn.eq),
  equal: signature('input, other')((a) => sn.equal(a.tensor('input'), a.tensor('other'))),
  ge: binary(sn.ge),
  gt: binary(sn.gt),
  isclose: close(sn.isclose),
  isfinite: unary(sn.isFinite),
  isinf: unary(sn.isInf),
  isnan: unary(sn.isNan),
  isneginf: unary(sn.isneginf),
  isposinf: unary(sn.isposinf),
  le: binary(sn.le),
  logical_and: binary(sn.logicalAnd),
  logical_not: unary(sn.logicalNot),
  logical_or: binary(sn.logicalOr),
  logical_xor: binary(sn.logicalXor),
  lt: binary(sn.lt),
  ne: binary(sn.ne),
  signbit: unary(sn.signbit),
  // As the samples have it, the first operand is `self`.
};
