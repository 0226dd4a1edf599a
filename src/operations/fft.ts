// `sinter/fft`, which is `sn.fft` too. Fourier transforms, as in `torch.fft`.

export * from '../tensor/ops/fft/fft.ts';
