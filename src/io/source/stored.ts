// Tensors that lie in files: their names, shapes and types are known, their bytes are read when they
// are asked for, by pieces if wanted. What GGUF and safetensors files have in common.

import { TensorError } from '../../errors.ts';
import * as arg from '../../ir/arguments.ts';
import { decodeBlocks } from '../../ir/blocks/decode.ts';
import { blockFacts, isBlockFormat, type BlockFormat } from '../../ir/blocks/format.ts';
import { dtypeBytes, isComplex, type DType } from '../../ir/dtype.ts';
import { unpackBytes } from '../../ir/value.ts';
import { packedBytes } from '../host.ts';
import { aSignal, type ByteSource } from './bytes.ts';

/** How a tensor is stored: an element type, or a format of blocks. */
export type StoredType = DType | BlockFormat;

/** How far reading has come, in bytes. */
export interface ReadProgress {
  readonly loaded: number;
  readonly total: number;
}

/** What reading takes: a signal that stops it, and a function that is told how far it has come. */
export interface ReadOptions {
  /** Ends the reading, with the signal's reason; none by default. */
  readonly signal?: AbortSignal | undefined;
  /** Told of the bytes that have come; none by default. */
  readonly onProgress?: ((progress: ReadProgress) => void) | undefined;
}

/** What reading by pieces takes besides: the size of a piece, 4 MiB by default, cut to whole elements or blocks. */
export interface ChunkOptions extends ReadOptions {
  /** Bytes of a chunk; 4 MiB by default. */
  readonly bytes?: number | undefined;
}

/** A run of a tensor's bytes: whole elements or blocks. */
export interface StoredChunk {
  /** Where in the tensor it begins, in bytes. */
  readonly offset: number;
  readonly data: Uint8Array;
}

/** A tensor in a file. */
export interface StoredTensor {
  readonly name: string;
  /** Row-major: the innermost axis is the last one. */
  readonly shape: readonly number[];
  readonly type: StoredType;
  /** Bytes that it takes. */
  readonly bytes: number;
  /** All its bytes. They may share memory with the file’s and must not be changed. */
  read(options?: ReadOptions): Promise<Uint8Array>;
  /** Its bytes by pieces, of which two are held at a time. */
  chunks(options?: ChunkOptions): AsyncGenerator<StoredChunk, void, undefined>;
  /** Its values, decoded. Rejects with E_DTYPE for integers and f64, which f32 does not hold. */
  values(options?: ReadOptions): Promise<Float32Array>;
  /** Indices `from` to `to` (exclusive) of its first axis as a tensor. Throws E_VALUE outside of the axis. */
  rows(from: number, to: number): StoredTensor;
}

/** Tensors by name, in a file or several. */
export interface TensorFile {
  readonly tensors: ReadonlyMap<string, StoredTensor>;
  /** Gives back what is open; tensors cannot be read afterwards. */
  close(): Promise<void>;
}

/** Bytes of an element or a block, and how many values those are. */
export function unitOf(type: StoredType): { readonly bytes: number; readonly values: number } {
  return isBlockFormat(type) ? blockFacts[type] : { bytes: dtypeBytes(type), values: 1 };
}

/**
 * Bytes of a tensor; undefined where its rows are no whole blocks, or it is past exact counting.
 */
export function storedBytes(type: StoredType, shape: readonly number[]): number | undefined {
  if (!isBlockFormat(type)) return packedBytes(type, shape);
  const { values, bytes } = blockFacts[type];
  const row = shape.at(-1);
  if (row === undefined || row % values !== 0) return undefined;
  return packedBytes('u8', [...shape.slice(0, -1), (row / values) * bytes]);
}

/** The values of stored bytes as f32. Throws E_DTYPE for types that f32 does not hold. */
export function decodeStored(op: string, type: StoredType, data: Uint8Array): Float32Array {
  if (isBlockFormat(type)) return decodeBlocks(type, data);
  if (isComplex(type) || !(type === 'f32' || type === 'f16' || type === 'bf16')) {
    throw new TensorError(
      'E_DTYPE',
      op,
      `f32 does not hold what ${type} does`,
      'read(), the bytes themselves',
    );
  }
  return unpackBytes(data, type, [data.length / dtypeBytes(type)]).data as Float32Array;
}

const chunkSize = 4 * 2 ** 20;

/** What reading takes, as kinds. */
export const readTable: arg.Table<ReadOptions> = {
  signal: aSignal,
  onProgress: arg.callable<(progress: ReadProgress) => void>(),
};

const takesRead = arg.takes<(options?: ReadOptions) => void>([
  'the options',
  arg.options<ReadOptions>(readTable),
]);
const takesChunks = arg.takes<(options?: ChunkOptions) => void>([
  'the options',
  arg.options<ChunkOptions>({ ...readTable, bytes: arg.count(1) }),
]);

/** A tensor whose bytes begin at `begin` of a source. */
export function storedTensor(
  op: string,
  source: ByteSource,
  facts: Pick<StoredTensor, 'name' | 'shape' | 'type' | 'bytes'>,
  begin: number,
): StoredTensor {
  const { bytes, type } = facts;
  const piece = async (from: number, to: number, signal: AbortSignal | undefined): Promise<StoredChunk> => {
    signal?.throwIfAborted();
    return { offset: from, data: await source.read(begin + from, begin + to, signal) };
  };
  async function* chunks(options: ChunkOptions = {}): AsyncGenerator<StoredChunk, void, undefined> {
    takesChunks(`${op}.chunks`, options);
    const { signal, onProgress, bytes: wanted = chunkSize } = options;
    const unit = unitOf(type).bytes;
    const step = Math.max(1, Math.floor(wanted / unit)) * unit;
    // One piece ahead, so that the place is not idle while the one before is worked on.
    let next: Promise<StoredChunk> | undefined;
    const ask = (from: number): Promise<StoredChunk> | undefined => {
      if (from >= bytes) return undefined;
      const asked = piece(from, Math.min(from + step, bytes), signal);
      // Reported when it is awaited; who stops before that shall not hear of it as unhandled.
      asked.catch(() => {});
      return asked;
    };
    next = ask(0);
    while (next !== undefined) {
      const chunk: StoredChunk = await next;
      next = ask(chunk.offset + step);
      yield chunk;
      signal?.throwIfAborted();
      onProgress?.({ loaded: chunk.offset + chunk.data.length, total: bytes });
    }
  }
  const read = async (options: ReadOptions = {}): Promise<Uint8Array> => {
    takesRead(`${op}.read`, options);
    const { onProgress, ...rest } = options;
    if (onProgress === undefined) return (await piece(0, bytes, rest.signal)).data;
    const out = new Uint8Array(bytes);
    for await (const { offset, data } of chunks(options)) out.set(data, offset);
    return out;
  };
  const values = async (options: ReadOptions = {}): Promise<Float32Array> => {
    takesRead(`${op}.values`, options);
    return decodeStored(`${op}.values`, type, await read(options));
  };
  const rows = (from: number, to: number): StoredTensor => {
    const [all = 1, ...rest] = facts.shape;
    if (![from, to].every(Number.isSafeInteger) || from < 0 || to < from || to > all) {
      const problem = `rows ${from} to ${to} of ${facts.name}, which has ${all}`;
      throw new TensorError('E_VALUE', `${op}.rows`, problem);
    }
    const row = all === 0 ? 0 : bytes / all;
    const part = { ...facts, shape: [to - from, ...rest], bytes: (to - from) * row };
    return storedTensor(op, source, part, begin + from * row);
  };
  return Object.freeze({ ...facts, read, chunks, values, rows });
}
