// safetensors: 8 bytes of little-endian header length, a JSON header that names every tensor's
// dtype, shape and bytes, then the bytes, end to end. Nothing in a file is trusted: a header that
// does not describe its bytes exactly is refused.

import { ParseError, TensorError } from '../errors.ts';
import * as arg from '../ir/arguments.ts';
import { dtypeBytes, type DType } from '../ir/dtype.ts';
import { showShape } from '../ir/shape.ts';
import { checkHostTensor, entriesOf, packedBytes, packedView, showValue, type HostTensor } from './host.ts';

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
  const [header, start] = readHeader(bytes);
  const size = bytes.length - start;
  const placed: { name: string; dtype: DType; shape: readonly number[]; begin: number; end: number }[] = [];
  let metadata: Readonly<Record<string, string>> = {};
  for (const [name, entry] of Object.entries(header)) {
    if (name === metadataKey) metadata = readMetadata(entry);
    else placed.push({ name, ...readEntry(name, entry, size) });
  }
  // Sorted by place, every tensor must begin where the one before ended: no overlap, no hole,
  // nothing left over.
  placed.sort((a, b) => a.begin - b.begin || a.end - b.end);
  const tensors = new Map<string, HostTensor>();
  let reached = 0;
  for (const { name, dtype, shape, begin, end } of placed) {
    if (begin !== reached) {
      const fault = begin < reached ? 'overlaps the one before' : 'leaves a hole';
      throw broken(`tensor ${quote(name)} ${fault}: it begins at byte ${begin} of the data, not ${reached}`);
    }
    tensors.set(name, { dtype, shape, data: packedView(bytes, start + begin, start + end, dtype) });
    reached = end;
  }
  if (reached !== size) throw broken(`the tensors end at byte ${reached} of the data, which has ${size}`);
  return { tensors, metadata };
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
  const sorted = entriesOf('writeSafetensors', tensors).sort(
    ([a, x], [b, y]) => dtypeBytes(y.dtype) - dtypeBytes(x.dtype) || (a < b ? -1 : a > b ? 1 : 0),
  );
  return joinSafetensors(sorted, metadata);
}

/** A safetensors file whose tensors stand in the order in which they are given. */
export function joinSafetensors(
  tensors: readonly (readonly [string, HostTensor])[],
  metadata: Readonly<Record<string, string>> = {},
): Uint8Array {
  const notes = Object.entries(metadata).sort(([a], [b]) => (a < b ? -1 : 1));
  const entries: string[] = [];
  if (notes.length > 0) {
    const pairs = notes.map(([key, value]) => `${quote(key)}:${quote(value)}`);
    entries.push(`${quote(metadataKey)}:{${pairs.join(',')}}`);
  }
  const seen = new Set([metadataKey]);
  let size = 0;
  for (const [name, tensor] of tensors) {
    if (seen.has(name)) {
      const fault = name === metadataKey ? 'is reserved' : 'is given twice';
      throw new TensorError('E_VALUE', 'writeSafetensors', `the name ${quote(name)} ${fault}`);
    }
    seen.add(name);
    checkHostTensor('writeSafetensors', tensor, name);
    const { dtype, shape, data } = tensor;
    if (names[dtype] === undefined) {
      const problem = `${name}: the format has no ${dtype}`;
      throw new TensorError('E_DTYPE', 'writeSafetensors', problem, 'viewAsReal, or cast to c64');
    }
    const info = { dtype: names[dtype], shape, data_offsets: [size, size + data.length] };
    // Joined by hand: an object would reorder names like `7` and lose `__proto__`.
    entries.push(`${quote(name)}:${JSON.stringify(info)}`);
    size += data.length;
  }
  const header = new TextEncoder().encode(`{${entries.join(',')}}`);
  const headerBytes = Math.ceil(header.length / 8) * 8;
  if (headerBytes > maxHeader) {
    throw new TensorError(
      'E_LIMIT',
      'writeSafetensors',
      `the header takes ${headerBytes} bytes of ${maxHeader}`,
    );
  }
  const out = new Uint8Array(prefix + headerBytes + size).fill(0x20, prefix, prefix + headerBytes);
  new DataView(out.buffer).setBigUint64(0, BigInt(headerBytes), true);
  out.set(header, prefix);
  let at = prefix + headerBytes;
  for (const [, { data }] of tensors) {
    out.set(data, at);
    at += data.length;
  }
  return out;
}

/** The header as parsed JSON, and the place of the first data byte. */
function readHeader(bytes: Uint8Array): [Record<string, unknown>, number] {
  if (bytes.length < prefix)
    throw broken(`the file ends in the header's length: ${bytes.length} of ${prefix} bytes`);
  const length = new DataView(bytes.buffer, bytes.byteOffset).getBigUint64(0, true);
  if (length > BigInt(maxHeader))
    throw broken(`the header is said to take ${length} bytes, over ${maxHeader}`);
  const end = prefix + Number(length);
  if (end > bytes.length) {
    throw broken(`the file ends in the header: ${bytes.length - prefix} of ${length} bytes`);
  }
  let text: string;
  let header: unknown;
  try {
    text = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(
      new Uint8Array(bytes.subarray(prefix, end)),
    );
    header = JSON.parse(text);
  } catch (cause) {
    throw broken(`the header is not JSON: ${cause instanceof Error ? cause.message : String(cause)}`);
  }
  if (!isRecord(header)) throw broken('the header is not a JSON object');
  refuseDuplicateKeys(text);
  return [header, end];
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
