// The public names of masked operations: `sn.masked.sum(x, 0, { mask })`.

export * from './fold.ts';
export * from './line.ts';
export type { MaskedReduceOptions, MaskOptions } from './masks.ts';
