// How long the device works, by its own clock: one event before what is measured, and one after it.

import type { Timeline } from '../timeline.ts';
import type { CudaContext } from './api/context.ts';
import type { Fences } from './fences.ts';

export class CudaClock {
  readonly #context: CudaContext;
  readonly #fences: Fences;
  readonly #timeline: Timeline;
  /** Free pairs of events. */
  readonly #pairs: (readonly [number, number])[] = [];

  constructor(context: CudaContext, fences: Fences, timeline: Timeline) {
    this.#context = context;
    this.#fences = fences;
    this.#timeline = timeline;
  }

  /**
   * Calls `work`, and gives the nanoseconds between the stream's reaching it and its end; undefined
   * when it failed.
   */
  async measure(work: () => void): Promise<number | undefined> {
    const pair = this.#pairs.pop() ?? [this.#event(), this.#event()];
    const { failures } = this.#context;
    let epoch = 0;
    let isSound = true;
    const note = (event: number): void => {
      isSound &&= !failures.lost && this.#record(event);
      epoch = this.#fences.mark();
    };
    this.#timeline.push(() => note(pair[0]));
    work();
    await new Promise<void>((resolve) => {
      this.#timeline.push(() => {
        note(pair[1]);
        resolve();
      });
    });
    try {
      if (!isSound) return undefined;
      await this.#fences.wait(epoch);
      return this.#between(pair);
    } catch {
      // The failure is reported by the next read.
      return undefined;
    } finally {
      this.#pairs.push(pair);
    }
  }

  destroy(): void {
    for (const event of this.#pairs.flat()) this.#context.driver.cu.cuEventDestroy_v2(event);
    this.#pairs.length = 0;
  }

  #event(): number {
    this.#context.use();
    return this.#context.makeEvent('measuring', true);
  }

  #record(event: number): boolean {
    const { driver, stream } = this.#context;
    this.#context.use();
    return driver.cu.cuEventRecord(event, stream) === 0;
  }

  #between([start, end]: readonly [number, number]): number | undefined {
    const { cu, cell } = this.#context.driver;
    this.#context.use();
    if (cu.cuEventElapsedTime_v2(cell.address, start, end) !== 0) return undefined;
    return cell.float() * 1e6;
  }
}
