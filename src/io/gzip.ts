// What is deflated, through the platform's DecompressionStream, which browsers and Node both have.

import { ParseError, SinterError } from '../errors.ts';
import * as arg from '../ir/arguments.ts';
import { Allowance } from './allowance.ts';

export interface GunzipOptions {
  /** Bytes unpacked before giving up; by default 64 MiB and eight times the file. */
  readonly limit?: number;
}

const takesGunzip = arg.takes<typeof gunzip>(
  ['the file', arg.bytes],
  ['options', arg.options<GunzipOptions>({ limit: arg.notNegative })],
);

/**
 * Unpacks gzipped bytes. Rejects with ParseError E_FORMAT when they are damaged, E_LIMIT where they
 * unpack to more than `limit` bytes.
 */
export async function gunzip(bytes: Uint8Array, options: GunzipOptions = {}): Promise<Uint8Array> {
  takesGunzip('gunzip', bytes, options);
  const allowance = new Allowance('gunzip', bytes.length, options.limit, 'limit');
  const chunks: Uint8Array[] = [];
  let size = 0;
  for await (const chunk of inflated('gzip', bytes, 'gzip')) {
    allowance.spend(chunk.length, 'what is unpacked');
    chunks.push(chunk);
    size += chunk.length;
  }
  const out = new Uint8Array(size);
  let at = 0;
  for (const chunk of chunks) {
    out.set(chunk, at);
    at += chunk.length;
  }
  return out;
}

/** What `parts` unpack to, which is `size` bytes. Rejects with ParseError E_FORMAT where it is not. */
export async function inflate(
  format: 'gzip' | 'deflate',
  parts: Uint8Array | readonly Uint8Array[],
  size: number,
  what: string,
): Promise<Uint8Array> {
  const out = new Uint8Array(size);
  let at = 0;
  for await (const chunk of inflated(format, parts, what)) {
    if (at + chunk.length > size) throw broken(what, `unpacks to more than ${size} bytes`);
    out.set(chunk, at);
    at += chunk.length;
  }
  if (at < size) throw broken(what, `unpacks to ${at} bytes of ${size}`);
  return out;
}

/** The bytes as they come; who stops before the end stops the unpacking. */
async function* inflated(
  format: 'gzip' | 'deflate',
  parts: Uint8Array | readonly Uint8Array[],
  what: string,
): AsyncGenerator<Uint8Array, void, undefined> {
  const source = new Blob((arg.isBytes(parts) ? [parts] : [...parts]) as BlobPart[]).stream();
  const reader = source.pipeThrough(new DecompressionStream(format)).getReader();
  let size = 0;
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      size += value.length;
      yield value;
    }
  } catch (cause) {
    if (cause instanceof SinterError) throw cause;
    const reason = cause instanceof Error ? cause.message : String(cause);
    throw broken(what, `damaged after ${size} unpacked bytes: ${reason}`);
  } finally {
    await reader.cancel().catch(() => {});
  }
}

function broken(what: string, problem: string): ParseError {
  return new ParseError('E_FORMAT', what, problem);
}
