// Type rules of products and convolutions.

import { fixedShape, sameDim } from '../shape.ts';
import { type TypeRulesOf, fail, checkAxis, checkLengths, windowCount } from './check.ts';

export const contractions: TypeRulesOf<'dot' | 'conv'> = {
  dot: (inputs, { lhsBatch, rhsBatch, lhsContract, rhsContract, dtype }, op) => {
    const [lhs, rhs] = [inputs[0]!, inputs[1]!];
    if (lhs.dtype !== rhs.dtype) fail(op, 'E_DTYPE', 'operands must have one dtype', inputs);
    if (lhs.dtype === 'bool') fail(op, 'E_DTYPE', 'bool has no dot product', inputs);
    if (lhsBatch.length !== rhsBatch.length || lhsContract.length !== rhsContract.length) {
      fail(op, 'E_AXIS', 'batch and contracting axes must come in pairs', inputs);
    }
    const usedL = [...lhsBatch, ...lhsContract];
    const usedR = [...rhsBatch, ...rhsContract];
    usedL.forEach((axis) => checkAxis(op, axis, lhs.shape.length, inputs));
    usedR.forEach((axis) => checkAxis(op, axis, rhs.shape.length, inputs));
    if (new Set(usedL).size !== usedL.length || new Set(usedR).size !== usedR.length) {
      fail(op, 'E_AXIS', 'an axis is used twice', inputs);
    }
    if (!usedL.every((axis, i) => sameDim(lhs.shape[axis]!, rhs.shape[usedR[i]!]!))) {
      fail(
        op,
        'E_SHAPE',
        `paired axes differ in size (lhs ${usedL.join(',')}, rhs ${usedR.join(',')})`,
        inputs,
      );
    }
    const freeL = lhs.shape.filter((_, axis) => !usedL.includes(axis));
    const freeR = rhs.shape.filter((_, axis) => !usedR.includes(axis));
    return { dtype, shape: [...lhsBatch.map((axis) => lhs.shape[axis]!), ...freeL, ...freeR] };
  },
  conv: (inputs, attrs, op) => {
    const [lhs, rhs] = [inputs[0]!, inputs[1]!];
    const [x, w] = [fixedShape(lhs.shape, op), fixedShape(rhs.shape, op)];
    const spatial = x.length - 2;
    if (lhs.dtype !== rhs.dtype || lhs.dtype === 'bool')
      fail(op, 'E_DTYPE', 'operands must have one number dtype', inputs);
    if (spatial < 0 || w.length !== x.length)
      fail(op, 'E_SHAPE', 'expects [N,C,S…] and [O,C/groups,K…]', inputs);
    const { strides, padLow, padHigh, lhsDilation, rhsDilation, groups } = attrs;
    checkLengths(op, spatial, [strides, padLow, padHigh, lhsDilation, rhsDilation], inputs);
    if (![...strides, ...lhsDilation, ...rhsDilation, groups].every((n) => n >= 1)) {
      fail(op, 'E_VALUE', 'strides, dilations and groups must be at least 1', inputs);
    }
    if (x[1] !== w[1]! * groups || w[0]! % groups !== 0) {
      fail(op, 'E_SHAPE', `channels do not fit ${groups} group(s)`, inputs);
    }
    const out = strides.map((stride, i) => {
      const size = x[i + 2]!;
      const dilated = size === 0 ? 0 : (size - 1) * lhsDilation[i]! + 1;
      return windowCount(dilated + padLow[i]! + padHigh[i]!, w[i + 2]!, stride, rhsDilation[i]!);
    });
    return { dtype: lhs.dtype, shape: [x[0]!, w[0]!, ...out] };
  },
};
