// Where files lie that are too large to be held: something of known size that gives any run of its
// bytes. Opened from bytes, a Blob (files of a page are some), a URL, whose server is asked for
// ranges, or a path under Node.

import { ParseError, TensorError } from '../../errors.ts';
import * as arg from '../../ir/arguments.ts';
import type { FileLocation } from '../../platform.ts';
import { type ByteSource, unbroken, complete } from './bytes.ts';

/** What a source is opened from: a path or `file:` URL (Node), an `http:` URL, a Blob, bytes, or a source of one's own. */
export type SourceInput = FileLocation | Blob | Uint8Array | ByteSource;

function isSource(value: unknown): value is ByteSource {
  return (
    typeof value === 'object' && value !== null && 'read' in value && 'size' in value && 'close' in value
  );
}

function isBlob(value: unknown): value is Blob {
  const tag = Object.prototype.toString.call(value);
  return tag === '[object Blob]' || tag === '[object File]';
}

/** Whether a value is something that a source can be opened from. */
export function isSourceInput(value: unknown): value is SourceInput {
  return (
    (typeof value === 'string' && value !== '') ||
    value instanceof URL ||
    isBlob(value) ||
    arg.isBytes(value) ||
    isSource(value)
  );
}

/** A source, as an argument. */
export const aSource: arg.Kind<SourceInput> = arg.kind(
  'a path, a URL, a Blob or bytes',
  isSourceInput,
  (value) => (value instanceof ArrayBuffer ? 'new Uint8Array(buffer)' : undefined),
);

/** The `http:` or `https:` URL that an input names. */
export function webUrl(input: unknown): URL | undefined {
  if (typeof input !== 'string' && !(input instanceof URL)) return undefined;
  const text = String(input);
  if (/^(?:https?|blob|data):/i.test(text)) return new URL(text);
  // In a page there are no paths: text is a URL beside the page's own.
  const base = (globalThis as { document?: { baseURI?: string } }).document?.baseURI;
  return base === undefined || text.startsWith('file:') ? undefined : new URL(text, base);
}

/** Opens a source. Rejects with E_IO where there is nothing to open, E_UNSUPPORTED for paths in a page. */
export async function openSource(op: string, input: SourceInput, signal?: AbortSignal): Promise<ByteSource> {
  signal?.throwIfAborted();
  if (isSource(input)) return input;
  if (arg.isBytes(input)) return ofBytes(input);
  if (isBlob(input)) return ofBlob(op, input);
  const url = webUrl(input);
  if (url !== undefined) {
    const { openUrl } = await import('./web.ts');
    return openUrl(op, url, signal);
  }
  const { openFile } = await nodeFiles(op);
  return unbroken(op, String(input), async () => {
    const { size, read, close } = await openFile(input);
    return {
      name: String(input),
      size,
      read: (begin, end) => reading(op, String(input), begin, end, read),
      close,
    };
  });
}

/** The functions of Node's files; E_UNSUPPORTED in a page. */
export async function nodeFiles(op: string): Promise<typeof import('../files.ts')> {
  if (typeof process !== 'undefined' && process.versions?.node !== undefined) return import('../files.ts');
  throw new TensorError('E_UNSUPPORTED', op, 'a page has no files', 'a URL, or a File that the user chose');
}

async function reading(
  op: string,
  name: string,
  begin: number,
  end: number,
  read: (begin: number, end: number) => Promise<Uint8Array>,
): Promise<Uint8Array> {
  return unbroken(op, name, async () => complete(op, name, begin, end, await read(begin, end)));
}

function ofBytes(bytes: Uint8Array): ByteSource {
  return {
    name: 'bytes',
    size: bytes.length,
    read: async (begin, end) => new Uint8Array(bytes.buffer, bytes.byteOffset + begin, end - begin),
    close: async () => {},
  };
}

function ofBlob(op: string, blob: Blob): ByteSource {
  const name = 'name' in blob && typeof blob.name === 'string' ? blob.name : 'a Blob';
  const read = async (begin: number, end: number): Promise<Uint8Array> =>
    new Uint8Array(await blob.slice(begin, end).arrayBuffer());
  return {
    name,
    size: blob.size,
    read: (begin, end) => reading(op, name, begin, end, read),
    close: async () => {},
  };
}

/** Throws what a format says of bytes that it cannot be. */
export function malformed(format: string, name: string, problem: string): ParseError {
  return new ParseError('E_FORMAT', format, `${name}: ${problem}`);
}
