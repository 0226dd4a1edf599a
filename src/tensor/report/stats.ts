// What has been done in this process so far, as counts: to compare before and after a step, and to
// see that a loop compiles nothing new.

/** Counts since the process began. */
export interface Stats {
  /** Functions traced, by `compile` and everything that is made of traces. */
  readonly traces: number;
  /**
   * Times that a function with varying sizes (`dims`) was only recorded: at a few sizes to find what
   * they do, and once at each that calls bring. Nothing is compiled for these.
   */
  readonly sizes: number;
  /**
   * Programs compiled, of traces and of recorded operations; their kernels; and the time that took
   * on the host.
   */
  readonly programs: number;
  readonly kernels: number;
  readonly compileMilliseconds: number;
  /** Programs run, and the kernels that they dispatched. */
  readonly runs: number;
  readonly dispatches: number;
  readonly bytes: {
    /** Brought to devices, and read from them. */
    readonly uploaded: number;
    readonly downloaded: number;
    /** Read and written by kernels, at least: every element that one needs once. */
    readonly moved: number;
  };
}

/** The counts themselves: each place that does one of these things adds to its count. */
export const counts = {
  traces: 0,
  sizes: 0,
  programs: 0,
  kernels: 0,
  compileMilliseconds: 0,
  runs: 0,
  dispatches: 0,
  uploaded: 0,
  downloaded: 0,
  moved: 0,
};

/**
 * What has been traced, compiled, run and moved so far. Counts only rise: take the difference of
 * two.
 */
export function stats(): Stats {
  const { uploaded, downloaded, moved, ...rest } = counts;
  return { ...rest, bytes: { uploaded, downloaded, moved } };
}
