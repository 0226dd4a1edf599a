// Philox 4x32-10, the counter-based generator of Salmon et al., "Parallel random numbers: as easy
// as 1, 2, 3" (SC 2011): ten rounds of two 32×32→64-bit products turn a 128-bit counter and a
// 64-bit key into four random words. No state, so every device computes any element on its own and
// all agree to the bit.

export type Words4 = readonly [number, number, number, number];

/** The upper 32 bits of the 64-bit product of two u32. */
export function highProduct(a: number, b: number): number {
  const [aLow, aHigh, bLow, bHigh] = [a & 0xffff, a >>> 16, b & 0xffff, b >>> 16];
  // Each sum stays below 2³²: (2¹⁶−1)² + 2¹⁶−1 = (2¹⁶−1)·2¹⁶.
  const first = aHigh * bLow + ((aLow * bLow) >>> 16);
  const second = aLow * bHigh + (first & 0xffff);
  return aHigh * bHigh + (first >>> 16) + (second >>> 16);
}

/** Four random words (u32) of one counter and key. */
export function philox4x32(counter: Words4, key: readonly [number, number]): Words4 {
  let [c0, c1, c2, c3] = counter;
  let [k0, k1] = key;
  for (let round = 0; round < 10; round++) {
    const high0 = highProduct(0xd2511f53, c0);
    const high1 = highProduct(0xcd9e8d57, c2);
    const low0 = Math.imul(0xd2511f53, c0) >>> 0;
    const low1 = Math.imul(0xcd9e8d57, c2) >>> 0;
    c0 = (high1 ^ c1 ^ k0) >>> 0;
    c1 = low1;
    c2 = (high0 ^ c3 ^ k1) >>> 0;
    c3 = low0;
    k0 = (k0 + 0x9e3779b9) >>> 0;
    k1 = (k1 + 0xbb67ae85) >>> 0;
  }
  return [c0, c1, c2, c3];
}

/**
 * `count` words of a stream: element `i` is word `i mod 4` of counter + ⌊i/4⌋, where key and
 * counter are u64 given as their low and high halves (the counter's upper two words stay 0).
 */
export function randomWords(
  key: readonly [low: number, high: number],
  counter: readonly [low: number, high: number],
  count: number,
): Uint32Array {
  const out = new Uint32Array(count);
  for (let at = 0; at < count; at += 4) {
    const low = counter[0] + at / 4;
    const high = counter[1] + Math.floor(low / 2 ** 32);
    const words = philox4x32([low >>> 0, high >>> 0, 0, 0], key);
    for (let i = 0; i < 4 && at + i < count; i++) out[at + i] = words[i]!;
  }
  return out;
}
