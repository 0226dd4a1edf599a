// Type rules of folds, scans and sorts along axes.

import { isComplex } from '../dtype.ts';
import { fixedShape, sameShape } from '../shape.ts';
import { type TypeRulesOf, type TensorType, fail, checkAxis, checkOrdered, checkPositions } from './check.ts';

export const folds: TypeRulesOf<
  'reduce' | 'argReduce' | 'argSort' | 'radixRank' | 'scan' | 'jacobiRows' | 'completeRows'
> = {
  reduce: (inputs, { monoid, axes }, op) => {
    const { dtype, shape } = inputs[0]!;
    axes.forEach((axis, i) => {
      checkAxis(op, axis, shape.length, inputs);
      if (i > 0 && axes[i - 1]! >= axis) fail(op, 'E_AXIS', 'axes must ascend', inputs);
    });
    const logical = monoid === 'and' || monoid === 'or';
    const ordered = monoid === 'min' || monoid === 'max';
    if (logical !== (dtype === 'bool') || (ordered && isComplex(dtype)))
      fail(op, 'E_DTYPE', `${monoid} does not reduce this dtype`, inputs);
    return { dtype, shape: shape.filter((_, axis) => !axes.includes(axis)) };
  },
  argReduce: (inputs, { axis }, op) => {
    const { shape } = inputs[0]!;
    checkOrdered(op, inputs);
    checkAxis(op, axis, shape.length, inputs);
    if (shape[axis] === 0) fail(op, 'E_SHAPE', 'no extremum of an empty axis', inputs);
    checkPositions(op, shape, axis, inputs);
    return { dtype: 'i32', shape: shape.filter((_, i) => i !== axis) };
  },
  argSort: (inputs, { axis }, op) => {
    const { shape } = inputs[0]!;
    checkOrdered(op, inputs);
    checkAxis(op, axis, shape.length, inputs);
    checkPositions(op, shape, axis, inputs);
    return { dtype: 'i32', shape };
  },
  radixRank: (inputs, { shift, digits, block }, op) => {
    const keys = inputs[0]!;
    const shape = fixedShape(keys.shape, op);
    if (keys.dtype !== 'u32' || shape.length !== 2) fail(op, 'E_DTYPE', 'expects u32 keys [lines,n]', inputs);
    const width = Math.log2(digits);
    if (!Number.isInteger(width) || shift < 0 || shift + width > 32 || !(block >= 1))
      fail(op, 'E_VALUE', `no ${digits} digits at bit ${shift} in blocks of ${block}`, inputs);
    return { dtype: 'i32', shape: [shape[0]!, Math.ceil(shape[1]! / block), digits + block] };
  },
  scan: (inputs, { axis, monoid }, op) => {
    const { dtype, shape } = inputs[0]!;
    checkAxis(op, axis, shape.length, inputs);
    const logical = monoid === 'and' || monoid === 'or';
    const ordered = monoid === 'min' || monoid === 'max';
    if (logical !== (dtype === 'bool') || (ordered && isComplex(dtype)))
      fail(op, 'E_DTYPE', `${monoid} does not scan this dtype`, inputs);
    return { dtype, shape };
  },
  jacobiRows: (inputs, { width, parts }, op) => {
    const { dtype, shape } = inputs[0]!;
    const [, , columns] = fixedShape(shape, op);
    if ((dtype !== 'f32' && dtype !== 'f64') || shape.length !== 3)
      fail(op, 'E_DTYPE', 'expects f32 or f64 rows [batch,n,columns]', inputs);
    if ((parts !== 1 && parts !== 2) || columns! % parts !== 0 || width < 0 || width * parts > columns!)
      fail(op, 'E_VALUE', `no ${width} columns of ${parts} part(s) in a row`, inputs);
    return { dtype, shape };
  },
  completeRows: (inputs, { parts }, op) => {
    const [{ dtype, shape }, missing] = inputs as readonly [TensorType, TensorType];
    const [batch, n, columns] = fixedShape(shape, op);
    if ((dtype !== 'f32' && dtype !== 'f64') || shape.length !== 3)
      fail(op, 'E_DTYPE', 'expects f32 or f64 rows [batch,n,columns]', inputs);
    if (missing.dtype !== 'bool' || !sameShape(missing.shape, [batch!, n!]))
      fail(op, 'E_SHAPE', 'expects a bool for each row', inputs);
    if ((parts !== 1 && parts !== 2) || columns! % parts !== 0 || n! > columns! / parts)
      fail(op, 'E_VALUE', `no ${n} orthonormal rows of ${parts} part(s)`, inputs);
    return { dtype, shape };
  },
};
