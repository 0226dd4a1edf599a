// Type rules of ops without tensor inputs.

import type { SourceOp } from '../ops.ts';
import { integerRange, isComplex } from '../dtype.ts';
import { checkShape, fixedShape } from '../shape.ts';
import { type TypeRulesOf, fail, checkAxis } from './check.ts';

export const sources: TypeRulesOf<Exclude<SourceOp, 'rankIndex'>> = {
  parameter: (_, { dtype, shape }) => ({ dtype, shape }),
  constant: (_, { dtype }, op) => {
    if (isComplex(dtype)) fail(op, 'E_DTYPE', `${dtype} is made of two constants, by complex`, []);
    return { dtype, shape: [] };
  },
  iota: (_, { shape, axis, dtype }, op) => {
    checkShape(op, fixedShape(shape, op));
    checkAxis(op, axis, shape.length, []);
    if (dtype === 'bool' || isComplex(dtype)) fail(op, 'E_DTYPE', `${dtype} cannot count`, []);
    const last = fixedShape(shape, op)[axis]! - 1;
    if ((dtype === 'i32' || dtype === 'u32') && last > integerRange(dtype)[1])
      fail(op, 'E_VALUE', `${dtype} does not count to ${last}`, []);
    return { dtype, shape };
  },
  randomBits: (inputs, { shape }, op) => {
    checkShape(op, fixedShape(shape, op));
    if (!inputs.every((input) => input.dtype === 'u32' && input.shape.length === 0)) {
      fail(op, 'E_DTYPE', 'key and counter words must be rank-0 u32', inputs);
    }
    return { dtype: 'u32', shape };
  },
};
