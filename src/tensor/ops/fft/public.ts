// What is exported of Fourier transforms, of frames of signals, and of windows.

// Fourier transforms
export { type ConvolveOptions } from './convolve.ts';
export { type FrequencyOptions, type ShiftOptions } from './frequencies.ts';
export { type FftNorm, type FftnOptions, type FftOptions } from './transform.ts';
export { istft, stft, type IstftOptions, type StftOptions } from './stft.ts';
export {
  bartlettWindow,
  blackmanWindow,
  hammingWindow,
  hannWindow,
  kaiserWindow,
  type HammingOptions,
  type KaiserOptions,
  type WindowShape,
} from './windows.ts';
export * as fft from './fft.ts';
