// How far the stream has come. Work is counted in epochs, and an event ends each. Code that must know whether
// work is done (to reuse pinned memory, to read) asks for the epoch of the work. Waiting polls in every
// iteration of the event loop and never blocks it.

import { napMs } from '../communicator.ts';
import type { CudaContext } from './api/context.ts';

/** Pieces of work between two events: an event costs a call of the driver. */
const MARKS = 32;
/** After this a wait sleeps between two polls, for 1 ms at least: at most a sixteenth longer. */
const AWAKE_MS = 16;
const SHORTEST_NAP_MS = 1;

interface Sealed {
  readonly epoch: number;
  readonly event: number;
}

export class Fences {
  readonly #context: CudaContext;
  readonly #events: number[] = [];
  /** Oldest first. */
  readonly #sealed: Sealed[] = [];
  #epoch = 1;
  #marks = 0;
  #done = 0;

  constructor(context: CudaContext) {
    this.#context = context;
  }

  /** Notes that work was queued; gives the epoch after which it is done. */
  mark(): number {
    const epoch = this.#epoch;
    if (++this.#marks >= MARKS) this.#seal();
    return epoch;
  }

  /** Whether the epoch's work is done, as far as can be told without waiting. */
  isDone(epoch: number): boolean {
    while (epoch > this.#done && this.#sealed[0] !== undefined) {
      const { event } = this.#sealed[0];
      this.#context.use();
      const result = this.#context.driver.cu.cuEventQuery(event);
      const NOT_READY = 600;
      if (result === NOT_READY) return false;
      this.#context.check(result, 'cuEventQuery', 'waiting for queued work');
      this.#pass();
    }
    return epoch <= this.#done;
  }

  /**
   * Resolves once the epoch's work is done, and other ranks are known to have queued the same collectives; rejects when the device
   * is lost meanwhile, and where a rank has failed.
   */
  wait(epoch: number): Promise<void> {
    return this.#watch(epoch, () => {
      this.#context.failures.assertAlive();
      return this.#context.collectives?.look() ?? true;
    });
  }

  /** Resolves once everything queued is done, on a lost device too. */
  idle(): Promise<void> {
    return this.#watch(this.latest, () => {
      try {
        this.#context.collectives?.look();
      } catch {
        // What waited for other ranks has ended now.
      }
      return true;
    });
  }

  /** `look` says whether it is enough that the work is done. */
  async #watch(epoch: number, look: () => boolean): Promise<void> {
    this.#close(epoch);
    const since = performance.now();
    while (!(this.isDone(epoch) && look())) {
      const isLong = performance.now() - since > AWAKE_MS;
      await new Promise<void>((resolve) => {
        if (isLong) setTimeout(resolve, napMs(since, SHORTEST_NAP_MS));
        else setImmediate(resolve);
      });
      look();
    }
  }

  /** Blocks the thread until the epoch's work is done. */
  block(epoch: number): void {
    this.#close(epoch);
    const { driver, collectives } = this.#context;
    this.#context.use();
    const since = performance.now();
    if (collectives !== undefined) while (!this.isDone(epoch)) this.#context.lookAfter(collectives, since);
    while (epoch > this.#done && this.#sealed[0] !== undefined) {
      const result = driver.cu.cuEventSynchronize(this.#sealed[0].event);
      this.#context.check(result, 'cuEventSynchronize', 'waiting for queued work');
      this.#pass();
    }
  }

  /** The epoch of everything that is queued now. */
  get latest(): number {
    return this.#marks > 0 ? this.#epoch : this.#epoch - 1;
  }

  destroy(): void {
    for (const event of [...this.#events, ...this.#sealed.map((sealed) => sealed.event)]) {
      this.#context.driver.cu.cuEventDestroy_v2(event);
    }
    this.#events.length = 0;
    this.#sealed.length = 0;
  }

  /** An event ends the open epoch when it is the one asked for. */
  #close(epoch: number): void {
    if (epoch >= this.#epoch && this.#marks > 0) this.#seal();
  }

  #seal(): void {
    const { driver, stream } = this.#context;
    this.#context.use();
    const event = this.#events.pop() ?? this.#context.makeEvent('queueing an event');
    this.#context.check(driver.cu.cuEventRecord(event, stream), 'cuEventRecord', 'queueing an event');
    this.#sealed.push({ epoch: this.#epoch, event });
    this.#epoch += 1;
    this.#marks = 0;
  }

  #pass(): void {
    const { epoch, event } = this.#sealed.shift()!;
    this.#events.push(event);
    this.#done = epoch;
    if (this.#sealed.length === 0 && this.#marks === 0) this.#context.flying.clear();
  }
}
