// How weights are stored in fewer bits, and what of a graph makes numbers of them again: kernels
// read the stored form and expand it as they go. q8_0 and q4_0 are GGML's: blocks of 32 values that
// share a scale (a f16), with 8 or 4 bits each.

import { binary, broadcast, cast, constant, mul, reshape, sub } from '../ir/build.ts';
import type { DType } from '../ir/dtype.ts';
import type { GraphBuilder, Node } from '../ir/graph.ts';
import { encodeBlocks } from '../ir/blocks/encode.ts';
import { blockFacts } from '../ir/blocks/format.ts';
import { f16ToBits } from '../ir/value.ts';
import type { HostTensor } from '../io/host.ts';

export type WeightFormat = 'f32' | 'f16' | 'q8_0' | 'q4_0';

export const weightFormats: readonly WeightFormat[] = ['f32', 'f16', 'q8_0', 'q4_0'];

/** A tensor that a stored weight is made of. */
interface Part {
  /** Behind the weight's name. */
  readonly suffix: string;
  readonly dtype: DType;
  readonly shape: readonly number[];
}

const block = 32;
/** Below that, scales and expanding cost more than the bits that are saved. */
const smallestQuantised = 256;

/**
 * Whether a weight is stored in fewer bits: matrices of f32 are; biases and gains stay as they are.
 */
export function isPacked(format: WeightFormat, { dtype, shape }: Pick<Part, 'dtype' | 'shape'>): boolean {
  const size = sizeOf(shape);
  if (format === 'f32' || dtype !== 'f32' || shape.length < 2 || size < smallestQuantised) return false;
  return format === 'f16' || size % block === 0;
}

/** The tensors that a weight of this shape is stored as. */
export function partsOf(format: WeightFormat, shape: readonly number[]): readonly Part[] {
  const size = sizeOf(shape);
  switch (format) {
    case 'f32':
      return [{ suffix: '', dtype: 'f32', shape }];
    case 'f16':
      return [{ suffix: '', dtype: 'f16', shape }];
    case 'q8_0':
    case 'q4_0':
      return [
        { suffix: `.${format}`, dtype: 'u32', shape: [(size * bitsOf(format)) / 32] },
        { suffix: '.scale', dtype: 'f16', shape: [size / block] },
      ];
    default:
      return format satisfies never;
  }
}

function bitsOf(format: 'q8_0' | 'q4_0'): number {
  return format === 'q8_0' ? 8 : 4;
}

function sizeOf(shape: readonly number[]): number {
  return shape.reduce((size, extent) => size * extent, 1);
}

/** A weight's values in the order of its parts. */
export function pack(format: WeightFormat, { shape, data }: HostTensor): HostTensor[] {
  const parts = partsOf(format, shape);
  const bytes = packedBytes(format, new Float32Array(data.slice().buffer));
  return parts.map((part, i) => ({ dtype: part.dtype, shape: part.shape, data: bytes[i]! }));
}

function packedBytes(format: WeightFormat, values: Float32Array): Uint8Array[] {
  switch (format) {
    case 'f32':
      return [new Uint8Array(values.buffer)];
    case 'f16':
      return [new Uint8Array(Uint16Array.from(values, f16ToBits).buffer)];
    case 'q8_0':
    case 'q4_0': {
      // Blocks taken apart: kernels read levels, which are offset to begin at 0, as words.
      const { bytes } = blockFacts[format];
      const blocks = encodeBlocks(format, values);
      const count = blocks.length / bytes;
      const levels = new Uint8Array((values.length * bitsOf(format)) / 8);
      const scales = new Uint8Array(2 * count);
      const size = levels.length / count;
      for (let i = 0; i < count; i++) {
        const at = i * bytes;
        scales.set(blocks.subarray(at, at + 2), 2 * i);
        for (let j = 0; j < size; j++) levels[i * size + j] = storedByte(format, blocks, at + 2, j);
      }
      return [levels, scales];
    }
    default:
      return format satisfies never;
  }
}

/** Of a block's levels in the order of its values, byte `j`: GGML keeps values 16 apart in one byte. */
function storedByte(format: 'q8_0' | 'q4_0', blocks: Uint8Array, at: number, j: number): number {
  if (format === 'q8_0') return blocks[at + j]! ^ 0x80;
  const [first, second] = [blocks[at + ((2 * j) & 15)]!, blocks[at + ((2 * j + 1) & 15)]!];
  return j < 8 ? (first & 15) | ((second & 15) << 4) : (first >> 4) | (second & 0xf0);
}

/** The values of a weight, f32, from the parts that it is stored as. */
export function unpack(
  b: GraphBuilder,
  format: WeightFormat,
  parts: readonly Node[],
  shape: readonly number[],
): Node {
  const [first, scales] = parts;
  if (scales === undefined || format === 'f32' || format === 'f16') return cast(b, first!, 'f32');
  const bits = bitsOf(format);
  const [size, count] = [sizeOf(shape), 32 / bits];
  const spread = [size / count, count];
  const places = b.add('iota', [], { shape: spread, axis: 1, dtype: 'u32' }) as Node;
  const words = broadcast(b, reshape(b, first!, [size / count, 1]), spread);
  const word = (value: number): Node => broadcast(b, constant(b, value, 'u32'), spread);
  const stored = binary(
    b,
    'and',
    binary(b, 'shr', words, binary(b, 'mul', places, word(bits))),
    word(2 ** bits - 1),
  );
  const levels = reshape(b, sub(b, cast(b, stored, 'f32'), 2 ** (bits - 1)), [size / block, block]);
  const steps = broadcast(b, reshape(b, cast(b, scales, 'f32'), [size / block, 1]), [size / block, block]);
  return reshape(b, mul(b, levels, steps), shape);
}
