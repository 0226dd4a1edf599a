// What the operations of `fft` take, and those of signals that are exported beside it.

import { complex, ones } from '../../../src/index.ts';
import { axes, axis, count, dtype, flag, like, meaning, number, options, t, word } from '../kinds.ts';
import type { Rows } from './operation.ts';

const x = t(2, 3);
const norm = word('backward', 'ortho', 'forward');
const line = [x, options({ n: count, dim: axis, norm })];
const several = [x, options({ s: meaning(() => [3], 'emptyList'), dim: axes, norm })];
const shift = [x, options({ dim: axes })];
const convolution = [x, x, options({ mode: word('full', 'same', 'valid'), dim: axes })];
const frequencies = [count, options({ d: number, dtype })];

/** The namespace. */
export const fftRows: Rows = {
  ...Object.fromEntries('fft ifft rfft irfft hfft ihfft'.split(' ').map((name) => [name, line])),
  ...Object.fromEntries(
    'fftn ifftn rfftn irfftn hfftn ihfftn fft2 ifft2 rfft2 irfft2 hfft2 ihfft2'
      .split(' ')
      .map((name) => [name, several]),
  ),
  convolve: convolution,
  correlate: convolution,
  fftfreq: frequencies,
  rfftfreq: frequencies,
  fftshift: shift,
  ifftshift: shift,
};

const four = like(count, () => 4);
const frames = {
  hopLength: count,
  winLength: four,
  window: t(4),
  center: flag,
  normalized: flag,
  onesided: flag,
};
const size = like(
  meaning(() => 4, 'number'),
  () => 4,
);
const shape = { periodic: flag, dtype };

/** Exported beside the namespace. */
export const signalRows: Rows = {
  stft: [t(2, 16), four, options({ ...frames, padMode: word('reflect', 'constant') })],
  istft: [
    like(t(3, 5), () => complex(ones([3, 5]), 0)),
    four,
    options({ ...frames, length: count, returnComplex: like(flag, () => false) }),
  ],
  hannWindow: [size, options(shape)],
  hammingWindow: [size, options({ ...shape, alpha: number, beta: number })],
  blackmanWindow: [size, options(shape)],
  bartlettWindow: [size, options(shape)],
  kaiserWindow: [size, options({ ...shape, beta: number })],
};
