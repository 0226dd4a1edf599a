// How threads are started: `worker_threads` in Node, workers in a page.

import { workerThreads, type Spawn, type PoolThread } from './threading.ts';
import { serve, takePieces, type WordLayout, type Seat } from './worker.ts';

/** Time limit for the start of a worker, which takes 20 ms on an idle machine. */
const startMs = 10_000;

export { onDeath, Pool } from './pool.ts';
export { threadCount } from './threading.ts';
export type { Spawn, PoolThread } from './threading.ts';

/** Starts a worker. */
export const spawn: Spawn = (layout, seat) => {
  const node = workerThreads();
  return node === undefined ? spawnInPage(layout, seat) : spawnInNode(node, layout, seat);
};

/** A call of `serve`, as source text; `seat` is the name of its variable there. */
function serving(layout: WordLayout, seat: string): string {
  return `(${serve.toString()})(${takePieces.toString()}, ${JSON.stringify(layout)}, ${seat});`;
}

async function spawnInNode(
  { Worker }: typeof import('node:worker_threads'),
  layout: WordLayout,
  seat: Seat,
): Promise<PoolThread> {
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

async function spawnInPage(layout: WordLayout, seat: Seat): Promise<PoolThread> {
  const source = `onmessage = ({ data }) => {
postMessage('here');
${serving(layout, 'data')}
close();
};`;
  const url = URL.createObjectURL(new Blob([source], { type: 'text/javascript' }));
  try {
    const worker = new Worker(url);
    const ended = new Promise<string>((resolve) => {
      worker.addEventListener('error', ({ message }) =>
        resolve(message || 'the page allows no worker from a blob: worker-src blob:'),
      );
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
