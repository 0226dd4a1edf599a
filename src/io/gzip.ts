// gunzip through the platform's DecompressionStream, which browsers and Node both have.

import { ParseError } from '../errors.ts';
import * as arg from '../ir/arguments.ts';

/** Bytes unpacked before giving up, unless the caller says otherwise. */
const defaultLimit = 2 ** 31;

export interface GunzipOptions {
  /** Bytes unpacked before giving up; 2 GiB by default. */
  readonly limit?: number;
}

const takesGunzip = arg.takes<typeof gunzip>(
  ['the file', arg.bytes],
  ['options', arg.options<GunzipOptions>({ limit: arg.notNegative })],
);

/**
 * Unpacks gzipped bytes. Rejects with ParseError E_FORMAT when they are damaged or unpack to more
 * than `limit` bytes.
 */
export async function gunzip(bytes: Uint8Array, options: GunzipOptions = {}): Promise<Uint8Array> {
  takesGunzip('gunzip', bytes, options);
  const limit = options.limit ?? defaultLimit;
  const source = new Blob([new Uint8Array(bytes)]).stream();
  const reader = source.pipeThrough(new DecompressionStream('gzip')).getReader();
  const chunks: Uint8Array[] = [];
  let size = 0;
  for (;;) {
    const { done, value } = await reader.read().catch((cause: unknown) => {
      throw new ParseError(
        'E_FORMAT',
        'gzip',
        `damaged after ${size} unpacked bytes: ${cause instanceof Error ? cause.message : String(cause)}`,
      );
    });
    if (done) break;
    size += value.length;
    if (size > limit) {
      await reader.cancel();
      throw new ParseError('E_FORMAT', 'gzip', `unpacks to more than ${limit} bytes`);
    }
    chunks.push(value);
  }
  const out = new Uint8Array(size);
  let at = 0;
  for (const chunk of chunks) {
    out.set(chunk, at);
    at += chunk.length;
  }
  return out;
}
