// One CUDA device as the driver knows it: its primary context, and one stream in which everything
// happens in order. Error codes of the driver become DeviceErrors here; those that destroy the
// context make the device lost.

import { DeviceError, type ErrorCode } from '../../../errors.ts';
import { napMs, type DeviceStream, type StreamCollectives } from '../../communicator.ts';
import type { Failures } from '../../failures.ts';
import type { Driver, DriverCall } from './driver.ts';
import type { Gpu } from './gpu.ts';

const OUT_OF_MEMORY = 2;

/**
 * After these every call of the context fails: ECC, NVLink, illegal address, timeout, assert, 714
 * to 719 (faults of a kernel).
 */
const FATAL: ReadonlySet<number> = new Set([214, 220, 226, 700, 702, 709, 710, 714, 715, 716, 717, 718, 719]);

/** Errors caused by the arguments of a call, not by the state of the machine. */
const INVALID: ReadonlySet<number> = new Set([1, 200, 209, 218, 222, 300, 301, 302, 303, 500, 701, 720]);

/** What a thread sleeps on while it waits for other ranks, and for how long at least. */
const nap = new Int32Array(new SharedArrayBuffer(4));
const SHORTEST_NAP_MS = 0.05;

/** Gives the names of queued kernels, for errors. */
export interface Labelled {
  readonly kernels: readonly { readonly name: string }[];
}

export class CudaContext implements DeviceStream {
  readonly driver: Driver;
  /** The device's name in errors: `cuda`, `cuda:1`. */
  readonly name: string;
  readonly failures: Failures;
  /** The driver's handle of the device, which counts from 0 as well. */
  readonly device: number;
  readonly handle: number;
  readonly stream: number;
  /** Programs that were queued since the stream was last seen idle. */
  readonly flying: Set<Labelled> = new Set();
  /** What must be destroyed before the context is. */
  readonly owned: Set<{ destroy(): void }> = new Set();
  /** The collectives on the stream, where the device has joined other ranks. */
  collectives: StreamCollectives | undefined;
  /** Called when an error has lost the device. */
  onLost: () => void = () => undefined;

  constructor({ driver, name, device }: Gpu, failures: Failures) {
    this.driver = driver;
    this.name = name;
    this.failures = failures;
    this.device = device;
    const { cu, cell } = driver;
    this.check(cu.cuDevicePrimaryCtxRetain(cell.address, device), 'cuDevicePrimaryCtxRetain', 'opening');
    this.handle = cell.number();
    this.use();
    this.stream = this.makeStream('opening');
  }

  /** A stream that is not ordered with the null stream, which other libraries of the process may use. */
  makeStream(doing: string): number {
    const { cu, cell } = this.driver;
    const NON_BLOCKING = 1;
    this.check(cu.cuStreamCreate(cell.address, NON_BLOCKING), 'cuStreamCreate', doing);
    return cell.number();
  }

  /** An event; one that is not timed is cheaper. */
  makeEvent(doing: string, isTimed: boolean = false): number {
    const { cu, cell } = this.driver;
    const DISABLE_TIMING = 2;
    this.check(cu.cuEventCreate(cell.address, isTimed ? 0 : DISABLE_TIMING), 'cuEventCreate', doing);
    return cell.number();
  }

  /**
   * Makes the context current in this thread; called at every entry of the runtime, before its
   * first call of the driver. The driver is told every time (some 40 ns): which context is current
   * belongs to the thread, and other libraries of the process (ONNX Runtime's, a bundle's) choose
   * theirs.
   */
  use(): void {
    this.check(this.driver.cu.cuCtxSetCurrent(this.handle), 'cuCtxSetCurrent', 'choosing the device');
  }

  isIdle(stream: number = this.stream): boolean {
    const NOT_READY = 600;
    this.use();
    const result = this.driver.cu.cuStreamQuery(stream);
    if (result === NOT_READY) return false;
    this.check(result, 'cuStreamQuery', 'waiting for queued work');
    return true;
  }

  /** Blocks the thread until the stream is done. */
  finish(doing: string, kernel?: string): void {
    const { collectives, stream } = this;
    if (collectives === undefined)
      return this.check(this.driver.cu.cuStreamSynchronize(stream), 'cuStreamSynchronize', doing, kernel);
    const since = performance.now();
    while (!this.isIdle()) this.lookAfter(collectives, since);
  }

  /** One look of a thread that is blocked until ranks have met, since a time of `performance.now`. */
  lookAfter(collectives: StreamCollectives, since: number): void {
    collectives.look();
    Atomics.wait(nap, 0, 0, napMs(since, SHORTEST_NAP_MS));
  }

  /** Throws unless the result is 0; `doing` completes "while …". */
  check(result: number, call: DriverCall, doing: string, kernel?: string): void {
    if (result !== 0) throw this.failure(result, call, doing, kernel);
  }

  /** The error for a result; one that is fatal loses the device. */
  failure(result: number, call: DriverCall, doing: string, kernel?: string): DeviceError {
    const isFatal = FATAL.has(result);
    const code: ErrorCode = isFatal
      ? 'E_DEVICE_LOST'
      : result === OUT_OF_MEMORY
        ? 'E_OOM'
        : INVALID.has(result)
          ? 'E_VALIDATION'
          : 'E_DEVICE';
    const suspects = isFatal && kernel === undefined ? this.#flyingKernels() : [];
    const culprit = kernel ?? (suspects.length === 1 ? suspects[0] : undefined);
    const among = suspects.length > 1 ? `; queued were ${listed(suspects)}` : '';
    const hint = hintFor(result, suspects.length > 1);
    const story = `${this.driver.explain(result)}, in ${call} while ${doing}${among}`;
    const error = new DeviceError(code, this.name, story, {
      ...(culprit === undefined ? {} : { kernel: culprit }),
      ...(hint === undefined ? {} : { hint }),
    });
    if (isFatal) {
      this.failures.lose(error);
      this.onLost();
    }
    return error;
  }

  #flyingKernels(): string[] {
    return [...new Set([...this.flying].flatMap(({ kernels }) => kernels.map(({ name }) => name)))];
  }

  /**
   * Does the work of operation `at` and records what it throws as its failure; false if it threw.
   */
  attempt(at: number, work: () => void): boolean {
    try {
      this.use();
      work();
      return true;
    } catch (error) {
      const known = error instanceof DeviceError;
      this.failures.record(
        at,
        known ? error : new DeviceError('E_DEVICE', this.name, String(error), { cause: error }),
      );
      return false;
    }
  }

  /** Releases the context; the stream must be idle or failed. */
  close(): void {
    const { cu } = this.driver;
    for (const one of this.owned) one.destroy();
    cu.cuStreamDestroy_v2(this.stream);
    cu.cuDevicePrimaryCtxRelease_v2(this.device);
  }
}

function listed(names: readonly string[]): string {
  const listed = 8;
  const rest = names.length > listed ? ` and ${names.length - listed} more` : '';
  return names.slice(0, listed).join(', ') + rest;
}

function hintFor(result: number, isAnonymous: boolean): string | undefined {
  if (result === OUT_OF_MEMORY) return 'dispose of tensors you no longer need, or take smaller batches';
  if (isAnonymous) return 'SINTER_CUDA_SYNC=1, which waits for each kernel and names the one that fails';
  return undefined;
}
