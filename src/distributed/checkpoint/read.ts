// Reads of one region of a tensor what lies in another: the bytes of both that are the same elements, in few reads.

import { runsOf, type TensorRegion, type ElementRun } from './region.ts';

/** Bytes that one read takes at most. */
const mostBytes = 2 ** 24;

/** Bytes between two runs that are read along: a disk gives whole pages. */
const gapBytes = 4096;

/**
 * Copies what of `wanted` lies in `piece` to `to`, the packed bytes of `wanted`. `read` gives bytes of the piece, whose elements take
 * `unit` bytes each; it is not called where they share nothing.
 */
export async function readRegion(
  piece: TensorRegion,
  wanted: TensorRegion,
  unit: number,
  to: Uint8Array,
  read: (begin: number, end: number) => Promise<Uint8Array>,
): Promise<void> {
  let together: ElementRun[] = [];
  const flush = async (): Promise<void> => {
    const [first, last] = [together[0], together.at(-1)];
    if (first === undefined || last === undefined) return;
    const begin = first.from * unit;
    const bytes = await read(begin, (last.from + last.count) * unit);
    for (const { from, to: place, count } of together)
      to.set(bytes.subarray(from * unit - begin, (from + count) * unit - begin), place * unit);
    together = [];
  };
  const most = Math.max(1, Math.floor(mostBytes / unit));
  for (const { from, to: place, count } of runsOf(piece, wanted))
    for (let done = 0; done < count; done += most) {
      const run = { from: from + done, to: place + done, count: Math.min(most, count - done) };
      const [first, last] = [together[0], together.at(-1)];
      const isNear =
        first !== undefined &&
        (run.from - last!.from - last!.count) * unit < gapBytes &&
        (run.from + run.count - first.from) * unit <= mostBytes;
      if (!isNear) await flush();
      together.push(run);
    }
  await flush();
}
