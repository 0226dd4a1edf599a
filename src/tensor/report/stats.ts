// What has been done in this process so far, as counts: to compare before and after a step, and to
// see that a loop compiles nothing new.

/** Counts since the process began, and what of tensors is in the memory of devices. */
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
  /**
   * How long calls of compiled functions kept the host until they returned, in all. Devices that do not work beside the
   * host compute within that.
   */
  readonly callMilliseconds: number;
  readonly bytes: {
    /** Brought to devices, and read from them. */
    readonly uploaded: number;
    readonly downloaded: number;
    /** Read and written by kernels, at least: every element that one needs once. */
    readonly moved: number;
  };
  /**
   * Values of tensors that are in the memory of devices now: those that tensors hold, and those that
   * nobody holds any more and that the collector of garbage has not come to.
   */
  readonly live: {
    readonly bytes: number;
    readonly buffers: number;
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
  callMilliseconds: 0,
  uploaded: 0,
  downloaded: 0,
  moved: 0,
  liveBytes: 0,
  liveBuffers: 0,
};

/**
 * What has been traced, compiled, run and moved so far, and what is in memory now. All but `live` only
 * rise: take the difference of two.
 */
export function stats(): Stats {
  const { uploaded, downloaded, moved, liveBytes, liveBuffers, ...rest } = counts;
  const live = { bytes: liveBytes, buffers: liveBuffers };
  return { ...rest, bytes: { uploaded, downloaded, moved }, live };
}
