// Block formats: how GGML stores weights in two to eight bits. A block is a run of values along the
// innermost axis that share scales; a tensor is its blocks, one behind the other.

import { TensorError } from '../../errors.ts';
import * as arg from '../arguments.ts';

/** A format that stores values in blocks, by GGML's name in lower case. */
export type BlockFormat =
  | 'q4_0'
  | 'q4_1'
  | 'q5_0'
  | 'q5_1'
  | 'q8_0'
  | 'q2_k'
  | 'q3_k'
  | 'q4_k'
  | 'q5_k'
  | 'q6_k'
  | 'iq4_nl'
  | 'iq4_xs'
  | 'mxfp4';

/** What a format's blocks are. */
export interface BlockFacts {
  /** Values a block. */
  readonly values: number;
  /** Bytes a block. */
  readonly bytes: number;
  /** What GGUF files call the format by. */
  readonly ggml: number;
}

/** Every format, by what its blocks are. */
export const blockFacts: Readonly<Record<BlockFormat, BlockFacts>> = {
  q4_0: { values: 32, bytes: 18, ggml: 2 },
  q4_1: { values: 32, bytes: 20, ggml: 3 },
  q5_0: { values: 32, bytes: 22, ggml: 6 },
  q5_1: { values: 32, bytes: 24, ggml: 7 },
  q8_0: { values: 32, bytes: 34, ggml: 8 },
  q2_k: { values: 256, bytes: 84, ggml: 10 },
  q3_k: { values: 256, bytes: 110, ggml: 11 },
  q4_k: { values: 256, bytes: 144, ggml: 12 },
  q5_k: { values: 256, bytes: 176, ggml: 13 },
  q6_k: { values: 256, bytes: 210, ggml: 14 },
  iq4_nl: { values: 32, bytes: 18, ggml: 20 },
  iq4_xs: { values: 256, bytes: 136, ggml: 23 },
  mxfp4: { values: 32, bytes: 17, ggml: 39 },
};

/** Every format's name. */
export const blockFormats: readonly BlockFormat[] = Object.keys(blockFacts) as BlockFormat[];

/** Whether a value names a format. */
export function isBlockFormat(value: unknown): value is BlockFormat {
  return typeof value === 'string' && Object.hasOwn(blockFacts, value);
}

/** Bytes of so many values. Throws E_SHAPE where they fill no whole blocks. */
export function bytesOfBlocks(op: string, format: BlockFormat, values: number): number {
  const { values: each, bytes } = blockFacts[format];
  if (values % each === 0 && Number.isSafeInteger(values) && values >= 0) return (values / each) * bytes;
  const problem = `${values} values are no whole blocks of ${format}, which have ${each}`;
  throw new TensorError('E_SHAPE', op, problem, each === 256 ? 'q8_0, whose blocks have 32 values' : 'f16');
}

/** Values that so many bytes hold. Throws E_SHAPE where they are no whole blocks. */
export function valuesOfBlocks(op: string, format: BlockFormat, length: number): number {
  const { values, bytes } = blockFacts[format];
  if (length % bytes === 0) return (length / bytes) * values;
  throw new TensorError(
    'E_SHAPE',
    op,
    `${length} bytes are no whole blocks of ${format}, which take ${bytes}`,
  );
}

/** A format's name, as an argument. */
export const aBlockFormat: arg.Kind<BlockFormat> = arg.kind(
  `a block format (${blockFormats.join(', ')})`,
  isBlockFormat,
);

/** The sixteen values of iq4_nl and iq4_xs, closer together near 0. */
export const nonlinearLevels: readonly number[] = [
  -127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113,
];

/** The sixteen values of mxfp4: twice those of a float with two bits of exponent and one of fraction. */
export const tinyFloatLevels: readonly number[] = [0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12];
