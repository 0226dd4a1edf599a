// Failures as WebGPU reports them: asynchronously. Error scopes around each operation catch them
// and attribute them to the operation's number in the order of the device.

import { DeviceError } from '../../errors.ts';
import { Failures } from '../failures.ts';

/** Turns a GPU error message into the device's error, naming the kernel when the message does. */
export type Describe = (code: 'E_VALIDATION' | 'E_OOM', message: string) => DeviceError;

/** The failures of one GPUDevice, caught by error scopes around its operations. */
export class GpuFailures extends Failures {
  readonly #gpu: GPUDevice;
  readonly isShared: boolean;

  /** `isShared`: others use the GPUDevice too, so that only errors inside of our scopes are ours. */
  constructor(gpu: GPUDevice, device: string, isShared = false) {
    super(device);
    this.#gpu = gpu;
    this.isShared = isShared;
    if (!isShared) this.#listen();
    void gpu.lost.then((info) => {
      this.lose(info.message === '' ? `the device was lost (${info.reason})` : info.message);
    });
  }

  #listen(): void {
    this.#gpu.addEventListener('uncapturederror', (event) => {
      event.preventDefault();
      this.record(this.now, this.describe('E_VALIDATION', event.error.message));
    });
  }

  readonly describe: Describe = (code, message) => new DeviceError(code, this.device, tidy(message));

  /**
   * Does `work` inside error scopes; whatever it throws or the GPU later reports is recorded as
   * failing at `at`. The promise settles when both scopes are popped, which is after those of all
   * earlier operations: true without errors.
   */
  async guard(at: number, describe: Describe, work: () => void): Promise<boolean> {
    const gpu = this.#gpu;
    gpu.pushErrorScope('out-of-memory');
    gpu.pushErrorScope('validation');
    const returned = this.attempt(at, describe, work);
    const popped = (code: 'E_VALIDATION' | 'E_OOM'): Promise<boolean> =>
      gpu.popErrorScope().then(
        (error) => {
          if (error !== null) this.record(at, describe(code, error.message));
          return error === null;
        },
        // A scope that cannot be popped belongs to a lost device, which reports itself.
        () => false,
      );
    const invalid = popped('E_VALIDATION');
    const exhausted = popped('E_OOM');
    const isValid = await invalid;
    return (await exhausted) && isValid && returned;
  }

  /**
   * Does `work` that the GPU has accepted before, so that only exceptions need be recorded; false
   * if it threw.
   */
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
