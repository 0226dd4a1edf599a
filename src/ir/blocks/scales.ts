// How blocks of 256 values keep the scales of their groups: in fewer bits than a byte, packed.

/** A block's bytes, and where it begins. */
export type BlockBytes = Uint8Array;

/** Of eight groups (q4_k, q5_k), the 6-bit scale: of twelve bytes at `at`. */
export function scaleOf(bytes: BlockBytes, at: number, group: number): number {
  const byte = (i: number): number => bytes[at + i] ?? 0;
  return group < 4 ? byte(group) & 63 : (byte(group + 4) & 15) | ((byte(group - 4) >> 6) << 4);
}

/** Of eight groups (q4_k, q5_k), the 6-bit minimum: of the same twelve bytes. */
export function minimumOf(bytes: BlockBytes, at: number, group: number): number {
  const byte = (i: number): number => bytes[at + i] ?? 0;
  return group < 4 ? byte(group + 4) & 63 : (byte(group + 4) >> 4) | ((byte(group) >> 6) << 4);
}

/** Writes what `scaleOf` and `minimumOf` read, over bytes that are 0. */
export function packScales(
  bytes: BlockBytes,
  at: number,
  scales: readonly number[],
  minima: readonly number[],
): void {
  scales.forEach((scale, group) => {
    const minimum = minima[group] ?? 0;
    if (group < 4) {
      or(bytes, at + group, scale);
      or(bytes, at + group + 4, minimum);
    } else {
      or(bytes, at + group + 4, (scale & 15) | ((minimum & 15) << 4));
      or(bytes, at + group - 4, (scale >> 4) << 6);
      or(bytes, at + group, (minimum >> 4) << 6);
    }
  });
}

/** Of sixteen groups (q3_k), the 6-bit scale above its middle, 32: of twelve bytes at `at`. */
export function signedScaleOf(bytes: BlockBytes, at: number, group: number): number {
  const byte = (i: number): number => bytes[at + i] ?? 0;
  const low = group < 8 ? byte(group) & 15 : byte(group - 8) >> 4;
  return (low | (((byte(8 + (group & 3)) >> (2 * (group >> 2))) & 3) << 4)) - 32;
}

/** Writes what `signedScaleOf` reads, over bytes that are 0. */
export function packSignedScales(bytes: BlockBytes, at: number, scales: readonly number[]): void {
  scales.forEach((signed, group) => {
    const scale = signed + 32;
    or(bytes, at + (group & 7), (scale & 15) << (group < 8 ? 0 : 4));
    or(bytes, at + 8 + (group & 3), (scale >> 4) << (2 * (group >> 2)));
  });
}

/** Sets bits of a byte. */
export function or(bytes: BlockBytes, at: number, bits: number): void {
  bytes[at] = (bytes[at] ?? 0) | bits;
}
