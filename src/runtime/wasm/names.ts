// What WebAssembly devices are called: `wasm`, and `wasm:2` with two threads.

/** Threads that one device has at most. */
export const threadLimit = 64;

/** The number in `wasm:2`, or in the names of another kind; undefined for other names. */
export function threadsOfName(name: string, kind: string = 'wasm'): number | undefined {
  const [own, text = ''] = name.split(':', 2);
  const count = own === kind && name === `${own}:${text}` && /^[1-9]\d?$/.test(text) ? Number(text) : NaN;
  return count <= threadLimit ? count : undefined;
}

/** Buffers that a kernel may bind. */
export const mostBuffers = 256;
