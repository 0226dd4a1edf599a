// Writes GGUF files by pieces: the head first, then each tensor as its values come, quantised on the
// way where its type asks for that. What llama.cpp reads.

import { showValue, TensorError } from '../../errors.ts';
import * as arg from '../../ir/arguments.ts';
import { encodeBlocks } from '../../ir/blocks/encode.ts';
import { isBlockFormat } from '../../ir/blocks/format.ts';
import { packBytes } from '../../ir/value.ts';
import { nodeFiles } from '../source/source.ts';
import { unbroken } from '../source/bytes.ts';
import {
  decodeStored,
  readTable,
  storedBytes,
  unitOf,
  type ReadOptions,
  type StoredTensor,
} from '../source/stored.ts';
import { entriesOf, HeadWriter, type GgufMetadataGiven } from './entries.ts';
import { defaultAlignment, magic, tensorTypeIds, type GgufType } from './types.ts';

/** A tensor's data: values, which are brought into its type; bytes of its type; either by pieces; a tensor of a file. */
export type GgufData =
  | Float32Array
  | Uint8Array
  | StoredTensor
  | (() => AsyncIterable<Float32Array | Uint8Array> | Iterable<Float32Array | Uint8Array>);

/** A tensor to write. */
export interface GgufTensorGiven {
  readonly name: string;
  /** Row-major. */
  readonly shape: readonly number[];
  readonly type: GgufType;
  readonly data: GgufData;
}

/** What a GGUF file is to hold. */
export interface GgufContents {
  readonly metadata: GgufMetadataGiven;
  readonly tensors: Iterable<GgufTensorGiven>;
}

/** What is used of a WritableStream. */
interface ByteStream {
  getWriter(): {
    write(bytes: Uint8Array): Promise<void>;
    close(): Promise<void>;
    abort(reason: unknown): Promise<void>;
    releaseLock(): void;
  };
}

/** Where bytes go: a path (Node), a WritableStream, or anything with `write`. */
export type GgufSink = string | URL | ByteStream | { write(bytes: Uint8Array): void | Promise<void> };

const aSink: arg.Kind<GgufSink> = arg.kind(
  'a path, a WritableStream or { write }',
  (value) =>
    (typeof value === 'string' && value !== '') ||
    value instanceof URL ||
    isStream(value) ||
    (typeof value === 'object' && value !== null && 'write' in value && typeof value.write === 'function'),
);

function isStream(value: unknown): value is ByteStream {
  return typeof value === 'object' && value !== null && 'getWriter' in value;
}

const takes = arg.takes<typeof writeGguf>(
  ['the place', aSink],
  [
    'the contents',
    arg.kind<GgufContents>(
      '{ metadata, tensors }',
      (value) => typeof value === 'object' && value !== null && 'metadata' in value && 'tensors' in value,
    ),
  ],
  ['the options', arg.options<ReadOptions>(readTable)],
);

const takesFitting = arg.takes<typeof fittingType>(
  ['the type', arg.kind(`a type (${[...tensorTypeIds.keys()].join(', ')})`, (value) => isGgufType(value))],
  ['the shape', arg.listOf(arg.count(0))],
);

function isGgufType(value: unknown): value is GgufType {
  return tensorTypeIds.has(value as GgufType);
}

/** A tensor whose size is known. */
type Sized = GgufTensorGiven & { readonly bytes: number };

/**
 * Writes a GGUF file and gives its size in bytes. Values are quantised to the types that tensors ask
 * for; a file at a path takes its place whole or not at all. Rejects with E_SHAPE where rows are no
 * whole blocks or data are not what shapes ask for, E_VALUE for metadata that do not fit.
 */
export async function writeGguf(
  sink: GgufSink,
  contents: GgufContents,
  options: ReadOptions = {},
): Promise<number> {
  takes('writeGguf', sink, contents, options);
  const tensors = sized(contents.tensors);
  const [head, alignment] = headOf(contents.metadata, tensors);
  if (typeof sink === 'string' || sink instanceof URL) {
    const { openSink } = await nodeFiles('writeGguf');
    const name = String(sink);
    const file = await unbroken('writeGguf', name, () => openSink(sink));
    const write = (bytes: Uint8Array): Promise<void> => unbroken('writeGguf', name, () => file.write(bytes));
    try {
      const size = await emit(write, head, tensors, alignment, options);
      await unbroken('writeGguf', name, () => file.commit());
      return size;
    } catch (error) {
      await file.abandon();
      throw error;
    }
  }
  if (!isStream(sink)) return emit(async (bytes) => sink.write(bytes), head, tensors, alignment, options);
  const writer = sink.getWriter();
  try {
    const size = await emit((bytes) => writer.write(bytes), head, tensors, alignment, options);
    await writer.close();
    return size;
  } catch (error) {
    await writer.abort(error).catch(() => {});
    throw error;
  } finally {
    writer.releaseLock();
  }
}

/**
 * The type nearest to the one that is wanted whose blocks the rows of a shape fill: q8_0 where 256
 * values do not, f16 where 32 do not. Vectors stay f32, as readers expect.
 */
export function fittingType(wanted: GgufType, shape: readonly number[]): GgufType {
  takesFitting('fittingType', wanted, shape);
  if (shape.length < 2) return 'f32';
  const row = shape.at(-1) ?? 1;
  if (row % unitOf(wanted).values === 0) return wanted;
  return row % 32 === 0 ? 'q8_0' : 'f16';
}

function sized(tensors: Iterable<GgufTensorGiven>): readonly Sized[] {
  const names = new Set<string>();
  return Array.from(tensors, (tensor) => {
    const { name, shape, type } = tensor;
    if (typeof name !== 'string' || name === '' || names.has(name)) {
      const fault = names.has(name) ? 'is given twice' : 'is no name';
      throw new TensorError('E_VALUE', 'writeGguf', `${showValue(name)} ${fault}`);
    }
    names.add(name);
    if (!tensorTypeIds.has(type)) {
      const problem = `${name}: there is no type ${showValue(type)}`;
      throw new TensorError(
        'E_DTYPE',
        'writeGguf',
        problem,
        `one of ${[...tensorTypeIds.keys()].join(', ')}`,
      );
    }
    const bytes = shape.length > 4 ? undefined : storedBytes(type, shape);
    if (bytes === undefined) {
      const { values } = unitOf(type);
      const problem = `${name}: ${type} has rows of whole blocks of ${values} and at most 4 axes, got [${shape.join(',')}]`;
      throw new TensorError('E_SHAPE', 'writeGguf', problem, 'fittingType(type, shape)');
    }
    return { ...tensor, bytes };
  });
}

function headOf(given: GgufMetadataGiven, tensors: readonly Sized[]): readonly [Uint8Array, number] {
  const metadata = entriesOf('writeGguf', given);
  // One file is written, whatever the metadata were read from.
  for (const key of ['split.no', 'split.count', 'split.tensors.count']) metadata.delete(key);
  const asked = metadata.get('general.alignment')?.value ?? defaultAlignment;
  const alignment = Number(asked);
  if (!(alignment >= 8 && alignment <= 2 ** 20 && Number.isInteger(Math.log2(alignment)))) {
    const problem = `general.alignment must be a power of two from 8 to 2^20, got ${showValue(asked)}`;
    throw new TensorError('E_VALUE', 'writeGguf', problem);
  }
  const head = new HeadWriter();
  head.number('u32', magic);
  head.number('u32', 3);
  head.number('u64', tensors.length);
  head.number('u64', metadata.size);
  for (const [key, entry] of metadata) {
    head.string(key);
    head.entry(entry);
  }
  let offset = 0;
  for (const { name, shape, type, bytes } of tensors) {
    head.string(name);
    head.number('u32', shape.length);
    for (const dim of shape.toReversed()) head.number('u64', dim);
    head.number('u32', tensorTypeIds.get(type) ?? 0);
    head.number('u64', offset);
    offset += Math.ceil(bytes / alignment) * alignment;
  }
  head.pad(alignment);
  return [head.done(), alignment];
}

async function emit(
  write: (bytes: Uint8Array) => Promise<void>,
  head: Uint8Array,
  tensors: readonly Sized[],
  alignment: number,
  { signal, onProgress }: ReadOptions,
): Promise<number> {
  const rounded = (bytes: number): number => Math.ceil(bytes / alignment) * alignment;
  const total = tensors.reduce((sum, { bytes }) => sum + rounded(bytes), head.length);
  let loaded = 0;
  const put = async (bytes: Uint8Array): Promise<void> => {
    signal?.throwIfAborted();
    if (bytes.length === 0) return;
    await write(bytes);
    loaded += bytes.length;
    onProgress?.({ loaded, total });
  };
  await put(head);
  for (const tensor of tensors) {
    const begin = loaded;
    for await (const bytes of stored(tensor, signal)) {
      if (loaded - begin + bytes.length > tensor.bytes) throw amount(tensor, 'more');
      await put(bytes);
    }
    if (loaded - begin !== tensor.bytes) throw amount(tensor, `${loaded - begin}`);
    await put(new Uint8Array(rounded(tensor.bytes) - tensor.bytes));
  }
  return loaded;
}

function amount({ name, type, shape, bytes }: Sized, got: string): TensorError {
  return new TensorError(
    'E_SHAPE',
    'writeGguf',
    `${name}: ${type}[${shape.join(',')}] takes ${bytes} bytes, got ${got}`,
  );
}

/** A tensor's bytes by pieces, in its type. */
async function* stored(
  tensor: Sized,
  signal: AbortSignal | undefined,
): AsyncGenerator<Uint8Array, void, undefined> {
  const { name, type } = tensor;
  let rest: Float32Array = new Float32Array(0);
  for await (const given of pieces(tensor, signal)) {
    if (arg.isBytes(given)) {
      yield given;
      continue;
    }
    if (!isFloats(given)) throw notData(name, given);
    // What fills no whole block waits for the next piece.
    const joint = rest.length === 0 ? given : concat(rest, given);
    const whole = joint.length - (joint.length % unitOf(type).values);
    rest = joint.slice(whole);
    yield encoded(name, type, joint.subarray(0, whole));
  }
  if (rest.length > 0) throw amount(tensor, `${rest.length} values that fill no block`);
}

type Piece = Float32Array | Uint8Array;

/** A tensor's data as they are given: values, or bytes of its type. */
function pieces(
  { name, type, data }: Sized,
  signal: AbortSignal | undefined,
): AsyncIterable<Piece> | Iterable<Piece> {
  if (typeof data === 'function') return data();
  if (arg.isBytes(data) || isFloats(data)) return inPieces(data);
  if (typeof data !== 'object' || data === null || typeof data.chunks !== 'function')
    throw notData(name, data);
  return ofFile(data, type, signal);
}

async function* ofFile(
  tensor: StoredTensor,
  type: GgufType,
  signal: AbortSignal | undefined,
): AsyncGenerator<Piece, void, undefined> {
  for await (const { data } of tensor.chunks({ signal })) {
    yield tensor.type === type ? data : decodeStored('writeGguf', tensor.type, data);
  }
}

const piece = 2 ** 18;

/** Large arrays by pieces, so that no second copy of all of them is made at once. */
function* inPieces(data: Piece): Generator<Piece, void, undefined> {
  if (arg.isBytes(data)) yield data;
  else for (let at = 0; at < data.length; at += piece) yield data.subarray(at, at + piece);
}

function isFloats(value: unknown): value is Float32Array {
  return Object.prototype.toString.call(value) === '[object Float32Array]';
}

function concat(a: Float32Array, b: Float32Array): Float32Array {
  const out = new Float32Array(a.length + b.length);
  out.set(a);
  out.set(b, a.length);
  return out;
}

function encoded(name: string, type: GgufType, values: Float32Array): Uint8Array {
  if (isBlockFormat(type)) return encodeBlocks(type, values);
  if (type === 'f32') return new Uint8Array(values.buffer, values.byteOffset, values.byteLength);
  if (type !== 'f16' && type !== 'bf16') {
    throw new TensorError(
      'E_DTYPE',
      'writeGguf',
      `${name}: f32 values cannot be converted to ${type}`,
      'its bytes',
    );
  }
  return packBytes({ dtype: type, shape: [values.length], data: roundedTo(type, values) });
}

/** A half that is infinite where the value was not would be wrong in silence. */
function roundedTo(type: 'f16' | 'bf16', values: Float32Array): Float32Array {
  const most = type === 'f16' ? 65504 : Infinity;
  const at = values.findIndex((value) => Math.abs(value) > most && Number.isFinite(value));
  if (at < 0) return values;
  throw new TensorError(
    'E_VALUE',
    'writeGguf',
    `${values[at]} is past the largest f16, ${most}`,
    'bf16 or f32',
  );
}

function notData(name: string, value: unknown): TensorError {
  const problem = `${name}: data must be values (Float32Array), bytes, a function that gives pieces, or a tensor of a file`;
  return new TensorError('E_VALUE', 'writeGguf', `${problem}, got ${showValue(value)}`);
}
