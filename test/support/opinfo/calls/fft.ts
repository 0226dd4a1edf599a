// Calls of PyTorch's operators as ours: Fourier transforms, and what is made of them.

import * as sn from '../../../../src/operations/index.ts';
import type { Tensor } from '../../../../src/tensor/tensor.ts';
import { signature, type Args, type Call, type Calls } from '../args.ts';

const line = (f: typeof sn.fft.fft): Call =>
  signature('input, n=None, dim=-1, norm=None')((a) => f(a.tensor('input'), a.options('n', 'dim', 'norm')));

const several = (f: typeof sn.fft.fftn): Call =>
  signature('input, s=None, dim=None, norm=None')((a) => f(a.tensor('input'), a.options('s', 'dim', 'norm')));

const shift = (f: typeof sn.fft.fftshift): Call =>
  signature('input, dim=None')((a) => f(a.tensor('input'), a.options('dim')));

const frames = ['hop_length', 'win_length', 'center', 'normalized', 'onesided'] as const;

const window = (a: Args): { window?: Tensor } => {
  const given = a.maybeTensor('window');
  return given === undefined ? {} : { window: given };
};

export const fft: Calls = {
  'fft.fft': line(sn.fft.fft),
  'fft.ifft': line(sn.fft.ifft),
  'fft.rfft': line(sn.fft.rfft),
  'fft.irfft': line(sn.fft.irfft),
  'fft.hfft': line(sn.fft.hfft),
  'fft.ihfft': line(sn.fft.ihfft),
  'fft.fft2': several(sn.fft.fft2),
  'fft.ifft2': several(sn.fft.ifft2),
  'fft.rfft2': several(sn.fft.rfft2),
  'fft.irfft2': several(sn.fft.irfft2),
  'fft.hfft2': several(sn.fft.hfft2),
  'fft.ihfft2': several(sn.fft.ihfft2),
  'fft.fftn': several(sn.fft.fftn),
  'fft.ifftn': several(sn.fft.ifftn),
  'fft.rfftn': several(sn.fft.rfftn),
  'fft.irfftn': several(sn.fft.irfftn),
  'fft.hfftn': several(sn.fft.hfftn),
  'fft.ihfftn': several(sn.fft.ihfftn),
  'fft.fftshift': shift(sn.fft.fftshift),
  'fft.ifftshift': shift(sn.fft.ifftshift),
  stft: signature(
    'input, n_fft, hop_length=None, win_length=None, window=None, center=True, pad_mode=reflect, normalized=False, onesided=None, return_complex=None',
  )((a) => {
    const spectra = sn.stft(a.tensor('input'), a.number('n_fft'), {
      ...a.options(...frames, 'pad_mode'),
      ...window(a),
    });
    // PyTorch gives pairs unless it is asked for complex numbers; of complex signals always these.
    const isComplex = sn.isComplex(a.tensor('input'));
    return a.flag('return_complex') || isComplex ? spectra : sn.viewAsReal(spectra);
  }),
  istft: signature(
    'input, n_fft, hop_length=None, win_length=None, window=None, center=True, normalized=False, onesided=None, length=None, return_complex=False',
  )((a) => {
    const given = a.tensor('input');
    // Pairs of real numbers are spectra, too.
    const spectra = sn.isComplex(given) ? given : sn.viewAsComplex(given);
    return sn.istft(spectra, a.number('n_fft'), {
      ...a.options(...frames, 'length', 'return_complex'),
      ...window(a),
    });
  }),
};
