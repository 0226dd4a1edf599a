// Which dispatches of a program run on several threads, and into how many pieces they are cut: a
// function of the bytes that a kernel moves and of its arithmetic, so the same in every run.
// Results do not depend on it, because workgroups are independent.

import type { ProgramKernel, ProgramStep } from '../program.ts';

/** Into how many pieces a job is cut, and how many of them each thread begins with. */
export interface JobCut {
  readonly pieces: number;
  readonly share: number;
  /** µs that a piece takes at least. */
  readonly time: number;
}

/** How finely work is cut, in µs of one thread. */
export interface Grain {
  /** The least work of a program that runs on several threads: waking threads takes 5 to 50 µs. */
  readonly program: number;
  /** The least work of a dispatch that is cut: handing it over takes 1 µs. */
  readonly dispatch: number;
  /** The least work per thread, and the work of a piece. */
  readonly share: number;
  readonly piece: number;
}

const usualGrain: Grain = { program: 80, dispatch: 8, share: 15, piece: 20 };

/**
 * Peak throughput of a core per microsecond: bytes moved, and arithmetic. Kernels take 1.2 to 6
 * times as long.
 */
const bandwidth = 20_000;
const arithmetic = 30_000;
/** Pieces of a thread: the more, the more evenly other threads can take over from a slow one. */
const mostPieces = 16;

/** The parts of a program that its work is estimated from. */
interface Kernels {
  readonly kernels: readonly Pick<ProgramKernel, 'bytes' | 'flops' | 'serial'>[];
  readonly steps: readonly ProgramStep[];
}

/**
 * How the workgroups of each step are spread over threads: none where one thread is faster. Steps of
 * loops are counted as often as they run.
 */
export function cutsOf(
  { kernels, steps }: Kernels,
  threads: number,
  grain: Grain = usualGrain,
): ReadonlyMap<ProgramStep, JobCut> {
  const cuts = new Map<ProgramStep, JobCut>();
  let shared = 0;
  const spread = (list: readonly ProgramStep[], times: number): void => {
    for (const step of list) {
      if (step.kind === 'repeat') spread(step.steps, times * step.times);
      // How many turns a guard lets through is not known: one is counted.
      if (step.kind === 'while') spread(step.steps, times);
      if (step.kind !== 'dispatch') continue;
      const kernel = kernels[step.kernel]!;
      const groups = step.grid[0] * step.grid[1] * step.grid[2];
      if (threads === 1 || groups < 2 || kernel.serial === true) continue;
      const time = Math.max(kernel.bytes / bandwidth, kernel.flops / arithmetic, 1e-3);
      if (time < grain.dispatch) continue;
      shared += times * time;
      const used = Math.min(threads, groups, Math.max(2, Math.floor(time / grain.share)));
      const wished = Math.min(mostPieces, Math.ceil(time / used / grain.piece));
      const share = Math.max(1, Math.min(wished, Math.floor(groups / used)));
      cuts.set(step, { pieces: used * share, share, time: time / (used * share) });
    }
  };
  spread(steps, 1);
  return shared < grain.program ? new Map() : cuts;
}
