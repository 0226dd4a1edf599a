// Which dispatches are worth more than one thread, and how they are cut. By what a kernel moves and computes, so that it is the same in
// every run. Results do not depend on it: workgroups know nothing of each other.

import type { ProgramKernel } from '../program.ts';

/** Into how many pieces a job is cut, and how many of them each thread begins with. */
export interface Cut {
  readonly pieces: number;
  readonly share: number;
}

/** How finely work is cut, in µs of one thread. */
export interface Grain {
  /** Below that others are not asked: waking them takes 5 to 50. */
  readonly worthwhile: number;
  /** What a thread should have to do, and what a piece should take. */
  readonly share: number;
  readonly piece: number;
}

export const usualGrain: Grain = { worthwhile: 25, share: 10, piece: 20 };

/** What a core does in a microsecond at best: bytes moved, and arithmetic. */
const bandwidth = 20_000;
const arithmetic = 30_000;
/** Pieces of a thread: the more, the better what one thread does not get done is spread over the others. */
const mostPieces = 16;

/** How a kernel's workgroups are spread over threads; undefined where the asking thread does better alone. */
export function cutOf(
  kernel: ProgramKernel,
  groups: number,
  threads: number,
  grain: Grain = usualGrain,
): Cut | undefined {
  if (threads === 1 || groups === 1 || kernel.serial === true) return undefined;
  const time = Math.max(kernel.bytes / bandwidth, kernel.flops / arithmetic, 1e-3);
  if (time < grain.worthwhile) return undefined;
  const used = Math.min(threads, groups, Math.floor(time / grain.share));
  const wished = Math.min(mostPieces, Math.ceil(time / used / grain.piece));
  const share = Math.max(1, Math.min(wished, Math.floor(groups / used)));
  return { pieces: used * share, share };
}
