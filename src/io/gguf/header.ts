// The header of a GGUF file: metadata, and the offset of each tensor. Every offset is checked against the
// size of the file, so that no tensor reaches outside it or into another one.

import { SinterError } from '../../errors.ts';
import { storedBytes } from '../source/stored.ts';
import { Cursor } from './cursor.ts';
import {
  defaultAlignment,
  foreignTypes,
  magic,
  tensorTypes,
  type GgufEntry,
  type GgufType,
} from './types.ts';

/** Where a tensor lies. */
export interface GgufPlace {
  readonly name: string;
  /** Row-major. */
  readonly shape: readonly number[];
  readonly type: GgufType;
  readonly bytes: number;
  /** From the file's beginning. */
  readonly begin: number;
}

/** What the head of a file says. */
export interface GgufHeader {
  readonly version: number;
  readonly metadata: ReadonlyMap<string, GgufEntry>;
  readonly tensors: readonly GgufPlace[];
  readonly alignment: number;
}

const mostAxes = 4;

/** Reads the head from a file's first bytes. Throws `Short` where they do not hold all of it. */
export function readHeader(bytes: Uint8Array, size: number, name: string): GgufHeader {
  const cursor = new Cursor(bytes, size, name);
  if (cursor.u32('the magic') !== magic) throw cursor.broken('does not begin with GGUF');
  const version = readVersion(cursor, name);
  const tensorCount = cursor.count('the number of tensors', 24);
  const keyCount = cursor.count('the number of keys', 13);
  const metadata = new Map<string, GgufEntry>();
  for (let i = 0; i < keyCount; i++) {
    const key = cursor.string(`key ${i}`);
    if (metadata.has(key)) throw cursor.broken(`the key ${JSON.stringify(key)} is there twice`);
    metadata.set(key, cursor.entry(key));
  }
  const alignment = readAlignment(cursor, metadata.get('general.alignment'));
  const infos = Array.from({ length: tensorCount }, (_, i) => readTensor(cursor, name, i));
  const data = Math.ceil(cursor.at / alignment) * alignment;
  return { version, metadata, tensors: placed(cursor, infos, data, size, alignment), alignment };
}

function readVersion(cursor: Cursor, name: string): number {
  const version = cursor.u32('the version');
  if (version === 2 || version === 3) return version;
  const problem =
    version === 1
      ? 'is of version 1, which nothing writes any more'
      : version > 0xffffff
        ? 'is big-endian'
        : `is of version ${version}; 2 and 3 are known`;
  throw new SinterError('E_UNSUPPORTED', `gguf: ${name}: ${problem}\n  try: converting it again`);
}

function readAlignment(cursor: Cursor, entry: GgufEntry | undefined): number {
  if (entry === undefined) return defaultAlignment;
  const { value } = entry;
  if (typeof value === 'number' && value >= 1 && value <= 2 ** 20 && Number.isInteger(Math.log2(value)))
    return value;
  throw cursor.broken(`general.alignment must be a power of two up to 2^20, is ${String(value)}`);
}

type Info = Omit<GgufPlace, 'begin'> & { readonly offset: number };

function readTensor(cursor: Cursor, file: string, i: number): Info {
  const name = cursor.string(`the name of tensor ${i}`);
  const what = `tensor ${JSON.stringify(name)}`;
  const rank = cursor.u32(`the rank of ${what}`);
  if (rank > mostAxes) throw cursor.broken(`${what} has ${rank} axes; there are at most ${mostAxes}`);
  const dims = Array.from({ length: rank }, (_, axis) => cursor.whole(`axis ${axis} of ${what}`));
  const id = cursor.u32(`the type of ${what}`);
  const offset = cursor.whole(`the place of ${what}`);
  const type = tensorTypes.get(id);
  if (type === undefined) {
    const known = foreignTypes.get(id);
    if (known === undefined) throw cursor.broken(`${what} has the type ${id}, which is none`);
    const hint = 'a file whose weights are q4_k, q6_k, q8_0 or another of the supported types';
    throw new SinterError(
      'E_UNSUPPORTED',
      `gguf: ${file}: ${what} is ${known}, which is not supported\n  try: ${hint}`,
    );
  }
  // Files name the innermost axis first.
  const shape = dims.reverse();
  const bytes = storedBytes(type, shape);
  if (bytes === undefined)
    throw cursor.broken(`${what} is ${type}[${shape.join(',')}]: no whole blocks, or too large`);
  return { name, shape, type, bytes, offset };
}

function placed(
  cursor: Cursor,
  infos: readonly Info[],
  data: number,
  size: number,
  alignment: number,
): readonly GgufPlace[] {
  const names = new Set<string>();
  const places = infos.map(({ offset, ...info }) => {
    const what = `tensor ${JSON.stringify(info.name)}`;
    if (names.has(info.name)) throw cursor.broken(`${what} is there twice`);
    names.add(info.name);
    if (offset % alignment !== 0)
      throw cursor.broken(`${what} begins at ${offset}, no multiple of ${alignment}`);
    const begin = data + offset;
    if (begin + info.bytes > size) {
      throw cursor.broken(`${what} takes bytes ${begin} to ${begin + info.bytes} of a file of ${size}`);
    }
    return { ...info, begin };
  });
  let [reached, before] = [data, ''];
  for (const { name, begin, bytes } of places.toSorted((a, b) => a.begin - b.begin || a.bytes - b.bytes)) {
    if (begin < reached)
      throw cursor.broken(`tensor ${JSON.stringify(name)} overlaps ${JSON.stringify(before)}`);
    [reached, before] = [begin + bytes, name];
  }
  return places;
}
