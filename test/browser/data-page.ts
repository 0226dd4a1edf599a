// The page's side of data.test.ts: batches from workers, a worker that fails, and an image that the browser decodes.

import { setDevice } from '../../src/index.ts';
import { DataLoader, readImage } from '../../src/data/index.ts';

/** What the test finds on the page's global object. */
export interface DataApi {
  /** The batches of an epoch by two workers: values, and which worker made each. */
  batches(): Promise<{ readonly x: unknown; readonly by: unknown }[]>;
  /** The error of a loop whose dataset fails at its last item: its code and message. */
  failure(): Promise<{ readonly code: unknown; readonly message: string }>;
  /** The first batch of a loop that is left. */
  first(): Promise<unknown>;
  /** Shape and elements of an image. */
  image(
    bytes: readonly number[],
    channels: 1 | 3,
  ): Promise<{ readonly shape: unknown; readonly data: number[] }>;
}

const numbered = { length: 10, get: (i: number) => ({ x: new Float32Array(2), by: i, of: 0 }) };

function loader(data: unknown): DataLoader<{ x: Float32Array; by: number; of: number }> {
  setDevice('wasm:1');
  const workers = { count: 2, module: new URL('/squares.js', location.href), name: 'make', data };
  return new DataLoader(numbered, { batchSize: 5, workers });
}

const api: DataApi = {
  batches: async () => {
    const seen: { x: unknown; by: unknown }[] = [];
    for await (const { x, by } of loader({})) seen.push({ x: await x.array(), by: await by.array() });
    return seen;
  },
  failure: async () => {
    try {
      for await (const _ of loader({ fails: 9 }));
      return { code: undefined, message: 'nothing failed' };
    } catch (error) {
      const { code, message } = error as { code?: unknown; message: string };
      return { code, message };
    }
  },
  first: async () => {
    for await (const { x } of loader({})) return x.array();
    return undefined;
  },
  image: async (bytes, channels) => {
    const { shape, data } = await readImage(Uint8Array.from(bytes), { channels });
    return { shape, data: [...data] };
  },
};

(globalThis as { sinterData?: DataApi }).sinterData = api;
