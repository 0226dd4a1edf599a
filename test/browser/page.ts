// The page's side: hands the program to the test, to be called in the page itself or in a dedicated worker.

import { close, devices } from '../../src/index.ts';
import { compute, computeShared, mistakes, tune, type Numbers } from './program.ts';

/** What the test finds on the page's global object. */
export interface PageApi {
  compute(device: string): Promise<Numbers>;
  computeInWorker(device: string): Promise<Numbers>;
  readonly close: typeof close;
  readonly computeShared: typeof computeShared;
  readonly devices: typeof devices;
  readonly mistakes: typeof mistakes;
  readonly tune: typeof tune;
}

function computeInWorker(device: string): Promise<Numbers> {
  const worker = new Worker('/worker.js', { type: 'module', name: device });
  return new Promise<Numbers>((resolve, reject) => {
    worker.addEventListener('message', ({ data }: MessageEvent<{ numbers?: Numbers; failure?: string }>) => {
      if (data.numbers !== undefined) resolve(data.numbers);
      else reject(new Error(data.failure));
    });
    worker.addEventListener('error', ({ message }) => reject(new Error(`the worker failed: ${message}`)));
  }).finally(() => worker.terminate());
}

(globalThis as { sinterTest?: PageApi }).sinterTest = {
  close,
  compute,
  computeInWorker,
  computeShared,
  devices,
  mistakes,
  tune,
};
