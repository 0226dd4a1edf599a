// What decoding one token of a language model reads: a cache of keys and values, and matrices that
// one row is multiplied by, in the formats in which weights are kept. Both are bound by memory.

import * as sn from '../index.ts';
import type { Tensor } from '../index.ts';
import { bytesOfBlocks } from '../ir/blocks/format.ts';
import { fromBlocks, type QuantizedTensor } from '../quant/index.ts';
import { workload, type Workload } from './workload.ts';

/** Of `decodeAttention`. */
export const cached = { heads: 32, features: 128, keys: 4096 } as const;

/** Attention of one query a head [heads, 1, features] over keys and values [heads, keys, features]. */
export function attendCache(query: Tensor, keys: Tensor, values: Tensor): Tensor {
  return sn.scaledDotProductAttention(query, keys, values);
}

export const decodeAttention: Workload = workload(
  'decodeAttention',
  'attention of one query over 4096 keys, 32 heads, 128 features',
  attendCache,
  () => {
    const { heads, features, keys } = cached;
    const cache = (): Tensor => sn.zeros([heads, keys, features]);
    return [sn.zeros([heads, 1, features]), cache(), cache()];
  },
);

/** The side of the matrix of `gemv` and its like. */
export const matrixSide = 4096;

/** A row by a matrix as it is kept, multiplied in f32. */
export function rowByMatrix(row: Tensor, matrix: Tensor): Tensor {
  return row.matmul(matrix.cast('f32'));
}

/** Formats of the matrix, and the workload of each. */
export const matrixFormats: readonly (readonly [format: 'f32' | 'f16', workload: string])[] = [
  ['f32', 'gemv'],
  ['f16', 'gemvHalf'],
];

export const gemvs: readonly Workload[] = matrixFormats.map(([dtype, name]) =>
  workload(name, `a row by a matrix of ${dtype}, 4096 × 4096`, rowByMatrix, () => [
    sn.zeros([1, matrixSide]),
    sn.zeros([matrixSide, matrixSide], { dtype }),
  ]),
);

/** A row by the rows of a matrix in blocks of a few bits, [outputs, inputs] as models keep them. */
export function rowByBlocks(row: Tensor, matrix: QuantizedTensor): Tensor {
  return row.matmul(matrix.dequantize().T);
}

/** A matrix of these blocks of q8_0. */
export function blockMatrix(blocks: Uint8Array): QuantizedTensor {
  return fromBlocks(blocks, { format: 'q8_0', shape: [matrixSide, matrixSide] });
}

export const matrixBytes: number = bytesOfBlocks('gemvQ8', 'q8_0', matrixSide ** 2);

export const gemvQ8: Workload = workload(
  'gemvQ8',
  'a row by a matrix of q8_0, 4096 × 4096',
  rowByBlocks,
  (): [Tensor, QuantizedTensor] => [sn.zeros([1, matrixSide]), blockMatrix(new Uint8Array(matrixBytes))],
);

export const gemvQ4K: Workload = workload(
  'gemvQ4K',
  'a row by a matrix of q4_k, 4096 × 4096',
  rowByBlocks,
  (): [Tensor, QuantizedTensor] => {
    const blocks = new Uint8Array(bytesOfBlocks('gemvQ4K', 'q4_k', matrixSide ** 2));
    return [
      sn.zeros([1, matrixSide]),
      fromBlocks(blocks, { format: 'q4_k', shape: [matrixSide, matrixSide] }),
    ];
  },
);
