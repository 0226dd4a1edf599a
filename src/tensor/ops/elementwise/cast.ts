// Conversions between element types. Floats become integers by truncation and saturation (NaN gives
// 0), integers wrap, narrower floats round to nearest even; bool is x ≠ 0. Of complex numbers real
// dtypes keep the real part.

import { TensorError } from '../../../errors.ts';
import { cast as convert, real } from '../../../ir/build.ts';
import { dtypeBytes, isComplex, type DType } from '../../../ir/dtype.ts';
import type { Node } from '../../../ir/graph.ts';
import { expectDType, expectTensor } from '../../expect.ts';
import type { Tensor } from '../../tensor.ts';
import { apply, show, type Unary } from '../operand.ts';

/** x with elements of `dtype`; x itself if it has that already. */
export function cast(x: Tensor, dtype: DType): Tensor {
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
export function to(x: Tensor, dtype: DType): Tensor {
  return converted('to', x, dtype);
}

/** x in f32. */
export const toFloat: Unary = (x) => converted('toFloat', x, 'f32');
/** x in f16. */
export const toHalf: Unary = (x) => converted('toHalf', x, 'f16');
/** x in i32. */
export const toInt: Unary = (x) => converted('toInt', x, 'i32');
/** x ≠ 0. */
export const toBool: Unary = (x) => converted('toBool', x, 'bool');

/** The same bits read as another dtype of the same width. */
export function bitcast(x: Tensor, dtype: DType): Tensor {
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
