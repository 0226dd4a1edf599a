// `sn.fft`. Fourier transforms, as in torch.fft.
// Made by `npm run operations` of the comments in src/tensor/ops.

// Fourier transforms
export {
  fft,
  fft2,
  fftn,
  hfft,
  hfft2,
  hfftn,
  ifft,
  ifft2,
  ifftn,
  ihfft,
  ihfft2,
  ihfftn,
  irfft,
  irfft2,
  irfftn,
  rfft,
  rfft2,
  rfftn,
  type FftNorm,
  type FftOptions,
  type FftnOptions,
} from '../tensor/ops/fft/transform.ts';
export {
  fftfreq,
  fftshift,
  ifftshift,
  rfftfreq,
  type FrequencyOptions,
  type ShiftOptions,
} from '../tensor/ops/fft/frequencies.ts';
export { convolve, correlate, type ConvolveOptions } from '../tensor/ops/fft/convolve.ts';
