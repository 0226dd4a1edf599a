// Failures of a device's operations. Devices report them late and asynchronously; each operation
// has a number in the order of the device, and reads with a later number reject with the first
// failure.

import { DeviceError } from '../errors.ts';

/** What to do when a device is lost. */
export const lostHint = 'make again what was on it: tensors, or a bundle that was loaded';

interface Failure {
  readonly at: number;
  readonly error: DeviceError;
}

interface ReportedFailure extends Failure {
  /** Reads issued up to here get it too: they were already waiting when it was first reported. */
  readonly until: number;
}

/** The failures of one device, in the order of the operations that caused them. */
export class Failures {
  readonly device: string;
  #clock = 0;
  /** Places of the reads under way, ascending. */
  #reads: number[] = [];
  /** For each of those reads at most the first failure before it, and one after all reads. */
  #pending: Failure[] = [];
  #reported: ReportedFailure | undefined;
  #lost: DeviceError | undefined;

  constructor(device: string) {
    this.device = device;
  }

  get lost(): boolean {
    return this.#lost !== undefined;
  }

  /** A place in the order of operations, for `record`. */
  tick(): number {
    return ++this.#clock;
  }

  /** The place of the last operation. */
  get now(): number {
    return this.#clock;
  }

  /** The number of a read, which will reject with failures before it; `deliver` must follow. */
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

  /** From now on every call fails with this reason, or this very error. */
  lose(reason: string | DeviceError): void {
    this.#lost ??=
      typeof reason === 'string'
        ? new DeviceError('E_DEVICE_LOST', this.device, reason, {
            hint: lostHint,
          })
        : reason;
  }

  /** Whether nothing has failed so far: every value is what it should be. */
  get none(): boolean {
    return !this.lost && this.#pending.length === 0 && this.#reported === undefined;
  }

  /** Throws E_DEVICE_LOST once the device is gone. */
  assertAlive(): void {
    if (this.#lost !== undefined) throw this.#lost;
  }

  /** Throws the failure before the read `at`; after that the device counts as recovered. */
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
}
