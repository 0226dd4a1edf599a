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

/**
 * x with elements of `dtype`; x itself if it has that already.
 *
 * @method
 * @torch torch.Tensor.to
 * @jax jnp.astype, lax.convert_element_type
 * @example
 * const x = sn.tensor([[1, -2, 3], [0.5, 4, -1]]);
 * sn.cast(x, 'f16');
 * @example <caption>bf16</caption>
 * const x = sn.tensor([[1, -2, 3], [0.5, 4, -1]]);
 * sn.cast(x, 'bf16');
 * @example <caption>f32</caption>
 * const x = sn.tensor([[1, -2, 3], [0.5, 4, -1]]);
 * sn.cast(x, 'f32');
 * @example <caption>f64</caption>
 * const x = sn.tensor([[1, -2, 3], [0.5, 4, -1]]);
 * sn.cast(x, 'f64');
 * @example <caption>i8</caption>
 * const x = sn.tensor([[1, -2, 3], [0.5, 4, -1]]);
 * sn.cast(x, 'i8');
 * @example <caption>u8</caption>
 * const x = sn.tensor([[1, -2, 3], [0.5, 4, -1]]);
 * sn.cast(x, 'u8');
 * @example <caption>i16</caption>
 * const x = sn.tensor([[1, -2, 3], [0.5, 4, -1]]);
 * sn.cast(x, 'i16');
 * @example <caption>u16</caption>
 * const x = sn.tensor([[1, -2, 3], [0.5, 4, -1]]);
 * sn.cast(x, 'u16');
 * @example <caption>i32</caption>
 * const x = sn.tensor([[1, -2, 3], [0.5, 4, -1]]);
 * sn.cast(x, 'i32');
 * @example <caption>u32</caption>
 * const x = sn.tensor([[1, -2, 3], [0.5, 4, -1]]);
 * sn.cast(x, 'u32');
 * @example <caption>i64</caption>
 * const x = sn.tensor([[1, -2, 3], [0.5, 4, -1]]);
 * sn.cast(x, 'i64');
 * @example <caption>u64</caption>
 * const x = sn.tensor([[1, -2, 3], [0.5, 4, -1]]);
 * sn.cast(x, 'u64');
 * @example <caption>bool</caption>
 * const x = sn.tensor([[1, -2, 3], [0.5, 4, -1]]);
 * sn.cast(x, 'bool');
 * @example <caption>c64</caption>
 * const x = sn.tensor([[1, -2, 3], [0.5, 4, -1]]);
 * sn.cast(x, 'c64');
 * @example <caption>c128</caption>
 * const x = sn.tensor([[1, -2, 3], [0.5, 4, -1]]);
 * sn.cast(x, 'c128');
 */
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

/**
 * PyTorch's name for `cast`.
 *
 * @method
 * @example
 * const x = sn.tensor([[1, -2, 3], [0.5, 4, -1]]);
 * sn.to(x, 'i32');
 */
export function to<T extends DType>(x: Tensor, dtype: T): Tensor<T> {
  return converted('to', x, dtype);
}

/** A cast to one dtype. */
type Conversion<T extends DType> = (x: Tensor) => Tensor<T>;

/**
 * x in f32.
 *
 * @method
 * @torch torch.Tensor.float
 * @example
 * const x = sn.tensor([[1, -2, 3], [0.5, 4, -1]]);
 * sn.toFloat(x);
 */
export const toFloat: Conversion<'f32'> = (x) => converted('toFloat', x, 'f32');
/**
 * x in f16.
 *
 * @method
 * @torch torch.Tensor.half
 * @example
 * const x = sn.tensor([[1, -2, 3], [0.5, 4, -1]]);
 * sn.toHalf(x);
 */
export const toHalf: Conversion<'f16'> = (x) => converted('toHalf', x, 'f16');
/**
 * x in i32.
 *
 * @method
 * @torch torch.Tensor.int
 * @example
 * const x = sn.tensor([[1, -2, 3], [0.5, 4, -1]]);
 * sn.toInt(x);
 */
export const toInt: Conversion<'i32'> = (x) => converted('toInt', x, 'i32');
/**
 * x ≠ 0.
 *
 * @method
 * @torch torch.Tensor.bool
 * @example
 * const x = sn.tensor([[1, -2, 3], [0.5, 4, -1]]);
 * sn.toBool(x);
 */
export const toBool: Conversion<'bool'> = (x) => converted('toBool', x, 'bool');

/**
 * The same bits read as another dtype of the same width.
 *
 * @torch torch.Tensor.view
 * @jax lax.bitcast_convert_type
 * @example
 * const i = sn.tensor([6, 3, 1], { dtype: 'i32' });
 * sn.bitcast(i, 'f32');
 */
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
