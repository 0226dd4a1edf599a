// Type rules of ops that read or write at indices held in a tensor: gather, scatter and their kin.

import { isComplex } from '../dtype.ts';
import type { Op, ScatterMode } from '../ops.ts';
import { checkShape, fixedShape, sameShape, type FixedShape, type Shape } from '../shape.ts';
import {
  checkAxis,
  checkOrdered,
  fail,
  largestPosition,
  type TensorType,
  type TypeRule,
  type TypeRulesOf,
} from './check.ts';
import { blockValues, namesBlocks, rowWords } from '../blocks/sizes.ts';

// The type rule of what blocks stand for.

const dequantizeType: TypeRule<'dequantize'> = (inputs, { format, columns }, op) => {
  const words = inputs[0]!;
  if (!namesBlocks(format)) fail(op, 'E_VALUE', `there is no format ${String(format)}`, inputs);
  if (words.dtype !== 'u32') fail(op, 'E_DTYPE', 'blocks are words of u32', inputs);
  const values = blockValues(format);
  if (columns < 0 || columns % values !== 0)
    fail(op, 'E_SHAPE', `${columns} columns are no whole blocks of ${format}, which have ${values}`, inputs);
  const each = rowWords(format, columns);
  if (words.shape.at(-1) !== each)
    fail(op, 'E_SHAPE', `a row of ${columns} columns of ${format} takes ${each} words`, inputs);
  return { dtype: 'f32', shape: [...words.shape.slice(0, -1), columns] };
};

export const indexed: TypeRulesOf<
  | 'gather'
  | 'dequantize'
  | 'scatter'
  | 'permuteScatter'
  | 'searchSorted'
  | 'scatterAddAtomic'
  | 'segmentReduce'
> = {
  gather: (inputs, { axis }, op) => {
    const [operand, indices] = [inputs[0]!, inputs[1]!];
    checkIndexed(op, axis, operand, indices, inputs);
    return { dtype: operand.dtype, shape: indices.shape };
  },
  dequantize: dequantizeType,
  scatter: (inputs, { axis, mode }, op) => {
    const [operand, indices, updates] = [inputs[0]!, inputs[1]!, inputs[2]!];
    checkIndexed(op, axis, operand, indices, inputs);
    if (!sameShape(indices.shape, updates.shape))
      fail(op, 'E_SHAPE', 'indices and updates must have one shape', inputs);
    return scattered(op, mode, operand, updates, inputs);
  },
  permuteScatter: (inputs, { axis }, op) => {
    const [values, places] = [inputs[0]!, inputs[1]!];
    checkIndexed(op, axis, values, places, inputs);
    if (!sameShape(values.shape, places.shape))
      fail(op, 'E_SHAPE', 'values and places must have one shape', inputs);
    return values;
  },
  searchSorted: (inputs, _, op) => {
    const [boundaries, values] = [inputs[0]!, inputs[1]!];
    checkOrdered(op, inputs);
    const lead = (type: TensorType): Shape => type.shape.slice(0, -1);
    if (boundaries.dtype !== values.dtype) fail(op, 'E_DTYPE', 'operands must have one dtype', inputs);
    if (boundaries.shape.length === 0 || !sameShape(lead(boundaries), lead(values)))
      fail(op, 'E_SHAPE', 'expects [..,n] and [..,m]', inputs);
    return { dtype: 'i32', shape: values.shape };
  },
  scatterAddAtomic: (inputs, { axis, size }, op) => {
    const [indices, updates] = [inputs[0]!, inputs[1]!];
    const shape = fixedShape(indices.shape, op).map((dim, i) => (i === axis ? size : dim));
    checkShape(op, shape);
    checkIndexed(op, axis, { dtype: updates.dtype, shape }, indices, inputs);
    if (!sameShape(indices.shape, updates.shape))
      fail(op, 'E_SHAPE', 'indices and updates must have one shape', inputs);
    if (updates.dtype === 'bool') fail(op, 'E_DTYPE', 'expects numbers, not bool', inputs);
    return { dtype: updates.dtype, shape };
  },
  segmentReduce: (inputs, { axis, mode }, op) => {
    const [operand, starts, order, updates] = inputs as readonly TensorType[] as [
      TensorType,
      TensorType,
      TensorType,
      TensorType,
    ];
    checkIndexed(op, axis, operand, order, inputs);
    const more = fixedShape(operand.shape, op).map((dim, i) => (i === axis ? dim + 1 : dim));
    if (starts.dtype !== 'i32' || !sameShape(starts.shape, more) || !sameShape(order.shape, updates.shape))
      fail(op, 'E_SHAPE', `expects starts of one more along axis ${axis}, and one order an update`, inputs);
    return scattered(op, mode, operand, updates, inputs);
  },
};

/** What updates folded into an operand give. */
function scattered(
  op: Op,
  mode: ScatterMode,
  operand: TensorType,
  updates: TensorType,
  inputs: readonly TensorType[],
): TensorType {
  if (updates.dtype !== operand.dtype) fail(op, 'E_DTYPE', 'operand and updates must have one dtype', inputs);
  if (operand.dtype === 'bool' && mode !== 'set') fail(op, 'E_DTYPE', `${mode} expects numbers`, inputs);
  if (isComplex(operand.dtype) && mode !== 'set' && mode !== 'add')
    fail(op, 'E_DTYPE', `${mode} does not combine complex numbers`, inputs);
  return { dtype: operand.dtype, shape: operand.shape };
}

function checkIndexed(
  op: Op,
  axis: number,
  operand: TensorType,
  indices: TensorType,
  inputs: readonly TensorType[],
): void {
  checkAxis(op, axis, operand.shape.length, inputs);
  if (indices.dtype !== 'i32' && indices.dtype !== 'u32')
    fail(op, 'E_DTYPE', 'indices must be i32 or u32', inputs);
  const from = fixedShape(operand.shape, op);
  if (indices.dtype === 'u32' && from[axis]! - 1 > largestPosition)
    fail(op, 'E_SHAPE', `u32 indices do not reach along ${from[axis]} elements`, inputs);
  const at: FixedShape = fixedShape(indices.shape, op);
  if (from.length !== at.length || !at.every((dim, i) => i === axis || dim <= from[i]!)) {
    fail(op, 'E_SHAPE', `indices must have the operand's rank and fit it outside axis ${axis}`, inputs);
  }
}
