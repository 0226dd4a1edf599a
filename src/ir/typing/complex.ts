// Type rules of what makes complex numbers and takes them apart.

import { complexType, isComplex, partType } from '../dtype.ts';
import type { ComplexOp, Op } from '../ops.ts';
import { sameShape } from '../shape.ts';
import { fail, type TypeRulesOf, type TensorType } from './check.ts';

function complexOperand(op: Op, inputs: readonly TensorType[]): TensorType {
  const x = inputs[0]!;
  if (!isComplex(x.dtype)) fail(op, 'E_DTYPE', 'expects complex numbers', inputs);
  return x;
}

function part(inputs: readonly TensorType[], _: unknown, op: Op): TensorType {
  const { dtype, shape } = complexOperand(op, inputs);
  return { dtype: partType(dtype), shape };
}

export const complexes: TypeRulesOf<ComplexOp> = {
  complex: (inputs, _, op) => {
    const [re, im] = [inputs[0]!, inputs[1]!];
    if (re.dtype !== im.dtype || (re.dtype !== 'f32' && re.dtype !== 'f64'))
      fail(op, 'E_DTYPE', 'both parts must be f32, or both f64', inputs);
    if (!sameShape(re.shape, im.shape)) fail(op, 'E_SHAPE', 'both parts must have one shape', inputs);
    return { dtype: complexType(re.dtype), shape: re.shape };
  },
  real: part,
  imag: part,
  conj: (inputs, _, op) => complexOperand(op, inputs),
};
