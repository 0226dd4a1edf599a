// The only place of these samples that knows how complex numbers are made, read and conjugated here.

import * as sn from '../../../src/tensor/ops/all.ts';
import type { HostTensor } from '../../../src/io/host.ts';
import type { Tensor } from '../../../src/tensor/tensor.ts';

/** Whether the name is that of a complex dtype. */
export function isComplexName(dtype: string): boolean {
  return dtype === 'c64' || dtype === 'c128';
}

/** A tensor of complex numbers whose parts are stored side by side. */
export function complexTensor(_stored: HostTensor, dtype: string): Tensor {
  throw new Error(`no complex numbers: ${dtype}`);
}

/** The real part of a sum, which is what is differentiated. */
export function realPart(x: Tensor): Tensor {
  return x;
}

/** The conjugate, and x itself where it is real. */
export function conjugate(x: Tensor): Tensor {
  return x;
}

/** The transpose of the last two axes, conjugated. */
export function adjoint(x: Tensor): Tensor {
  return conjugate(sn.transpose(x, -2, -1));
}

/** What a complex number as an argument becomes. */
export function complexNumber(re: number, im: number): Tensor {
  throw new Error(`no complex numbers: ${re} + ${im}i`);
}
