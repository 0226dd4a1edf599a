// What went wrong, and who is told. WebGPU reports errors later, out of band; this catches them in error scopes around each
// operation, gives them the operation's place in the order, and hands the first one to the reads that came after it.

import { DeviceError } from '../../errors.ts';

interface Failure {
  readonly at: number;
  readonly error: DeviceError;
}

interface ReportedFailure extends Failure {
  /** The read that first reported it, which covers every failure before itself. */
  readonly by: number;
  /** Reads issued up to here get it too: they were already waiting then. */
  readonly until: number;
}

/** Turns a GPU error message into the device's error, naming the kernel when the message does. */
export type Describe = (code: 'E_VALIDATION' | 'E_OOM', message: string) => DeviceError;

/** The failures of one device, in the order of the operations that caused them. */
export class Failures {
  readonly #gpu: GPUDevice;
  readonly #device: string;
  #clock = 0;
  #pending: Failure | undefined;
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

  /** A place in the order of operations, for `guard` and `deliver`. */
  tick(): number {
    return ++this.#clock;
  }

  /** Keeps the first failure until a read after it reports it. */
  record(at: number, error: DeviceError): void {
    if (this.#reported !== undefined && at <= this.#reported.by) return;
    if (this.#pending === undefined || at < this.#pending.at) this.#pending = { at, error };
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
    this.assertAlive();
    const pending = this.#pending;
    if (pending !== undefined && pending.at <= at) {
      this.#pending = undefined;
      this.#reported = { ...pending, by: at, until: this.#clock };
      throw pending.error;
    }
    const reported = this.#reported;
    if (reported !== undefined && reported.at <= at && at <= reported.until) throw reported.error;
  }

  readonly describe: Describe = (code, message) => new DeviceError(code, this.#device, tidy(message));

  /**
   * Does `work` inside error scopes; whatever it throws or the GPU later reports is recorded as failing at `at`. The
   * promise settles when both scopes have been heard, which is after those of all earlier operations.
   */
  guard(at: number, describe: Describe, work: () => void): Promise<unknown> {
    const gpu = this.#gpu;
    gpu.pushErrorScope('out-of-memory');
    gpu.pushErrorScope('validation');
    try {
      work();
    } catch (error) {
      this.record(at, error instanceof DeviceError ? error : describe('E_VALIDATION', String(error)));
    }
    const invalid = gpu.popErrorScope().then((error) => {
      if (error !== null) this.record(at, describe('E_VALIDATION', error.message));
    }, ignore);
    // A scope that cannot be popped belongs to a lost device, which reports itself.
    const exhausted = gpu.popErrorScope().then((error) => {
      if (error !== null) this.record(at, describe('E_OOM', error.message));
    }, ignore);
    return invalid.then(() => exhausted);
  }
}

function ignore(): void {}

/** Dawn's messages trail off in blank lines and bullet points; one paragraph is enough. */
export function tidy(message: string): string {
  return message.trim().replace(/\s*\n\s*/g, '; ');
}
