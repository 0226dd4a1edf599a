// How many threads a device has: workers of Node or of a page. Where memory cannot be shared there is one thread.

import { DeviceError } from '../../errors.ts';
import { threadLimit } from './names.ts';
import type { WordLayout, Seat } from './worker.ts';

/**
 * More threads speed kernels up little: memory bandwidth is exhausted, and hyperthreads count as
 * cores.
 */
const mostByDefault = 8;

/** A worker that serves. */
export interface PoolThread {
  /** Calls back once it has ended, however it did, with the reason. */
  onEnd(ended: (reason: string) => void): void;
  /** Ends it; resolves when it is gone. */
  end(): Promise<void>;
}

/** Starts a worker; rejects with the reason where there is none to be had. */
export type Spawn = (layout: WordLayout, seat: Seat) => Promise<PoolThread>;

/** How many threads a device has, and where there is one though more were asked for, the reason. */
export interface ThreadCount {
  readonly count: number;
  readonly why?: string;
}

/**
 * What `SINTER_THREADS` says, where there is an environment. Throws E_DEVICE, which names the device that
 * was asked for, where that is no number of threads.
 */
export function threadsFromEnvironment(device: string): number | undefined {
  const text = typeof process === 'undefined' ? undefined : process.env?.['SINTER_THREADS'];
  if (text === undefined || text === '') return undefined;
  if (/^[1-9]\d*$/.test(text) && Number(text) <= threadLimit) return Number(text);
  throw new DeviceError('E_DEVICE', device, `SINTER_THREADS is '${text}': expected 1 to ${threadLimit}`, {
    hint: 'leave it out for as many threads as there are cores',
  });
}

/** Threads for a device: as many whole ones as are asked for, or as there are cores (8 at most). */
export function threadCount(asked: number | undefined): ThreadCount {
  const count = Math.trunc(asked ?? Math.min(coreCount(), mostByDefault));
  if (count === 1) return { count };
  if (globalThis.crossOriginIsolated === false)
    return { count: 1, why: 'the page is not cross-origin isolated' };
  if (typeof SharedArrayBuffer === 'undefined') return { count: 1, why: 'memory is not shared here' };
  if (workerThreads() === undefined && typeof Worker === 'undefined')
    return { count: 1, why: 'there are no workers here' };
  return { count };
}

/** Node's module of threads, where there is one. */
export function workerThreads(): typeof import('node:worker_threads') | undefined {
  return globalThis.process?.getBuiltinModule?.('node:worker_threads');
}

function coreCount(): number {
  const os = globalThis.process?.getBuiltinModule?.('node:os');
  return os?.availableParallelism() ?? globalThis.navigator?.hardwareConcurrency ?? 1;
}
