// Weights of tensors that lie in files: floats come as they are, blocks of few bits as the f32 that they stand
// for. Floats can be brought into blocks on the way, by pieces.

import { SinterError } from '../../errors.ts';
import { fittingType } from '../../io/gguf/write.ts';
import { decodeStored, storedBytes, type StoredTensor, type StoredType } from '../../io/source/stored.ts';
import { encodeBlocks } from '../../ir/blocks/encode.ts';
import { isBlockFormat, type BlockFormat } from '../../ir/blocks/format.ts';
import { dtypeBytes, isFloat, type DType } from '../../ir/dtype.ts';
import type { FixedShape } from '../../ir/shape.ts';
import { fromBlockStream } from '../../quant/load.ts';
import { fromBytes } from '../../tensor/record.ts';
import type { RowRange, Weight } from '../decoder/weights.ts';
import type { QuantizeTo } from './model.ts';

interface StoredWeightOptions {
  readonly signal?: AbortSignal | undefined;
  readonly quantize?: QuantizeTo | undefined;
  /** Whether the tensors are the items of a new first axis, as experts are, instead of rows that follow each other. */
  readonly isStack?: boolean;
}

/** What a tensor of a weight, by GGUF's names, is in memory. Vectors stay as they are, and so do routers of experts, which choose by small differences. */
export function storedType(
  weight: string,
  { type, shape }: Pick<StoredTensor, 'type' | 'shape'>,
  quantize: QuantizeTo | undefined,
): StoredType {
  const isKept = quantize === undefined || isBlockFormat(type) || shape.length < 2;
  if (isKept || weight.endsWith('ffn_gate_inp.weight')) return type;
  const fitting = fittingType(quantize, shape);
  return isBlockFormat(fitting) ? fitting : type;
}

/** Bytes that a tensor takes in memory. */
export function bytesInMemory(
  weight: string,
  tensor: Pick<StoredTensor, 'type' | 'shape' | 'bytes'>,
  quantize: QuantizeTo | undefined,
): number {
  return storedBytes(storedType(weight, tensor, quantize), tensor.shape) ?? tensor.bytes;
}

/** Tensors of one type and of equal rows as one weight. Rejects with E_FORMAT where they differ, or are no floats. */
export async function storedWeight(
  what: string,
  weight: string,
  parts: readonly StoredTensor[],
  { signal, quantize, isStack = false }: StoredWeightOptions,
): Promise<Weight> {
  const [first] = parts;
  const same = parts.every(
    ({ type, shape }) =>
      type === first?.type &&
      shape.length === first.shape.length &&
      shape.every((size, i) => (i === 0 && !isStack) || size === first.shape[i]),
  );
  if (first === undefined || !same) {
    const shown = parts.map(({ name, type, shape }) => `${name} ${type}[${shape.join(',')}]`);
    throw new SinterError('E_FORMAT', `${what}: weights that belong together differ: ${shown.join(', ')}`);
  }
  const { type } = first;
  const rows = parts.reduce((sum, { shape }) => sum + (shape[0] ?? 1), 0);
  const shape = isStack
    ? [parts.length, ...first.shape]
    : first.shape.map((size, i) => (i === 0 ? rows : size));
  const to = storedType(weight, first, quantize);
  if (isBlockFormat(to)) {
    const blocks = isBlockFormat(type) ? pieces(parts, signal) : encoded(parts, to, signal);
    return fromBlockStream(blocks, { format: to, shape });
  }
  if (isBlockFormat(type) || !isFloat(type)) {
    throw new SinterError('E_FORMAT', `${what}: ${first.name} is ${type}: expected floats or blocks of them`);
  }
  // Its own memory: what a file gives may be a view of it.
  const bytes = new Uint8Array(parts.reduce((sum, part) => sum + part.bytes, 0));
  let at = 0;
  for await (const piece of pieces(parts, signal)) {
    bytes.set(piece, at);
    at += piece.length;
  }
  return fromBytes(bytes, shape as FixedShape, type);
}

/** Of tensors whose rows follow each other, those that hold rows `from` to `to` of all. */
export function withRows(tensors: readonly StoredTensor[], [from, to]: RowRange): StoredTensor[] {
  let begin = 0;
  return tensors.flatMap((tensor) => {
    const [rows = 1] = tensor.shape;
    const [first, last] = [Math.max(0, from - begin), Math.min(rows, to - begin)];
    begin += rows;
    return first < last ? [tensor.rows(first, last)] : [];
  });
}

async function* pieces(
  parts: readonly StoredTensor[],
  signal: AbortSignal | undefined,
): AsyncGenerator<Uint8Array> {
  for (const part of parts) for await (const { data } of part.chunks({ signal })) yield data;
}

/** Blocks of floats, by pieces of whole rows. */
async function* encoded(
  parts: readonly StoredTensor[],
  format: BlockFormat,
  signal: AbortSignal | undefined,
): AsyncGenerator<Uint8Array> {
  for (const part of parts) {
    const row = part.shape.at(-1)! * dtypeBytes(part.type as DType);
    const bytes = Math.max(1, Math.floor(2 ** 22 / row)) * row;
    for await (const { data } of part.chunks({ bytes, signal })) {
      yield encodeBlocks(format, decodeStored('loadModel', part.type, data));
    }
  }
}
