// Files behind a URL: a server is asked for ranges of bytes, so that a header is read without what
// follows, and a tensor without the others. A server that knows no ranges is refused rather than
// asked for the whole file again and again.

import { SinterError, TensorError } from '../../errors.ts';
import { complete, unbroken, type ByteSource } from './bytes.ts';

interface Answer {
  readonly bytes: Uint8Array;
  /** Bytes of the file. */
  readonly size: number;
}

/** Opens a URL by asking for its first byte, which tells its size. */
export async function openUrl(op: string, url: URL, signal?: AbortSignal): Promise<ByteSource> {
  const name = url.href;
  const first = await range(op, url, 0, 1, signal);
  return {
    name,
    size: first.size,
    async read(begin, end, at) {
      if (begin === end) return new Uint8Array(0);
      const { bytes, size } = await range(op, url, begin, end, at);
      if (size !== first.size) {
        throw new SinterError(
          'E_IO',
          `${op}: ${name}: has ${size} bytes now, had ${first.size} when it was opened`,
        );
      }
      return complete(op, name, begin, end, bytes);
    },
    close: async () => {},
  };
}

async function range(
  op: string,
  url: URL,
  begin: number,
  end: number,
  signal: AbortSignal | undefined,
): Promise<Answer> {
  return unbroken(op, url.href, async () => {
    // Bytes as they are: a range of what was compressed on the way could not be told.
    const headers = { range: `bytes=${begin}-${end - 1}`, 'accept-encoding': 'identity' };
    const response = await fetch(url, { headers, ...(signal === undefined ? {} : { signal }) });
    const size = Number(/^bytes \d+-\d+\/(\d+)$/.exec(response.headers.get('content-range') ?? '')?.[1]);
    if (response.status === 206 && Number.isSafeInteger(size)) {
      return { bytes: new Uint8Array(await response.arrayBuffer()), size };
    }
    await response.body?.cancel();
    if (response.status === 416 && begin === 0) return { bytes: new Uint8Array(0), size: 0 };
    if (!response.ok) {
      throw new SinterError(
        'E_IO',
        `${op}: ${url.href}: the server answers ${response.status} ${response.statusText}`,
        { cause: response },
      );
    }
    const problem =
      response.status === 206
        ? `${url.href}: the server keeps the file’s size to itself (content-range is not exposed)`
        : `${url.href}: the server sends the whole file where a range is asked for`;
    const hint = 'a server that answers range requests, or await (await fetch(url)).blob()';
    throw new TensorError('E_UNSUPPORTED', op, problem, hint);
  });
}
