// Fourier transforms, as a page loads them.

import '../methods.ts';

export { istft, stft } from '../../tensor/ops/fft/stft.ts';
export {
  bartlettWindow,
  blackmanWindow,
  hammingWindow,
  hannWindow,
  kaiserWindow,
} from '../../tensor/ops/fft/windows.ts';
export * as fft from '../../tensor/ops/fft/fft.ts';
