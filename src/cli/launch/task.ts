// What `sinter launch` tells each rank.

export interface RankTask {
  readonly script: string;
  readonly args: readonly string[];
  /** Ranks whose output is shown; undefined for all. */
  readonly shown: readonly number[] | undefined;
}

/** The name by which a thread finds its task in `workerData`. */
export const taskKey = 'sinterTask';
