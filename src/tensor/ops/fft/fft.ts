// The namespace `fft`.

export * from './convolve.ts';
export * from './frequencies.ts';
export * from './transform.ts';
