// How many threads a device has, and how they are started: `worker_threads` in Node, workers in a
// page. Where memory cannot be shared there is one thread.

import { DeviceError } from '../../errors.ts';
import { threadLimit } from './names.ts';
import { serve, takePieces, type Layout, type Seat } from './worker.ts';

/**
 * More threads speed kernels up little: memory bandwidth is exhausted, and hyperthreads count as
 * cores.
 */
const mostByDefault = 8;
/** Time limit for the start of a worker, which takes 20 ms on an idle machine. */
const startMs = 10_000;

/** A worker that serves. */
export interface Thread {
  /** Calls back once it has ended, however it did, with the reason. */
  onEnd(ended: (reason: string) => void): void;
  /** Ends it; resolves when it is gone. */
  end(): Promise<void>;
}

/** Starts a worker; rejects with the reason where there is none to be had. */
export type Spawn = (layout: Layout, seat: Seat) => Promise<Thread>;

/** How a device gets its threads, or the reason why there is one. */
export type Threading =
  | { readonly spawn: Spawn; readonly count: number }
  | { readonly spawn?: undefined; readonly why?: string };

/**
 * What `SINTER_THREADS` says, where there is an environment. Throws E_DEVICE where that is no
 * number of threads.
 */
export function threadsFromEnvironment(): number | undefined {
  const text = typeof process === 'undefined' ? undefined : process.env?.['SINTER_THREADS'];
  if (text === undefined || text === '') return undefined;
  if (/^[1-9]\d*$/.test(text) && Number(text) <= threadLimit) return Number(text);
  throw new DeviceError('E_DEVICE', 'wasm', `SINTER_THREADS is '${text}': expected 1 to ${threadLimit}`, {
    hint: 'leave it out for as many threads as there are cores',
  });
}

/** Threads for a device: as many as are asked for, or as there are cores (8 at most). */
export function threading(asked: number | undefined): Threading {
  const count = asked ?? Math.min(coreCount(), mostByDefault);
  if (count === 1) return {};
  if (globalThis.crossOriginIsolated === false) return { why: 'the page is not cross-origin isolated' };
  if (typeof SharedArrayBuffer === 'undefined') return { why: 'memory is not shared here' };
  const node = workerThreads();
  if (node === undefined && typeof Worker === 'undefined') return { why: 'there are no workers here' };
  return {
    count,
    spawn: node === undefined ? spawnInPage : (layout, seat) => spawnInNode(node, layout, seat),
  };
}

function workerThreads(): typeof import('node:worker_threads') | undefined {
  return globalThis.process?.getBuiltinModule?.('node:worker_threads');
}

function coreCount(): number {
  const os = globalThis.process?.getBuiltinModule?.('node:os');
  return os?.availableParallelism() ?? globalThis.navigator?.hardwareConcurrency ?? 1;
}

/** A call of `serve`, as source text; `seat` is the name of its variable there. */
function serving(layout: Layout, seat: string): string {
  return `(${serve.toString()})(${takePieces.toString()}, ${JSON.stringify(layout)}, ${seat});`;
}

async function spawnInNode(
  { Worker }: typeof import('node:worker_threads'),
  layout: Layout,
  seat: Seat,
): Promise<Thread> {
  const source = `const { parentPort, workerData } = require('node:worker_threads');
parentPort.postMessage('here');
${serving(layout, 'workerData')}`;
  // Options and environment of the process are not inherited: they may load modules into every
  // thread.
  const worker = new Worker(source, { eval: true, workerData: seat, execArgv: [], env: {} });
  let reason: string | undefined;
  const ended = new Promise<string>((resolve) => {
    worker.once('error', (error) => (reason = error instanceof Error ? error.message : String(error)));
    worker.once('exit', (code) => resolve(reason ?? `it exited with ${code}`));
  });
  const started = new Promise<undefined>((resolve) => worker.once('message', () => resolve(undefined)));
  await startOf(started, ended).catch(async (error: unknown) => {
    await worker.terminate();
    throw error;
  });
  // The process may end while workers sleep.
  worker.unref();
  return {
    onEnd: (listener) => void ended.then(listener),
    end: async () => void (await worker.terminate()),
  };
}

async function spawnInPage(layout: Layout, seat: Seat): Promise<Thread> {
  const source = `onmessage = ({ data }) => {
postMessage('here');
${serving(layout, 'data')}
close();
};`;
  const url = URL.createObjectURL(new Blob([source], { type: 'text/javascript' }));
  try {
    const worker = new Worker(url);
    const ended = new Promise<string>((resolve) => {
      worker.addEventListener('error', ({ message }) => resolve(message || 'the page does not allow it'));
    });
    const started = new Promise<undefined>((resolve) => {
      worker.addEventListener('message', () => resolve(undefined));
    });
    worker.postMessage(seat, []);
    await startOf(started, ended).catch((error: unknown) => {
      worker.terminate();
      throw error;
    });
    return {
      onEnd: (listener) => void ended.then(listener),
      end: async () => worker.terminate(),
    };
  } finally {
    URL.revokeObjectURL(url);
  }
}

/** Resolves when a worker has started; rejects when it ended instead, or does neither. */
async function startOf(started: Promise<undefined>, ended: Promise<string>): Promise<void> {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const late = new Promise<string>((resolve) => {
    timer = setTimeout(() => resolve(`it did not start within ${startMs / 1000} s`), startMs);
  });
  const failure = await Promise.race([started, ended, late]);
  clearTimeout(timer);
  if (failure !== undefined) throw new Error(failure);
}
