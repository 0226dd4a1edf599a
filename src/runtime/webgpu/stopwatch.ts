// How long the device works, by its own clock: during a measurement every pass writes timestamps at
// its begin and end. Takes a function that queues runs, gives the sum of their passes' nanoseconds.

import type { Timeline } from '../timeline.ts';

/**
 * GPUMapMode.READ, GPUBufferUsage.COPY_SRC | QUERY_RESOLVE, and COPY_DST | MAP_READ: Node has no
 * such globals.
 */
const MAP_READ = 1;
const RESOLVED = 4 | 512;
const READABLE = 8 | 1;

/** Passes that one measurement can hold. */
const passLimit = 16;

interface Lap {
  readonly marks: GPUQuerySet;
  passes: number;
}

export class Stopwatch {
  readonly #gpu: GPUDevice;
  readonly #timeline: Timeline;
  readonly #hasClock: boolean;
  #lap: Lap | undefined;

  constructor(gpu: GPUDevice, timeline: Timeline) {
    this.#gpu = gpu;
    this.#timeline = timeline;
    this.#hasClock = gpu.features.has('timestamp-query');
  }

  /** The descriptor of the next pass; undefined while nothing is measured. */
  get pass(): GPUComputePassDescriptor | undefined {
    const lap = this.#lap;
    if (lap === undefined) return undefined;
    const at = 2 * lap.passes++;
    if (at >= 2 * passLimit) return undefined;
    return {
      timestampWrites: {
        querySet: lap.marks,
        beginningOfPassWriteIndex: at,
        endOfPassWriteIndex: at + 1,
      },
    };
  }

  /**
   * Calls `work`, and measures the passes of what it queues; undefined without a clock, or when its
   * timestamps could not be read.
   */
  async measure(work: () => void): Promise<number | undefined> {
    if (!this.#hasClock) {
      work();
      return undefined;
    }
    const marks = this.#gpu.createQuerySet({ type: 'timestamp', count: 2 * passLimit });
    const lap: Lap = { marks, passes: 0 };
    this.#timeline.push(() => (this.#lap = lap));
    work();
    return new Promise((resolve) =>
      this.#timeline.push(() => {
        this.#lap = undefined;
        this.#read(lap).then(resolve, () => resolve(undefined));
      }),
    );
  }

  async #read({ marks, passes }: Lap): Promise<number | undefined> {
    const gpu = this.#gpu;
    const bytes = 16 * passes;
    if (passes === 0 || passes > passLimit) return undefined;
    const resolved = gpu.createBuffer({ size: bytes, usage: RESOLVED });
    const readable = gpu.createBuffer({ size: bytes, usage: READABLE });
    try {
      const encoder = gpu.createCommandEncoder();
      encoder.resolveQuerySet(marks, 0, 2 * passes, resolved, 0);
      encoder.copyBufferToBuffer(resolved, 0, readable, 0, bytes);
      gpu.queue.submit([encoder.finish()]);
      await readable.mapAsync(MAP_READ);
      const times = new BigUint64Array(readable.getMappedRange());
      let total = 0;
      for (let pass = 0; pass < passes; pass++) total += Number(times[2 * pass + 1]! - times[2 * pass]!);
      return total;
    } finally {
      readable.destroy();
      resolved.destroy();
      marks.destroy();
    }
  }
}
