// The threads of a device. The calling thread is the first of them: it publishes a job, takes
// pieces like the workers (also from the ranges of workers that are late), and waits for the pieces
// that workers have taken. In Node it sleeps if that takes long; the main thread of a page may not
// block, so it spins for as long as the slowest piece takes.

import { DeviceError } from '../../errors.ts';
import { lostHint } from '../failures.ts';
import type { JobCut } from './cut.ts';
import type { Code, LoadedKernel } from './modules.ts';
import { mostBuffers } from './names.ts';
import type { Spawn, PoolThread } from './threading.ts';
import { takePieces, type WordLayout, type Seat } from './worker.ts';

/** A kernel's workgroups, cut into pieces. */
export interface PoolJob {
  readonly kernel: LoadedKernel;
  readonly name: string;
  /** Where its module lies in the memory. */
  readonly code: Code;
  readonly groups: number;
  /** What every piece is called with after its workgroups: addresses. */
  readonly args: readonly number[];
  /** Scratch memory: so many bytes for each thread, the first thread's here. */
  readonly scratch?: { readonly address: number; readonly bytes: number };
  readonly cut: JobCut;
}

/** Addresses that a piece is called with: those of the buffers, and that of the scalars. */
const mostArgs = mostBuffers + 1;
const mostLetters = 256;
/**
 * Milliseconds: a worker that sleeps takes 5 to 50 µs to wake, so it is awake from one call of a
 * loop to the next.
 */
const linger = 0.2;
/** Loads of a word, 5 ns each, before the calling thread sleeps. */
const looks = 10_000;
/**
 * Milliseconds without a finished piece after which the threads that hold pieces are considered
 * dead.
 */
const usualPatience = 10_000;
/** Milliseconds of one sleep: between two sleeps it checks for progress. */
const nap = 100;

function layoutFor(threads: number): WordLayout {
  let words = 0;
  const line = (count = 1): number => {
    const start = words;
    words += 16 * Math.ceil(count / 16);
    return start;
  };
  const [turn, sleepers, closed, done, waiting, failed] = [line(), line(), line(), line(), line(), line()];
  const left = line(16 * threads);
  const job = line(9 + mostArgs);
  const reason = line(1 + mostLetters);
  return {
    threads,
    linger,
    turn,
    sleepers,
    closed,
    done,
    waiting,
    failed,
    reason,
    reasonLetters: mostLetters,
    left,
    job: {
      kernel: job,
      code: job + 1,
      codeBytes: job + 2,
      groups: job + 3,
      pieces: job + 4,
      share: job + 5,
      scratch: job + 6,
      scratchBytes: job + 7,
      count: job + 8,
      args: job + 9,
    },
    words,
  };
}

export class Pool {
  readonly threads: number;
  readonly #device: string;
  readonly #at: WordLayout;
  #seat: Seat | undefined;
  readonly #words: Int32Array;
  readonly workers: readonly PoolThread[];
  readonly #patience: number;
  readonly #maySleep: boolean;
  #closing: Promise<void> | undefined;

  private constructor(
    device: string,
    at: WordLayout,
    seat: Seat,
    workers: readonly PoolThread[],
    patience: number,
  ) {
    this.threads = at.threads;
    this.#device = device;
    this.#at = at;
    this.#words = seat.words;
    this.#seat = seat;
    this.workers = workers;
    this.#patience = patience;
    this.#maySleep = maySleep(seat.words);
  }

  /** Starts all threads but this one. Rejects with an Error where one does not start. */
  static async open(
    device: string,
    threads: number,
    memory: WebAssembly.Memory,
    spawn: Spawn,
    patience: number = usualPatience,
  ): Promise<Pool> {
    const at = layoutFor(threads);
    const words = new Int32Array(new SharedArrayBuffer(4 * at.words));
    const others = Array.from({ length: threads - 1 }, (_, i) => spawn(at, { words, memory, me: i + 1 }));
    const started = await Promise.allSettled(others);
    const workers = started.flatMap((one) => (one.status === 'fulfilled' ? [one.value] : []));
    const refused = started.find((one) => one.status === 'rejected');
    const pool = new Pool(device, at, { words, memory, me: 0 }, workers, patience);
    if (refused === undefined) return pool;
    await pool.close();
    throw refused.reason;
  }

  /**
   * Runs a job. Throws E_VALIDATION with the reason when a piece failed, E_DEVICE_LOST when a
   * thread stopped in the middle.
   */
  run(job: PoolJob): void {
    const at = this.#at;
    const words = this.#words;
    const seat = this.#seat;
    if (seat === undefined) throw new DeviceError('E_DEVICE_LOST', this.#device, 'the device was destroyed');
    if (job.args.length > mostArgs) {
      const problem = `${job.args.length} addresses are given: threads take ${mostArgs}`;
      throw new DeviceError('E_LIMIT', this.#device, problem, { kernel: job.name });
    }
    const { pieces, share } = job.cut;
    words[at.job.kernel] = job.kernel.id;
    words[at.job.code] = job.code.address;
    words[at.job.codeBytes] = job.code.bytes;
    words[at.job.groups] = job.groups;
    words[at.job.pieces] = pieces;
    words[at.job.share] = share;
    words[at.job.scratch] = job.scratch?.address ?? 0;
    words[at.job.scratchBytes] = job.scratch?.bytes ?? 0;
    words[at.job.count] = job.args.length;
    for (let i = 0; i < job.args.length; i++) words[at.job.args + i] = job.args[i]!;
    Atomics.store(words, at.done, 0);
    // From here on spinning workers may begin.
    for (let thread = 0, first = 0; first < pieces; thread++, first += share) {
      Atomics.store(words, at.left + 16 * thread, Math.min(share, pieces - first));
    }
    Atomics.add(words, at.turn, 1);
    if (Atomics.load(words, at.sleepers) > 0) Atomics.notify(words, at.turn, Math.ceil(pieces / share) - 1);
    takePieces(at, seat, { [job.kernel.id]: job.kernel.run });
    this.#wait(job);
    if (Atomics.load(words, at.failed) === 0) return;
    Atomics.store(words, at.failed, 0);
    const letters = words.subarray(at.reason + 1, at.reason + 1 + words[at.reason]!);
    const reason = String.fromCharCode(...letters);
    throw new DeviceError('E_VALIDATION', this.#device, reason, { kernel: job.name });
  }

  get isClosing(): boolean {
    return this.#closing !== undefined;
  }

  /** Ends the workers; resolves when they are gone. */
  close(): Promise<void> {
    if (this.#closing === undefined) {
      const words = this.#words;
      // Drops the references that keep the memory alive.
      this.#seat = undefined;
      Atomics.store(words, this.#at.closed, 1);
      Atomics.add(words, this.#at.turn, 1);
      Atomics.notify(words, this.#at.turn);
      this.#closing = Promise.all(this.workers.map((worker) => worker.end())).then(() => undefined);
    }
    return this.#closing;
  }

  #wait({ name, cut: { pieces, time } }: PoolJob): void {
    const at = this.#at;
    const words = this.#words;
    // Pieces may be long, and a machine a hundred times slower than modelled.
    const patience = this.#patience + 0.1 * time;
    for (let i = 0; i < looks; i++) if (Atomics.load(words, at.done) === pieces) return;
    let [seen, since] = [-1, 0];
    // Time counts only in naps, so that a machine or a process that was stopped for a while does
    // not look dead.
    let waited = 0;
    Atomics.store(words, at.waiting, 1);
    for (;;) {
      const done = Atomics.load(words, at.done);
      if (done === pieces) break;
      if (done !== seen) [seen, waited] = [done, 0];
      if (this.#maySleep) {
        if (Atomics.wait(words, at.done, done, nap) === 'timed-out') waited += nap;
      } else {
        since = performance.now();
        while (Atomics.load(words, at.done) === done && performance.now() < since + nap);
        if (Atomics.load(words, at.done) === done) waited += nap;
      }
      if (waited < patience) continue;
      const problem = `a worker took workgroups and did nothing for ${waited / 1000} s: it has ended, or been stopped`;
      throw new DeviceError('E_DEVICE_LOST', this.#device, problem, {
        kernel: name,
        hint: lostHint,
      });
    }
    Atomics.store(words, at.waiting, 0);
  }
}

/** Whether this thread may wait for a word: the main thread of a page may not. */
function maySleep(words: Int32Array): boolean {
  try {
    Atomics.wait(words, 0, words[0]! + 1, 0);
    return true;
  } catch {
    return false;
  }
}

/** Calls back when a worker ends that was not told to. */
export function onDeath(pool: Pool, died: (reason: string) => void): void {
  pool.workers.forEach((worker, i) =>
    worker.onEnd((reason) => {
      if (!pool.isClosing) died(`worker ${i + 1} of ${pool.workers.length} has ended: ${reason}`);
    }),
  );
}
