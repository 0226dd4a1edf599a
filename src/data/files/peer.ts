// Node only: decoders of others, which trust the files that they are given, in a thread that can be
// ended. A task may take time and memory in proportion to its file; what takes more is refused, and
// the thread with it. One thread serves task after task, and goes when there is none for a while.

import { pathToFileURL } from 'node:url';
import { Worker } from 'node:worker_threads';
import { SinterError } from '../../errors.ts';
import type { Allowance } from '../../io/allowance.ts';

/** What a thread is asked: a function that uses its arguments and globals alone, and has none of its own that have names. */
export type PeerTask<Given, Found> = (module: never, given: Given) => Found | Promise<Found>;

/** A task, and the file that it is about. */
export interface PeerCall<Given, Found> {
  readonly op: string;
  /** The path of the module that the task is given. */
  readonly module: string;
  readonly task: PeerTask<Given, Found>;
  readonly given: Given;
  readonly fileBytes: number;
  readonly allowance: Allowance;
  /** Milliseconds that it may wait for nothing; 10 seconds by default. */
  readonly longestWait?: number;
}

/** Milliseconds of processor time that a task may take, and those for each MiB of its file. */
const [leastTime, timePerMebibyte] = [1000, 1000] as const;
/** Milliseconds that a thread may wait for nothing in a task: a task reads from memory alone, so what waits that long waits for ever. */
const usualWait = 10_000;
/** MiB that a thread needs by itself, and how long one without tasks stays. */
const [ownMebibytes, idleTime] = [48, 5000] as const;
const tick = 25;

const source = `const { parentPort } = require('node:worker_threads');
parentPort.on('message', async ({ module, task, given }) => {
  try {
    const loaded = await import(module);
    parentPort.postMessage({ started: true });
    const found = await (0, eval)('(' + task + ')')(loaded.default ?? loaded, given);
    parentPort.postMessage({ found });
  } catch (error) {
    parentPort.postMessage({ reason: error instanceof Error ? error.message : String(error) });
  }
});`;

interface Answer {
  readonly started?: true;
  readonly found?: unknown;
  readonly reason?: string;
}

type Listener = (told: never) => void;

interface Thread {
  readonly worker: Worker;
  readonly mebibytes: number;
}

let thread: Thread | undefined;
let idle: NodeJS.Timeout | undefined;
/** Settles when the last task that was asked for is done. */
let last: Promise<unknown> = Promise.resolve();

/** Runs a task behind those before it. Rejects with what it throws; E_LIMIT where it takes too much. */
export function askPeer<Given, Found>(call: PeerCall<Given, Found>): Promise<Found> {
  const result = last.then(() => asked(call));
  last = result.catch(() => {});
  return result;
}

function threadWith(mebibytes: number): Thread {
  clearTimeout(idle);
  if (thread !== undefined && thread.mebibytes >= mebibytes) return thread;
  if (thread !== undefined) void thread.worker.terminate();
  const worker = new Worker(source, { eval: true, resourceLimits: { maxOldGenerationSizeMb: mebibytes } });
  const made = (thread = { worker, mebibytes });
  // A thread can end between two tasks too, out of memory after its answer for one: the next task needs another.
  worker.on('error', () => end(made));
  worker.on('exit', () => end(made));
  return made;
}

function end({ worker }: Thread): void {
  if (thread?.worker === worker) thread = undefined;
  void worker.terminate();
}

function asked<Given, Found>(call: PeerCall<Given, Found>): Promise<Found> {
  const { op, module, task, given, fileBytes, allowance, longestWait = usualWait } = call;
  // A quarter of the machine's addresses at most, which is no limit.
  const most = Math.min(allowance.left / 2 ** 20, 2 ** 20);
  const used = threadWith(Math.ceil(ownMebibytes + most));
  const { worker } = used;
  const limit = leastTime + (timePerMebibyte * fileBytes) / 2 ** 20;
  return new Promise<Found>((resolve, reject) => {
    const settle = (isWell: boolean, act: () => void): void => {
      clearInterval(watch);
      for (const [event, listener] of listeners) worker.off(event, listener as (told: unknown) => void);
      if (isWell) {
        worker.unref();
        idle = setTimeout(() => end(used), idleTime).unref();
      } else end(used);
      act();
    };
    // Of the process: on a busy machine a task takes as long as it is given time.
    let before: NodeJS.CpuUsage | undefined;
    const waited = worker.performance.eventLoopUtilization();
    const watch = setInterval(() => {
      const { user, system } = before === undefined ? { user: 0, system: 0 } : process.cpuUsage(before);
      if ((user + system) / 1000 > limit)
        settle(false, () => reject(tooMuch(op, `more than ${Math.ceil(limit)} ms`)));
      else if (worker.performance.eventLoopUtilization(waited).idle > longestWait)
        settle(false, () => reject(new Error(`its reader waits for data that never comes`)));
    }, tick);
    const listeners: readonly (readonly [event: string, listener: Listener])[] = [
      [
        'message',
        ({ started, found, reason }: Answer) => {
          if (started === true) before = process.cpuUsage();
          else if (reason === undefined) settle(true, () => resolve(found as Found));
          else settle(true, () => reject(new Error(reason)));
        },
      ],
      [
        'error',
        (error: NodeJS.ErrnoException) => {
          const isFull = error.code === 'ERR_WORKER_OUT_OF_MEMORY';
          settle(false, () => reject(isFull ? allowance.refusal('reading it') : error));
        },
      ],
      ['messageerror', (error: Error) => settle(false, () => reject(error))],
      ['exit', (code: number) => settle(false, () => reject(new Error(`its thread ended with ${code}`)))],
    ];
    for (const [event, listener] of listeners) worker.on(event, listener as (told: unknown) => void);
    worker.ref();
    worker.postMessage({ module: pathToFileURL(module).href, task: task.toString(), given }, []);
  });
}

function tooMuch(op: string, what: string): SinterError {
  return new SinterError(
    'E_LIMIT',
    `${op}: the file takes ${what} to read, which is out of proportion to its size`,
  );
}
