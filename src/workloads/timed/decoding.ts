// The timed workloads of decoding (../decoding.ts), with data from seeds.

import * as sn from '../../index.ts';
import type { Tensor } from '../../index.ts';
import { blockFacts } from '../../ir/blocks/format.ts';
import {
  attendCache,
  blockMatrix,
  cached,
  decodeAttention,
  gemvQ8,
  gemvs,
  matrixBytes,
  matrixFormats,
  matrixSide,
  rowByBlocks,
  rowByMatrix,
} from '../decoding.ts';
import type { Workload } from '../workload.ts';
import { uniform } from './inputs.ts';
import { normalise, sampled, type Reference } from './references.ts';
import type { TimedWorkload } from './workload.ts';

function timed<A extends unknown[]>(
  counted: Workload,
  fn: (...args: A) => Tensor,
  args: () => [...NoInfer<A>],
  reference: () => Reference,
): TimedWorkload {
  const start: TimedWorkload['start'] = (given) => {
    const compiled = sn.compile(fn as unknown as (...args: unknown[]) => Tensor);
    return () => compiled(...given);
  };
  return { ...counted, args, start, reference, tolerance: 2e-5 };
}

function cacheData(): readonly [query: Float32Array, keys: Float32Array, values: Float32Array] {
  const { heads, features, keys } = cached;
  const size = heads * keys * features;
  return [uniform(heads * features, 64), uniform(size, 65), uniform(size, 66)];
}

/** A few heads, whole. */
function attended(): Reference {
  const { heads, features, keys: count } = cached;
  const [query, keys, values] = cacheData();
  return [0, 13, heads - 1].flatMap((head) => {
    const from = head * count * features;
    const weights = Float64Array.from({ length: count }, (_, key) => {
      let sum = 0;
      for (let f = 0; f < features; f++)
        sum += query[head * features + f]! * keys[from + key * features + f]!;
      return sum / Math.sqrt(features);
    });
    normalise(weights);
    return Array.from({ length: features }, (_, f) => {
      const value = weights.reduce(
        (sum, weight, key) => sum + weight * values[from + key * features + f]!,
        0,
      );
      return [head * features + f, value] as const;
    });
  });
}

export const decodeAttentionTimed: TimedWorkload = timed(
  decodeAttention,
  attendCache,
  () => {
    const { heads, features, keys: count } = cached;
    const [query, keys, values] = cacheData();
    return [
      sn.tensor(query, { shape: [heads, 1, features] }),
      sn.tensor(keys, { shape: [heads, count, features] }),
      sn.tensor(values, { shape: [heads, count, features] }),
    ];
  },
  attended,
);

/** Elements of the matrix are 1024ths, which every format here holds. */
function matrixData(): readonly [row: Float32Array, matrix: Float32Array] {
  const matrix = uniform(matrixSide ** 2, 68).map((value) => Math.round(1024 * value) / 1024);
  return [uniform(matrixSide, 67), matrix];
}

/** The matrix as it is kept in a format. */
function kept(matrix: Float32Array, format: 'f32' | 'f16'): Tensor {
  return sn.tensor(matrix, { shape: [matrixSide, matrixSide], dtype: format });
}

export const gemvsTimed: readonly TimedWorkload[] = matrixFormats.map(([format], i) =>
  timed(
    gemvs[i]!,
    rowByMatrix,
    () => {
      const [row, matrix] = matrixData();
      return [sn.tensor(row, { shape: [1, matrixSide] }), kept(matrix, format)];
    },
    () => {
      const [row, matrix] = matrixData();
      return sampled(matrixSide, 200, (column) =>
        row.reduce((sum, value, i) => sum + value * matrix[i * matrixSide + column]!, 0),
      );
    },
  ),
);

/** Elements of the matrix of blocks, in 128ths. */
function bytesData(): Int8Array {
  return Int8Array.from(uniform(matrixSide ** 2, 68), (value) => Math.floor(127 * value + 0.5));
}

/** 1/128 as f16. */
const scale = 0x2000;

export const gemvQ8Timed: TimedWorkload = timed(
  gemvQ8,
  rowByBlocks,
  () => {
    const steps = bytesData();
    const { values, bytes } = blockFacts.q8_0;
    const blocks = new Uint8Array(matrixBytes);
    for (let i = 0; i * values < steps.length; i++) {
      const at = i * bytes;
      new DataView(blocks.buffer).setUint16(at, scale, true);
      blocks.set(new Uint8Array(steps.buffer, i * values, values), at + 2);
    }
    return [sn.tensor(uniform(matrixSide, 67), { shape: [1, matrixSide] }), blockMatrix(blocks)];
  },
  () => {
    const [row, steps] = [uniform(matrixSide, 67), bytesData()];
    return sampled(matrixSide, 200, (output) =>
      row.reduce((sum, value, i) => sum + (value * steps[output * matrixSide + i]!) / 128, 0),
    );
  },
);
