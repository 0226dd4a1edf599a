// Fence: a point in the work of a device, or of anything else that a promise tells the end of. Each
// has an id; 0 is never one and stands for no fence.

import { showValue, TensorError } from '../../errors.ts';
import type { Device } from '../../runtime/device.ts';

declare const fence: unique symbol;
/** The number of a fence, of a type of its own. */
export type FenceId = number & { readonly [fence]: true };

/** Stands for no fence; no fence has it. */
export const noFence: FenceId = 0 as FenceId;

/** A point after which some work is done. */
export class Fence {
  static #made = 0;
  readonly id: FenceId;
  readonly #done: Promise<void>;
  #signalled = false;
  #failure: { readonly error: unknown } | undefined = undefined;

  /** Of the work whose promise is given. */
  constructor(work: PromiseLike<unknown>) {
    if (typeof (work as PromiseLike<unknown> | null | undefined)?.then !== 'function') {
      const hint = 'new Fence(queue.onSubmittedWorkDone()), Fence.after(device)';
      throw new TensorError('E_VALUE', 'Fence', `expects a promise of work, got ${showValue(work)}`, hint);
    }
    this.id = ++Fence.#made as FenceId;
    this.#done = Promise.resolve(work).then(
      () => void (this.#signalled = true),
      (error: unknown) => {
        this.#failure = { error };
        this.#signalled = true;
        throw error;
      },
    );
    // Who waits is told; nobody has to.
    this.#done.catch(() => undefined);
  }

  /** Of everything that the device was asked for so far; its failures are the fence's. */
  static after(device: Device): Fence {
    return new Fence(device.finish());
  }

  /** Whether the work is over, done or failed. */
  get signalled(): boolean {
    return this.#signalled;
  }

  /** Whether the work is done; throws what went wrong in it. */
  poll(): boolean {
    if (this.#failure !== undefined) throw this.#failure.error;
    return this.#signalled;
  }

  /**
   * Resolves once the work is done, with true; with false after `milliseconds` without that. Rejects
   * with what went wrong in the work.
   */
  async wait(milliseconds: number = Infinity): Promise<boolean> {
    if (!(typeof milliseconds === 'number' && milliseconds >= 0)) {
      const problem = `the time must be a number of at least 0, got ${showValue(milliseconds)}`;
      throw new TensorError('E_VALUE', 'Fence.wait', problem);
    }
    if (milliseconds === Infinity) {
      await this.#done;
      return true;
    }
    let timer: ReturnType<typeof setTimeout> | undefined;
    const late = new Promise<boolean>((resolve) => {
      timer = setTimeout(() => resolve(false), milliseconds);
    });
    try {
      return await Promise.race([this.#done.then(() => true), late]);
    } finally {
      clearTimeout(timer);
    }
  }

  /** `Fence 3 (signalled)`. */
  toString(): string {
    const state = this.#failure !== undefined ? 'failed' : this.#signalled ? 'signalled' : 'pending';
    return `Fence ${this.id} (${state})`;
  }
}

/** A number as a fence's id; 0 is refused, for it stands for none. */
export function fenceId(value: number): FenceId {
  if (Number.isSafeInteger(value) && value > 0) return value as FenceId;
  throw new TensorError('E_VALUE', 'fenceId', `ids are integers from 1 on, got ${showValue(value)}`);
}
