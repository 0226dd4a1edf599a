// safetensors: 8 bytes of little-endian header length, a JSON header that names every tensor's
// dtype, shape and bytes, then the bytes, end to end. Nothing in a file is trusted: a header that
// does not describe its bytes exactly is refused.

import { ParseError, TensorError } from '../errors.ts';
import * as arg from '../ir/arguments.ts';
import { dtypeBytes, type DType } from '../ir/dtype.ts';
import { showShape } from '../ir/shape.ts';
import { checkHostTensor, entriesOf, packedBytes, packedView, showValue, type HostTensor } from './host.ts';
import type { ByteSource } from './source/bytes.ts';

/** A safetensors file's contents, tensors in the order of their bytes. */
export interface Safetensors {
  readonly tensors: Map<string, HostTensor>;
  /** The file's `__metadata__`, free text by key. */
  readonly metadata: Readonly<Record<string, string>>;
}

const names = {
  bool: 'BOOL',
  i8: 'I8',
  u8: 'U8',
  i16: 'I16',
  u16: 'U16',
  i32: 'I32',
  u32: 'U32',
  i64: 'I64',
  u64: 'U64',
  f16: 'F16',
  bf16: 'BF16',
  f32: 'F32',
  f64: 'F64',
  c64: 'C64',
  c128: undefined,
} as const satisfies Record<DType, string | undefined>;
const dtypeOf = new Map<unknown, DType>(
  Object.entries(names).flatMap(([dtype, name]) => (name === undefined ? [] : [[name, dtype as DType]])),
);

/** What the format calls a dtype; undefined for c128, which it does not have. */
export function safetensorsName(dtype: DType): string | undefined {
  return names[dtype];
}

/** The dtype that the format calls so; undefined where there is none. */
export function safetensorsDType(name: unknown): DType | undefined {
  return dtypeOf.get(name);
}

const prefix = 8;
const maxHeader = 100_000_000;
const metadataKey = '__metadata__';

const takesReadSafetensors = arg.takes<typeof readSafetensors>(['the file', arg.bytes]);

/**
 * Reads a safetensors file. Data shares memory with `bytes` where alignment allows. Throws
 * ParseError E_FORMAT.
 */
export function readSafetensors(bytes: Uint8Array): Safetensors {
  takesReadSafetensors('readSafetensors', bytes);
  const end = headerEnd(bytes.subarray(0, prefix), bytes.length);
  const { placed, metadata } = readHeader(bytes.subarray(prefix, end), end, bytes.length);
  const tensors = new Map<string, HostTensor>();
  for (const [name, { dtype, shape, begin, end }] of placed)
    tensors.set(name, { dtype, shape, data: packedView(bytes, begin, end, dtype) });
  return { tensors, metadata };
}

/** Where a tensor lies in a safetensors file: its bytes are those from `begin` up to `end` of the file. */
export interface PlacedTensor {
  readonly dtype: DType;
  readonly shape: readonly number[];
  readonly begin: number;
  readonly end: number;
}

/** Where the tensors of a safetensors file lie, of which only the header is read. Rejects with ParseError E_FORMAT, or E_IO. */
export async function placesInSafetensors({
  size,
  read,
}: ByteSource): Promise<ReadonlyMap<string, PlacedTensor>> {
  const end = headerEnd(await read(0, Math.min(prefix, size)), size);
  return readHeader(await read(prefix, end), end, size).placed;
}

/**
 * A safetensors file of `tensors`. The bytes depend on the contents only: tensors stand by falling
 * element width, then by name, which aligns each of them; the header is padded with spaces to a
 * multiple of 8 bytes.
 */
export function writeSafetensors(
  tensors: Iterable<readonly [string, HostTensor]>,
  metadata: Readonly<Record<string, string>> = {},
): Uint8Array {
  if (!arg.texts.accepts(metadata)) arg.texts.refuse('writeSafetensors', 'the metadata', metadata);
  return joinSafetensors(aligned(entriesOf('writeSafetensors', tensors)), metadata);
}

/** By falling element width, then by name: each tensor stands at a multiple of its element's bytes. */
export function aligned<T extends Pick<HostTensor, 'dtype'>>(
  tensors: readonly (readonly [string, T])[],
): (readonly [string, T])[] {
  return tensors.toSorted(
    ([a, x], [b, y]) => dtypeBytes(y.dtype) - dtypeBytes(x.dtype) || (a < b ? -1 : a > b ? 1 : 0),
  );
}

/** A safetensors file whose tensors stand in the order in which they are given. */
export function joinSafetensors(
  tensors: readonly (readonly [string, HostTensor])[],
  metadata: Readonly<Record<string, string>> = {},
): Uint8Array {
  for (const [name, tensor] of tensors) checkHostTensor('writeSafetensors', tensor, name);
  const header = safetensorsHeader('writeSafetensors', tensors, metadata);
  const size = tensors.reduce((sum, [, { data }]) => sum + data.length, 0);
  const out = new Uint8Array(header.length + size);
  out.set(header);
  let at = header.length;
  for (const [, { data }] of tensors) {
    out.set(data, at);
    at += data.length;
  }
  return out;
}

/**
 * What a safetensors file begins with, whose tensors stand in the order in which they are given: their bytes follow, end to end. Throws
 * E_VALUE for a name that is given twice, and E_DTYPE for c128, which the format does not have.
 */
export function safetensorsHeader(
  op: string,
  tensors: readonly (readonly [string, Pick<HostTensor, 'dtype' | 'shape'>])[],
  metadata: Readonly<Record<string, string>>,
): Uint8Array {
  const notes = Object.entries(metadata).sort(([a], [b]) => (a < b ? -1 : 1));
  const entries: string[] = [];
  if (notes.length > 0) {
    const pairs = notes.map(([key, value]) => `${quote(key)}:${quote(value)}`);
    entries.push(`${quote(metadataKey)}:{${pairs.join(',')}}`);
  }
  const seen = new Set([metadataKey]);
  let size = 0;
  for (const [name, { dtype, shape }] of tensors) {
    if (seen.has(name)) {
      const fault = name === metadataKey ? 'is reserved' : 'is given twice';
      throw new TensorError('E_VALUE', op, `the name ${quote(name)} ${fault}`);
    }
    seen.add(name);
    const stored = names[dtype];
    if (stored === undefined) {
      const problem = `${name}: the format has no ${dtype}`;
      throw new TensorError('E_DTYPE', op, problem, 'viewAsReal, or cast to c64');
    }
    const end = size + packedBytes(dtype, shape)!;
    // Joined by hand: an object would reorder names like `7` and lose `__proto__`.
    entries.push(`${quote(name)}:${JSON.stringify({ dtype: stored, shape, data_offsets: [size, end] })}`);
    size = end;
  }
  const header = new TextEncoder().encode(`{${entries.join(',')}}`);
  const headerBytes = Math.ceil(header.length / 8) * 8;
  if (headerBytes > maxHeader)
    throw new TensorError('E_LIMIT', op, `the header takes ${headerBytes} bytes of ${maxHeader}`);
  const out = new Uint8Array(prefix + headerBytes).fill(0x20, prefix);
  new DataView(out.buffer).setBigUint64(0, BigInt(headerBytes), true);
  out.set(header, prefix);
  return out;
}

/** Where the header ends of a file of `size` bytes that begins with these. */
function headerEnd(first: Uint8Array, size: number): number {
  if (size < prefix) throw broken(`the file ends in the header's length: ${size} of ${prefix} bytes`);
  const length = new DataView(first.buffer, first.byteOffset).getBigUint64(0, true);
  if (length > BigInt(maxHeader))
    throw broken(`the header is said to take ${length} bytes, over ${maxHeader}`);
  const end = prefix + Number(length);
  if (end > size) throw broken(`the file ends in the header: ${size - prefix} of ${length} bytes`);
  return end;
}

/** What the bytes of a header say of a file of `fileSize` bytes, whose data begin at `start`. */
function readHeader(
  bytes: Uint8Array,
  start: number,
  fileSize: number,
): { readonly placed: Map<string, PlacedTensor>; readonly metadata: Readonly<Record<string, string>> } {
  const size = fileSize - start;
  const found: (PlacedTensor & { readonly name: string })[] = [];
  let metadata: Readonly<Record<string, string>> = {};
  for (const [name, entry] of Object.entries(parseHeader(bytes))) {
    if (name === metadataKey) metadata = readMetadata(entry);
    else found.push({ name, ...readEntry(name, entry, size) });
  }
  // Sorted by place, every tensor must begin where the one before ended: no overlap, no hole,
  // nothing left over.
  found.sort((a, b) => a.begin - b.begin || a.end - b.end);
  const placed = new Map<string, PlacedTensor>();
  let reached = 0;
  for (const { name, dtype, shape, begin, end } of found) {
    if (begin !== reached) {
      const fault = begin < reached ? 'overlaps the one before' : 'leaves a hole';
      throw broken(`tensor ${quote(name)} ${fault}: it begins at byte ${begin} of the data, not ${reached}`);
    }
    placed.set(name, { dtype, shape, begin: start + begin, end: start + end });
    reached = end;
  }
  if (reached !== size) throw broken(`the tensors end at byte ${reached} of the data, which has ${size}`);
  return { placed, metadata };
}

function parseHeader(bytes: Uint8Array): Record<string, unknown> {
  let text: string;
  let header: unknown;
  try {
    text = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(new Uint8Array(bytes));
    header = JSON.parse(text);
  } catch (cause) {
    throw broken(`the header is not JSON: ${cause instanceof Error ? cause.message : String(cause)}`);
  }
  if (!isRecord(header)) throw broken('the header is not a JSON object');
  refuseDuplicateKeys(text);
  return header;
}

/** Refuses a key given twice in one object, which JSON.parse would resolve in silence. */
function refuseDuplicateKeys(text: string): void {
  const keys: Set<string>[] = [];
  let last = '';
  for (let at = 0; at < text.length; at++) {
    const char = text[at];
    if (char === '{') keys.push(new Set());
    else if (char === '}') keys.pop();
    else if (char === '"') {
      const start = at++;
      while (text[at] !== '"') at += text[at] === '\\' ? 2 : 1;
      last = text.slice(start, at + 1);
    } else if (char === ':') {
      const key = JSON.parse(last) as string;
      const siblings = keys.at(-1)!;
      if (siblings.has(key)) throw broken(`the header gives ${quote(key)} twice`);
      siblings.add(key);
    }
  }
}

function readMetadata(entry: unknown): Readonly<Record<string, string>> {
  if (!isRecord(entry)) throw broken(`${metadataKey} is not an object of strings`);
  for (const [key, value] of Object.entries(entry)) {
    if (typeof value !== 'string') throw broken(`${metadataKey}: the value of ${quote(key)} is not a string`);
  }
  return entry as Readonly<Record<string, string>>;
}

function readEntry(
  name: string,
  entry: unknown,
  size: number,
): { dtype: DType; shape: readonly number[]; begin: number; end: number } {
  const fail = (problem: string): ParseError => broken(`tensor ${quote(name)}: ${problem}`);
  if (!isRecord(entry)) throw fail('its entry is not an object');
  const dtype = dtypeOf.get(entry['dtype']);
  if (dtype === undefined) throw fail(`unknown dtype ${showValue(entry['dtype'])}`);
  const shape = entry['shape'];
  if (!isSizes(shape)) throw fail(`shape is not a list of sizes: ${showValue(shape)}`);
  const offsets = entry['data_offsets'];
  if (!isSizes(offsets) || offsets.length !== 2) {
    throw fail(`data_offsets are not two byte places: ${showValue(offsets)}`);
  }
  const [begin, end] = offsets as [number, number];
  if (begin > end || end > size) {
    throw fail(`data_offsets [${begin},${end}] are outside the data, which has ${size} bytes`);
  }
  const expected = packedBytes(dtype, shape);
  if (expected !== end - begin) {
    throw fail(`${showShape(shape, dtype)} takes ${expected ?? 'too many'} bytes, not ${end - begin}`);
  }
  return { dtype, shape, begin, end };
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function isSizes(value: unknown): value is readonly number[] {
  return (
    Array.isArray(value) &&
    value.every((size) => Number.isSafeInteger(size) && size >= 0 && !Object.is(size, -0))
  );
}

function quote(text: string): string {
  return JSON.stringify(text);
}

function broken(problem: string): ParseError {
  return new ParseError('E_FORMAT', 'safetensors', problem);
}
