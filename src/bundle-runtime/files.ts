// Files of a bundle, in a page or in Node: whole ones, and large ones piece by piece, taken up
// again where a connection broke.

import { SinterError } from '../errors.ts';

/** A file's bytes, all at once. Throws E_IO. */
export async function readWhole(url: URL, signal: AbortSignal | undefined): Promise<Uint8Array<ArrayBuffer>> {
  const pieces: Uint8Array<ArrayBuffer>[] = [];
  for await (const piece of readPieces(url, undefined, signal)) pieces.push(piece);
  return new Uint8Array(await new Blob(pieces).arrayBuffer());
}

/** How often a broken connection is resumed without receiving a byte. */
const attempts = 4;

/**
 * A file's bytes as they come. With `size`, a connection that ends early is resumed where it ended.
 * Throws E_IO.
 */
export async function* readPieces(
  url: URL,
  size: number | undefined,
  signal: AbortSignal | undefined,
): AsyncGenerator<Uint8Array<ArrayBuffer>> {
  let at = 0;
  for (let failures = 0; ;) {
    const before = at;
    try {
      for await (const piece of url.protocol === 'file:' ? fromDisk(url) : fromNetwork(url, at, signal)) {
        signal?.throwIfAborted();
        at += piece.length;
        yield piece;
      }
      if (size === undefined || at >= size) return;
      throw new Error(`it ended at byte ${at} of ${size}`);
    } catch (error) {
      signal?.throwIfAborted();
      failures = at > before ? 1 : failures + 1;
      if (size === undefined || failures >= attempts || url.protocol === 'file:' || error instanceof Refusal)
        throw new SinterError('E_IO', `${url.href}: ${(error as Error).message}`, { cause: error });
      await new Promise((resolve) => setTimeout(resolve, 200 * 2 ** failures));
    }
  }
}

class Refusal extends Error {}

async function* fromNetwork(
  url: URL,
  from: number,
  signal: AbortSignal | undefined,
): AsyncGenerator<Uint8Array<ArrayBuffer>> {
  const headers: HeadersInit = from === 0 ? {} : { range: `bytes=${from}-` };
  const response = await fetch(url, { headers, signal: signal ?? null });
  if (!response.ok) throw new Refusal(`the server gave ${response.status} ${response.statusText}`);
  // A server without range requests sends everything again.
  let skipped = response.status === 206 ? from : 0;
  const reader = response.body!.getReader();
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      const skip = Math.min(value.length, from - skipped);
      skipped += skip;
      if (skip < value.length) yield value.subarray(skip);
    }
  } finally {
    reader.cancel().catch(() => undefined);
  }
}

/** Never called in browsers, which load bundles from a server. */
async function* fromDisk(url: URL): AsyncGenerator<Uint8Array<ArrayBuffer>> {
  const fs = globalThis.process.getBuiltinModule('node:fs');
  yield* fs.createReadStream(url, { highWaterMark: 2 ** 20 }) as AsyncIterable<Uint8Array<ArrayBuffer>>;
}
