// Products: matrices, sums over named axes, and those of quantised numbers.

import { isFloat } from '../../ir/dtype.ts';
import * as sn from '../../operations/index.ts';
import type { Tensor } from '../../tensor/tensor.ts';
import type { Call, Rows } from '../call.ts';
import { row } from './row.ts';

export function gemm(call: Call): Tensor {
  const { attributes } = call;
  const [a, b] = [call.tensor(0), call.tensor(1)];
  const left = attributes.int('transA', 0) === 0 ? a : sn.transpose(a);
  const right = attributes.int('transB', 0) === 0 ? b : sn.transpose(b);
  const scaled = (x: Tensor, name: string): Tensor => {
    const factor = attributes.float(name, 1);
    if (factor === 1) return x;
    return isFloat(x.dtype) ? sn.mul(x, factor) : sn.cast(sn.mul(sn.cast(x, 'f64'), factor), x.dtype);
  };
  const product = scaled(sn.matmul(left, right), 'alpha');
  const c = call.optional(2);
  return c === undefined ? product : sn.add(product, scaled(c, 'beta'));
}

function einsum(call: Call): Tensor {
  const equation = call.attributes.string('equation', '').replaceAll(/\s/g, '');
  return sn.einsum(equation, ...call.tensors());
}

export const product: Rows = {
  Einsum: row([12], einsum),
  Gemm: row([1, 6, 7, 9, 11, 13], gemm),
  MatMul: row([1, 9, 13], (call) => sn.matmul(call.tensor(0), call.tensor(1))),
};
