// Conversions between element types. Floats become integers by truncation and saturation (NaN gives
// 0), integers wrap, narrower floats round to nearest even; bool is x ≠ 0. Of complex numbers real
// dtypes keep the real part.

import { TensorError } from '../../../errors.ts';
import { cast as convert, real } from '../../../ir/build.ts';
import { dtypeBytes, isComplex, type DType } from '../../../ir/dtype.ts';
import type { Node } from '../../../ir/graph.ts';
import { expectDType, expectTensor } from '../../expect.ts';
import type { Tensor } from '../../tensor.ts';
import { apply, show } from '../operand.ts';

/** x with elements of `dtype`; x itself if it has that already. */
export function cast<T extends DType>(x: Tensor, dtype: T): Tensor<T> {
  return converted('cast', x, dtype);
}

function converted(op: string, x: Tensor, dtype: DType): Tensor {
  expectTensor(op, 'the operand', x);
  expectDType(op, dtype);
  if (x.dtype === dtype) return x;
  // As PyTorch, which warns: the imaginary part is given up.
  const drops = isComplex(x.dtype) && !isComplex(dtype) && dtype !== 'bool';
  return apply([x], (b, node) => convert(b, drops ? real(b, node) : node, dtype));
}

/** PyTorch's name for `cast`. */
export function to<T extends DType>(x: Tensor, dtype: T): Tensor<T> {
  return converted('to', x, dtype);
}

/** A cast to one dtype. */
type Conversion<T extends DType> = (x: Tensor) => Tensor<T>;

/** x in f32. */
export const toFloat: Conversion<'f32'> = (x) => converted('toFloat', x, 'f32');
/** x in f16. */
export const toHalf: Conversion<'f16'> = (x) => converted('toHalf', x, 'f16');
/** x in i32. */
export const toInt: Conversion<'i32'> = (x) => converted('toInt', x, 'i32');
/** x ≠ 0. */
export const toBool: Conversion<'bool'> = (x) => converted('toBool', x, 'bool');

/** The same bits read as another dtype of the same width. */
export function bitcast<T extends DType>(x: Tensor, dtype: T): Tensor<T> {
  expectTensor('bitcast', 'the operand', x);
  expectDType('bitcast', dtype);
  const isPacked = dtype === 'bool' || x.dtype === 'bool' || isComplex(dtype) || isComplex(x.dtype);
  if (dtypeBytes(dtype) !== dtypeBytes(x.dtype) || isPacked) {
    throw new TensorError(
      'E_DTYPE',
      'bitcast',
      `cannot read ${show(x)} as ${dtype}: widths differ, bool or complex`,
    );
  }
  return apply([x], (b, node) => b.add('bitcast', [node], { dtype }) as Node);
}
