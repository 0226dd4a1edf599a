// What WebAssembly devices are called: `wasm`, and `wasm:2` with two threads.

/** Threads that one device has at most. */
export const threadLimit = 64;

/** The number in `wasm:2`; undefined for other names. */
export function threadsOfName(name: string): number | undefined {
  const count = Number(/^wasm:([1-9]\d?)$/.exec(name)?.[1]);
  return count <= threadLimit ? count : undefined;
}

/** Buffers that a kernel may bind. */
export const mostBuffers = 256;
