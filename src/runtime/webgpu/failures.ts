// What went wrong, and who is told. WebGPU reports errors later, out of band; this catches them in error scopes around each
// operation, gives them the operation's place in the order, and hands the first one to the reads that came after it.

import { DeviceError } from '../../errors.ts';

interface Failure {
  readonly at: number;
  readonly error: DeviceError;
}

interface ReportedFailure extends Failure {
  /** Reads issued up to here get it too: they were already waiting when it was first reported. */
  readonly until: number;
}

/** Turns a GPU error message into the device's error, naming the kernel when the message does. */
export type Describe = (code: 'E_VALIDATION' | 'E_OOM', message: string) => DeviceError;

/** The failures of one device, in the order of the operations that caused them. */
export class Failures {
  readonly #gpu: GPUDevice;
  readonly #device: string;
  #clock = 0;
  /** Places of the reads under way, ascending. */
  #reads: number[] = [];
  /** At most one before each of those reads, the first there, and one after them all. */
  #pending: Failure[] = [];
  #reported: ReportedFailure | undefined;
  #lost: DeviceError | undefined;

  constructor(gpu: GPUDevice, device: string) {
    this.#gpu = gpu;
    this.#device = device;
    gpu.addEventListener('uncapturederror', (event) => {
      event.preventDefault();
      this.record(this.#clock, this.describe('E_VALIDATION', event.error.message));
    });
    void gpu.lost.then((info) => {
      this.lose(info.message === '' ? `the device was lost (${info.reason})` : info.message);
    });
  }

  get lost(): boolean {
    return this.#lost !== undefined;
  }

  /** A place in the order of operations, for `guard`. */
  tick(): number {
    return ++this.#clock;
  }

  /** The place of an operation that will report what failed before it; `deliver` must follow. */
  tickRead(): number {
    this.#reads.push(++this.#clock);
    return this.#clock;
  }

  /** Keeps a failure for the next read after it, unless an earlier one is kept for that read. */
  record(at: number, error: DeviceError): void {
    const reader = this.#readerOf(at);
    const rival = this.#pending.findIndex((failure) => this.#readerOf(failure.at) === reader);
    if (rival < 0) this.#pending.push({ at, error });
    else if (at < this.#pending[rival]!.at) this.#pending[rival] = { at, error };
  }

  lose(reason: string): void {
    this.#lost ??= new DeviceError('E_DEVICE_LOST', this.#device, reason, { hint: 'open the device again' });
  }

  /** Throws E_DEVICE_LOST once the device is gone. */
  assertAlive(): void {
    if (this.#lost !== undefined) throw this.#lost;
  }

  /** Throws what failed up to the read `at`; once that has reported it, the device counts as recovered. */
  deliver(at: number): void {
    this.#reads = this.#reads.filter((read) => read !== at);
    this.assertAlive();
    const [first, ...others] = this.#pending.filter((failure) => failure.at <= at);
    if (first !== undefined) {
      this.#pending = this.#pending.filter((failure) => failure.at > at);
      const earliest = others.reduce((one, other) => (other.at < one.at ? other : one), first);
      this.#reported = { ...earliest, until: this.#clock };
      throw earliest.error;
    }
    const reported = this.#reported;
    if (reported !== undefined && reported.at <= at && at <= reported.until) throw reported.error;
  }

  #readerOf(at: number): number {
    return this.#reads.find((read) => read >= at) ?? Infinity;
  }

  readonly describe: Describe = (code, message) => new DeviceError(code, this.#device, tidy(message));

  /**
   * Does `work` inside error scopes; whatever it throws or the GPU later reports is recorded as failing at `at`. The
   * promise settles when both scopes have been heard, which is after those of all earlier operations: true if all was well.
   */
  async guard(at: number, describe: Describe, work: () => void): Promise<boolean> {
    const gpu = this.#gpu;
    gpu.pushErrorScope('out-of-memory');
    gpu.pushErrorScope('validation');
    const returned = this.attempt(at, describe, work);
    const heard = (code: 'E_VALIDATION' | 'E_OOM'): Promise<boolean> =>
      gpu.popErrorScope().then(
        (error) => {
          if (error !== null) this.record(at, describe(code, error.message));
          return error === null;
        },
        // A scope that cannot be popped belongs to a lost device, which reports itself.
        () => false,
      );
    const invalid = heard('E_VALIDATION');
    const exhausted = heard('E_OOM');
    const isValid = await invalid;
    return (await exhausted) && isValid && returned;
  }

  /** Does `work` that the GPU has accepted before, so that only what it throws need be recorded; whether it returned. */
  attempt(at: number, describe: Describe, work: () => void): boolean {
    try {
      work();
      return true;
    } catch (error) {
      this.record(at, error instanceof DeviceError ? error : describe('E_VALIDATION', String(error)));
      return false;
    }
  }
}

/** Dawn's messages trail off in blank lines and bullet points; one paragraph is enough. */
export function tidy(message: string): string {
  return message.trim().replace(/\s*\n\s*/g, '; ');
}
