// Calls of PyTorch's operators as ours: new tensors, and other dtypes of what is there.

import * as sn from '../../../../src/operations/index.ts';
import { clone } from '../../../../src/tensor/ops/shape/view.ts';
import { isDType, type DType } from '../../../../src/ir/dtype.ts';
import { Tensor } from '../../../../src/tensor/tensor.ts';
import { signature, unary, type Args, type Call, type Calls } from '../args.ts';

const cast = (dtype: DType): Call => unary((x) => sn.cast(x, dtype));
const value = (a: Args, name: string): number | boolean => {
  const given = a.raw(name);
  return typeof given === 'boolean' ? given : a.number(name);
};

export const creation: Calls = {
  // One number is the end.
  arange: signature('start, end=None, step=1, dtype=None')((a) => {
    const [start, end] = [a.number('start'), a.maybeNumber('end')];
    return sn.arange(start, end, a.number('step'), a.dtype());
  }),
  bfloat16: cast('bf16'),
  bool: cast('bool'),
  byte: cast('u8'),
  char: cast('i8'),
  clone: unary(clone),
  double: cast('f64'),
  eye: signature('n, m=None, dtype=None, requires_grad=False')((a) =>
    sn.eye(a.number('n'), a.maybeNumber('m'), a.dtype()),
  ),
  fill: signature('input, value')((a) => sn.fill(a.tensor('input'), a.operand('value'))),
  float: cast('f32'),
  full_like: signature('input, fill_value, dtype=None')((a) =>
    a.raw('fill_value') instanceof Tensor
      ? sn.fill(sn.emptyLike(a.tensor('input'), a.dtype()), a.operand('fill_value'))
      : sn.fullLike(a.tensor('input'), value(a, 'fill_value'), a.dtype()),
  ),
  half: cast('f16'),
  int: cast('i32'),
  linspace: signature('start, end, steps, dtype=None')((a) =>
    sn.linspace(a.number('start'), a.number('end'), a.number('steps'), a.dtype()),
  ),
  logspace: signature('start, end, steps, base=10, dtype=None')((a) =>
    sn.logspace(a.number('start'), a.number('end'), a.number('steps'), a.number('base'), a.dtype()),
  ),
  long: cast('i64'),
  new_full: signature('input, size, fill_value, dtype=None')((a) =>
    a.raw('fill_value') instanceof Tensor
      ? sn.fill(sn.newZeros(a.tensor('input'), a.list('size'), a.dtype()), a.operand('fill_value'))
      : sn.newFull(a.tensor('input'), a.list('size'), value(a, 'fill_value'), a.dtype()),
  ),
  new_ones: signature('input, size, dtype=None')((a) =>
    sn.newOnes(a.tensor('input'), a.list('size'), a.dtype()),
  ),
  new_zeros: signature('input, size, dtype=None')((a) =>
    sn.newZeros(a.tensor('input'), a.list('size'), a.dtype()),
  ),
  ones: signature('*size, dtype=None')((a) => sn.ones(a.list('size'), a.dtype())),
  ones_like: signature('input, dtype=None')((a) => sn.onesLike(a.tensor('input'), a.dtype())),
  short: cast('i16'),
  // `to` by a dtype, by a device and a dtype, or as another tensor is.
  to: signature('input, *how, dtype=None')((a) => {
    const how = a.raw('how');
    const parts: readonly unknown[] = Array.isArray(how) ? how : [how];
    const dtype = parts.map(dtypeOf).find((found) => found !== undefined);
    return dtype === undefined ? clone(a.tensor('input')) : sn.to(a.tensor('input'), dtype);
  }),
  tril_indices: signature('row, col, offset=0, dtype=None')((a) =>
    sn.trilIndices(a.number('row'), a.number('col'), a.options('offset', 'dtype')),
  ),
  triu_indices: signature('row, col, offset=0, dtype=None')((a) =>
    sn.triuIndices(a.number('row'), a.number('col'), a.options('offset', 'dtype')),
  ),
  zero_: unary((x) => sn.fill(x, 0)),
  zeros: signature('*size, dtype=None')((a) => sn.zeros(a.list('size'), a.dtype())),
  zeros_like: signature('input, dtype=None')((a) => sn.zerosLike(a.tensor('input'), a.dtype())),
};

/** The dtype that an argument of `to` names, as a dtype or by a tensor. */
function dtypeOf(given: unknown): DType | undefined {
  if (given instanceof Tensor) return given.dtype;
  return typeof given === 'string' && isDType(given) ? given : undefined;
}
