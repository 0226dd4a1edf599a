// The only place of these samples that knows how complex numbers are made, read and conjugated here.

import * as sn from '../../../src/operations/index.ts';
import { fromHostTensor } from '../../../src/io/tensors.ts';
import type { HostTensor } from '../../../src/io/host.ts';
import type { Tensor } from '../../../src/tensor/tensor.ts';

/** Whether the name is that of a complex dtype. */
export function isComplexName(dtype: string): dtype is 'c64' | 'c128' {
  return dtype === 'c64' || dtype === 'c128';
}

/** A tensor of complex numbers, of this shape, whose parts are stored side by side. */
export function complexTensor({ shape, data }: HostTensor, dtype: string): Tensor {
  if (!isComplexName(dtype)) throw new Error(`no complex dtype: ${dtype}`);
  return fromHostTensor({ dtype, shape, data });
}

/** The real part of a sum, which is what is differentiated. */
export function realPart(x: Tensor): Tensor {
  return sn.real(x);
}

/** The conjugate, and x itself where it is real. */
export function conjugate(x: Tensor): Tensor {
  return sn.conj(x);
}

/** The transpose of the last two axes, conjugated. */
export function adjoint(x: Tensor): Tensor {
  return sn.adjoint(x);
}

/** What a complex number as an argument becomes. */
export function complexNumber(re: number, im: number): Tensor {
  return sn.complex(re, im);
}
