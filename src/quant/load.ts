// Blocks come in: as bytes, in pieces of any lengths, or made of a tensor's values. Rows are brought
// into the order that devices read as they come, so that no more than a row is held twice.

import { showShape, sizeOf, type FixedShape } from '../ir/shape.ts';
import { TensorError } from '../errors.ts';
import * as arg from '../ir/arguments.ts';
import { encodeBlocks } from '../ir/blocks/encode.ts';
import { blockFacts, blockFormats, type BlockFormat } from '../ir/blocks/format.ts';
import { rowBytes, rowWords, writeRows } from '../ir/blocks/layout.ts';
import { aTensor } from '../tensor/expect.ts';
import { fromBytes } from '../tensor/record.ts';
import type { Tensor } from '../tensor/tensor.ts';
import { QuantizedTensor } from './quantized.ts';

export interface BlockOptions {
  readonly format: BlockFormat;
  /** Of the values; the last axis is whole blocks. */
  readonly shape: readonly number[];
}

const aFormat = arg.oneOf<BlockFormat>(...blockFormats);
const someOptions = arg.settings<BlockOptions>({ format: aFormat, shape: arg.listOf(arg.count(0)) }, [
  'format',
  'shape',
]);

type Pieces = Uint8Array | Iterable<Uint8Array>;

const aSource = arg.kind<Pieces>(
  'bytes (a Uint8Array), or pieces of them in order',
  (value) => arg.isBytes(value) || (typeof value === 'object' && value !== null && Symbol.iterator in value),
);
const aStream = arg.kind<AsyncIterable<Uint8Array>>(
  'pieces of bytes that come one by one (an async iterable)',
  (value) => typeof value === 'object' && value !== null && Symbol.asyncIterator in value,
);

const takesBlocks = arg.takes<typeof fromBlocks>(['the blocks', aSource], ['options', someOptions]);
const takesStream = arg.takes<typeof fromBlockStream>(['the blocks', aStream], ['options', someOptions]);
const takesQuantize = arg.takes<typeof quantize>(['the tensor', aTensor], ['the format', aFormat]);

/** Blocks as GGUF files hold them, of one tensor; pieces may end anywhere. */
export function fromBlocks(source: Pieces, options: BlockOptions): QuantizedTensor {
  takesBlocks('fromBlocks', source, options);
  const rows = new Rows('fromBlocks', options);
  if (arg.isBytes(source)) rows.push(source);
  else for (const piece of source) rows.push(piece);
  return rows.finished();
}

/** As `fromBlocks`, of pieces that come one by one, as those of a file or a response do. */
export async function fromBlockStream(
  source: AsyncIterable<Uint8Array>,
  options: BlockOptions,
): Promise<QuantizedTensor> {
  takesStream('fromBlockStream', source, options);
  const rows = new Rows('fromBlockStream', options);
  for await (const piece of source) rows.push(piece);
  return rows.finished();
}

/** A tensor's values in blocks: each becomes the nearest that its block's few bits can say. */
export async function quantize(tensor: Tensor, format: BlockFormat): Promise<QuantizedTensor> {
  takesQuantize('quantize', tensor, format);
  const { shape, dtype } = tensor;
  if (dtype !== 'f32' && dtype !== 'f16' && dtype !== 'bf16') {
    const problem = `expects f32, f16 or bf16, got ${showShape(shape, dtype)}`;
    throw new TensorError('E_DTYPE', 'quantize', problem, "cast(x, 'f32')");
  }
  const rows = new Rows('quantize', { format, shape });
  // f16 and bf16 are read as f32 that hold their values.
  rows.push(encodeBlocks(format, (await tensor.data()) as Float32Array));
  return rows.finished();
}

/** Rows of blocks on their way into words. */
class Rows {
  readonly #op: string;
  readonly #options: BlockOptions;
  readonly #columns: number;
  /** Bytes of a row as they come. */
  readonly #each: number;
  readonly #count: number;
  readonly #words: Uint32Array<ArrayBuffer>;
  #row = 0;
  /** The beginning of a row whose end has yet to come. */
  readonly #open: Uint8Array;
  #opened = 0;

  constructor(op: string, options: BlockOptions) {
    const { format, shape } = options;
    const columns = shape.at(-1);
    const { values } = blockFacts[format];
    if (columns === undefined || columns % values !== 0) {
      const problem = `${format} has blocks of ${values} values, and rows of whole blocks: got ${showShape(shape as FixedShape)}`;
      const hint = columns !== undefined && columns % 32 === 0 ? "'q8_0', whose blocks have 32" : undefined;
      throw new TensorError('E_SHAPE', op, problem, hint);
    }
    this.#op = op;
    this.#options = options;
    this.#columns = columns;
    this.#each = rowBytes(format, columns);
    this.#count = columns === 0 ? 0 : sizeOf(shape as FixedShape) / columns;
    this.#words = new Uint32Array(sizeOf([...shape.slice(0, -1), rowWords(format, columns)]));
    this.#open = new Uint8Array(this.#each);
  }

  push(piece: Uint8Array): void {
    if (!arg.isBytes(piece)) arg.bytes.refuse(this.#op, 'a piece of the blocks', piece);
    let rest = piece;
    if (this.#opened > 0) {
      const missing = rest.subarray(0, this.#each - this.#opened);
      this.#open.set(missing, this.#opened);
      this.#opened += missing.length;
      rest = rest.subarray(missing.length);
      if (this.#opened < this.#each) return;
      this.#write(this.#open);
      this.#opened = 0;
    }
    const whole = this.#each === 0 ? 0 : rest.length - (rest.length % this.#each);
    this.#write(rest.subarray(0, whole));
    const left = rest.subarray(whole);
    if (this.#each === 0 && left.length > 0) this.#refuse('more');
    this.#open.set(left);
    this.#opened = left.length;
  }

  finished(): QuantizedTensor {
    if (this.#row < this.#count || this.#opened > 0) this.#refuse(this.#row < this.#count ? 'fewer' : 'more');
    const { format, shape } = this.#options;
    const to = [...shape.slice(0, -1), rowWords(format, this.#columns)];
    const bytes = new Uint8Array(this.#words.buffer);
    return new QuantizedTensor(fromBytes(bytes, to, 'u32') as Tensor<'u32'>, format, this.#columns);
  }

  #write(rows: Uint8Array): void {
    if (rows.length === 0) return;
    const count = rows.length / this.#each;
    if (this.#row + count > this.#count) this.#refuse('more');
    writeRows(this.#options.format, this.#columns, rows, this.#words, this.#row);
    this.#row += count;
  }

  #refuse(came: 'more' | 'fewer'): never {
    const { format, shape } = this.#options;
    const takes = this.#count * this.#each;
    const problem = `${format} [${shape.join(',')}] takes ${takes} bytes, and ${came} came`;
    throw new TensorError(
      'E_SHAPE',
      this.#op,
      problem,
      'the shape of the values, whose last axis is contiguous',
    );
  }
}
