// What devices on the threads of a processor are called: `wasm`, and `wasm:2` with two threads; `native` alike.

/** Threads that one device has at most. */
export const threadLimit = 64;

/** The number in `wasm:2`, where the kind is `wasm`; undefined for other names. */
export function threadsOfName(name: string, kind: 'wasm' | 'native'): number | undefined {
  const [, own, count] = /^(\w+):([1-9]\d?)$/.exec(name) ?? [];
  return own === kind && Number(count) <= threadLimit ? Number(count) : undefined;
}

/** Buffers that a kernel may bind. */
export const mostBuffers = 256;
