// Opens GGUF files, the format of llama.cpp's models: the head is read by growing pieces, tensors
// when they are asked for. A model in several files is opened by the name of the first.

import { SinterError } from '../../errors.ts';
import * as arg from '../../ir/arguments.ts';
import { aSource, malformed, openSource, webUrl, type SourceInput } from '../source/source.ts';
import type { ByteSource } from '../source/bytes.ts';
import {
  readTable,
  storedTensor,
  type ReadOptions,
  type StoredTensor,
  type TensorFile,
} from '../source/stored.ts';
import { Short } from './cursor.ts';
import { readHeader, type GgufHeader } from './header.ts';
import { GgufMetadata } from './metadata.ts';
import type { GgufType } from './types.ts';

/** A tensor of a GGUF file. */
export interface GgufTensor extends StoredTensor {
  readonly type: GgufType;
}

/** A GGUF file whose head has been read. */
export interface GgufFile extends TensorFile {
  /** What it was opened by; of several files, the first one's. */
  readonly name: string;
  readonly version: number;
  readonly metadata: GgufMetadata;
  readonly tensors: ReadonlyMap<string, GgufTensor>;
  /** Bytes of the file, or of all of them. */
  readonly size: number;
}

/** What `openGguf` takes besides: a signal that stops it, and a function told how much of the head is read. */
export type OpenOptions = ReadOptions;

const firstPiece = 2 ** 18;
/** A head with a million tokens takes a tenth of that. */
const largestHead = 2 ** 29;

const takes = arg.takes<typeof openGguf>(
  ['the file', arg.either(aSource, arg.listOf(aSource))],
  ['the options', arg.options<OpenOptions>(readTable)],
);

/**
 * Opens a GGUF file: a path or `file:` URL under Node, a URL whose server answers range requests, a
 * Blob, bytes, or a list of these for a model in several files. Of a path or URL that ends in
 * `-00001-of-0000N.gguf` the others are found by their names. Rejects with E_FORMAT where the file is
 * malformed, E_UNSUPPORTED for versions and types that are not known, E_IO where it cannot be read.
 */
export async function openGguf(
  source: SourceInput | readonly SourceInput[],
  options: OpenOptions = {},
): Promise<GgufFile> {
  takes('openGguf', source, options);
  const inputs = isList(source) ? source : siblings(source);
  const sources: ByteSource[] = [];
  try {
    const parts: { source: ByteSource; header: GgufHeader }[] = [];
    for (const input of inputs) {
      const opened = await openSource('openGguf', input, options.signal);
      sources.push(opened);
      parts.push({ source: opened, header: await head(opened, options) });
    }
    return joined(parts);
  } catch (error) {
    await Promise.all(sources.map((opened) => opened.close()));
    throw error;
  }
}

function isList(source: SourceInput | readonly SourceInput[]): source is readonly SourceInput[] {
  return Array.isArray(source);
}

/** The files of a model whose first one is given. */
function siblings(source: SourceInput): readonly SourceInput[] {
  const text = typeof source === 'string' || source instanceof URL ? String(source) : '';
  const found = /-(\d{5})-of-(\d{5})(\.gguf(?:[?#].*)?)$/.exec(text);
  if (found === null) return [source];
  const [end, first, last, rest = ''] = found;
  const count = Number(last);
  if (Number(first) !== 1) {
    const problem = `openGguf: ${text} is file ${Number(first)} of ${count}`;
    throw new SinterError('E_IO', `${problem}\n  try: the first one, whose name has -00001-of-`);
  }
  return Array.from({ length: count }, (_, i) => {
    const name = `${text.slice(0, -end.length)}-${String(i + 1).padStart(5, '0')}-of-${last}${rest}`;
    return source instanceof URL || webUrl(source) !== undefined ? (webUrl(name) ?? new URL(name)) : name;
  });
}

/** Reads a head by pieces that grow until they hold it. */
async function head(source: ByteSource, { signal, onProgress }: OpenOptions): Promise<GgufHeader> {
  let bytes = await source.read(0, Math.min(firstPiece, source.size), signal);
  for (;;) {
    signal?.throwIfAborted();
    onProgress?.({ loaded: bytes.length, total: source.size });
    try {
      return readHeader(bytes, source.size, source.name);
    } catch (error) {
      if (!(error instanceof Short)) throw error;
      if (error.needed > largestHead) {
        throw malformed('gguf', source.name, `the head takes more than ${largestHead} bytes`);
      }
      const wanted = Math.min(Math.max(4 * bytes.length, error.needed), source.size);
      const longer = new Uint8Array(wanted);
      longer.set(bytes);
      longer.set(await source.read(bytes.length, wanted, signal), bytes.length);
      bytes = longer;
    }
  }
}

/** The files of a model as one. */
function joined(parts: readonly { source: ByteSource; header: GgufHeader }[]): GgufFile {
  const [first] = parts;
  if (first === undefined) throw new SinterError('E_VALUE', 'openGguf: expects at least one file');
  const { name } = first.source;
  const metadata = new GgufMetadata(first.header.metadata, name);
  const count = metadata.count('split.count') ?? 1;
  if (count > 1 && count !== parts.length) {
    const problem = `openGguf: ${name}: is one of ${count} files, ${parts.length} of which are given`;
    throw new SinterError('E_VALUE', `${problem}\n  try: all of them as a list, in order`);
  }
  const tensors = new Map<string, GgufTensor>();
  parts.forEach(({ source, header }, i) => {
    const place = new GgufMetadata(header.metadata, source.name).count('split.no');
    if (parts.length > 1 && place !== i) {
      throw malformed('gguf', source.name, `is file ${place ?? 'of no number'} of the model, not ${i}`);
    }
    for (const { begin, ...facts } of header.tensors) {
      if (tensors.has(facts.name))
        throw malformed('gguf', source.name, `tensor ${JSON.stringify(facts.name)} is in two files`);
      const { type } = facts;
      tensors.set(facts.name, { ...storedTensor('GgufTensor', source, facts, begin), type });
    }
  });
  const expected = metadata.count('split.tensors.count');
  if (parts.length > 1 && expected !== undefined && expected !== tensors.size) {
    throw malformed('gguf', name, `the files have ${tensors.size} tensors of ${expected}`);
  }
  return {
    name,
    version: first.header.version,
    metadata,
    tensors,
    size: parts.reduce((sum, { source }) => sum + source.size, 0),
    close: async () => {
      await Promise.all(parts.map(({ source }) => source.close()));
    },
  };
}
