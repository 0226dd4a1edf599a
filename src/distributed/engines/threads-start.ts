// Node only: starts the ranks of one process as worker threads, and tells those that are left of every one that ends.

import { Worker, type WorkerOptions } from 'node:worker_threads';
import { seatKey, ThreadMemory, threadSeats } from './threads-memory.ts';

/** How a rank has ended. */
export interface RankEnd {
  readonly rank: number;
  /** 0 where all is well. */
  readonly code: number;
  /** What it has thrown, where it has. */
  readonly error?: unknown;
}

export interface ThreadRanks {
  readonly workers: readonly Worker[];
  /** Resolves when all have ended, in the order in which they did. */
  readonly ended: Promise<readonly RankEnd[]>;
}

/** Starts `size` ranks, each of which runs the module; what `optionsOf` gives besides is the worker's own. */
export function startThreads(
  size: number,
  module: URL,
  optionsOf: (rank: number) => WorkerOptions = () => ({}),
): ThreadRanks {
  const seats = threadSeats(size);
  const memory = new ThreadMemory(seats[0]!);
  const workers = seats.map((seat) => {
    const options = optionsOf(seat.rank);
    const data = { ...(options.workerData as object | undefined), [seatKey]: seat };
    return new Worker(module, { ...options, workerData: data });
  });
  const ends: RankEnd[] = [];
  const all = workers.map(
    (worker, rank) =>
      new Promise<void>((resolve) => {
        let failed: { readonly error: unknown } | undefined;
        worker.once('error', (error: unknown) => {
          failed = { error };
          const text = error instanceof Error ? error.message : String(error);
          memory.fail(`rank ${rank} has failed: ${text}`);
        });
        worker.once('exit', (code) => {
          if (code === 0) memory.leave(rank);
          else memory.fail(`rank ${rank} has ended with exit code ${code}`);
          ends.push({ rank, code, ...failed });
          resolve();
        });
      }),
  );
  return { workers, ended: Promise.all(all).then(() => ends) };
}
