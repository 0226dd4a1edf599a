// Blocks in pieces: ranges of them, and the same range of each of their parts.

/** Calls `each` for ranges that make up `length`, of `most` bytes at most; once for an empty one. */
export function ranges(length: number, most: number, each: (start: number, end: number) => void): void {
  for (let start = 0; start === 0 || start < length; start += most)
    each(start, Math.min(start + most, length));
}

/** The range of each of the `count` parts of a block. */
export function parts(block: Uint8Array, count: number, start: number, end: number): readonly Uint8Array[] {
  const part = block.length / count;
  return Array.from({ length: count }, (_, i) => block.subarray(i * part + start, i * part + end));
}

/** Bytes of a part of a piece of `bytes` that has `count` parts: whole elements of every dtype. */
export function partBytes(bytes: number, count: number): number {
  return Math.max(8, Math.floor(bytes / count / 8) * 8);
}
