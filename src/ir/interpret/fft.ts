// Discrete Fourier transforms of host arrays: every line in double precision, rounded once. The
// table that kernels are given is not looked at.

import { transformOf } from '../fft/transform.ts';
import type { Attrs } from '../ops.ts';
import { stridesOf } from '../shape.ts';
import { emptyData, type HostArray } from '../value.ts';

/** `fft`: pairs along the last axis. */
export function fft(x: HostArray, { axis, inverse }: Attrs<'fft'>): HostArray {
  const n = x.shape[axis]!;
  const data = emptyData(x.dtype, x.data.length);
  if (data.length === 0) return { dtype: x.dtype, shape: x.shape, data };
  const transform = transformOf(n);
  const line = { re: new Float64Array(n), im: new Float64Array(n) };
  // Pairs lie `stride` apart along the axis.
  const stride = stridesOf(x.shape)[axis]!;
  for (let outer = 0; outer < data.length; outer += n * stride)
    for (let first = outer; first < outer + stride; first += 2) {
      for (let i = 0; i < n; i++) {
        line.re[i] = Number(x.data[first + i * stride]);
        line.im[i] = Number(x.data[first + i * stride + 1]);
      }
      const { re, im } = transform(line, inverse);
      for (let i = 0; i < n; i++) {
        data[first + i * stride] = re[i]!;
        data[first + i * stride + 1] = im[i]!;
      }
    }
  return { dtype: x.dtype, shape: x.shape, data };
}

/** `fftPart`: real and imaginary parts apart. */
export function fftPart(re: HostArray, im: HostArray, part: number): HostArray {
  const n = re.shape.at(-1)!;
  const data = emptyData(re.dtype, re.data.length);
  if (data.length === 0) return { dtype: re.dtype, shape: re.shape, data };
  const transform = transformOf(n);
  const partOf = (of: HostArray, first: number): Float64Array =>
    Float64Array.from({ length: n }, (_, i) => Number(of.data[first + i]));
  for (let first = 0; first < re.data.length; first += n) {
    const found = transform({ re: partOf(re, first), im: partOf(im, first) }, false);
    const wanted = part === 0 ? found.re : found.im;
    for (let i = 0; i < n; i++) data[first + i] = wanted[i]!;
  }
  return { dtype: re.dtype, shape: re.shape, data };
}
