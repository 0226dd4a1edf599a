// What the threads of a device share, and what each of them does. A job is a kernel and its
// workgroups, cut beforehand into pieces of consecutive workgroups; every thread has a range of
// pieces to begin with, and takes those of others when its own are done. The result of a piece does
// not depend on the thread that runs it. The functions here are sent to workers as source text:
// they use only their arguments and globals of every realm, and contain no inner functions, which
// bundlers would wrap in helpers of their own.

/**
 * Runs workgroups from the first to before the last, over addresses of buffers, of the scalar block
 * and of scratch memory.
 */
export type RunWorkgroups = (...args: number[]) => void;

/**
 * Indices of fields in the shared words. Each field that several threads write has a cache line of
 * its own.
 */
export interface WordLayout {
  readonly threads: number;
  /** Milliseconds that a worker spins for the next job before it sleeps. */
  readonly linger: number;
  /** Incremented for each job; workers sleep on it. */
  readonly turn: number;
  readonly sleepers: number;
  /** 1 when workers are to end. */
  readonly closed: number;
  /** Pieces of the job that are done; the calling thread sleeps on it, with `waiting` set. */
  readonly done: number;
  readonly waiting: number;
  /**
   * 1 once a piece has failed; the reason is the letters from `reason` on, as many as its first
   * word says.
   */
  readonly failed: number;
  readonly reason: number;
  readonly reasonLetters: number;
  /**
   * For each thread, in a cache line of its own: how many pieces of its range are not taken yet.
   */
  readonly left: number;
  /** The job. It does not change until all of its pieces are done. */
  readonly job: {
    readonly kernel: number;
    /** Where the bytes of the kernel's module lie in the memory. */
    readonly code: number;
    readonly codeBytes: number;
    readonly groups: number;
    readonly pieces: number;
    /** Pieces in the range of each thread. */
    readonly share: number;
    /**
     * Scratch memory of the first thread, and bytes from one thread's to the next's: 0 for none.
     */
    readonly scratch: number;
    readonly scratchBytes: number;
    /** How many arguments there are, and the first. */
    readonly count: number;
    readonly args: number;
  };
  /** All words. */
  readonly words: number;
}

/** The arguments of a thread: the shared words, the memory, and its number. */
export interface Seat {
  readonly words: Int32Array;
  readonly memory: WebAssembly.Memory;
  /** The number of the thread: 0 is the calling thread. */
  readonly me: number;
}

/**
 * Takes pieces of the job until none is left. `runs` are kernels by number; those it lacks are made
 * from their modules.
 */
export function takePieces(
  at: WordLayout,
  { words, memory, me }: Seat,
  runs: Record<number, RunWorkgroups | undefined>,
): void {
  const { job } = at;
  for (let step = 0; step < at.threads; step++) {
    const left = at.left + 16 * ((me + step) % at.threads);
    for (;;) {
      const count = Atomics.load(words, left);
      if (count === 0) break;
      if (Atomics.compareExchange(words, left, count, count - 1) !== count) continue;
      // From here on the job cannot change, and the piece belongs to it, even if `count` was loaded
      // during an earlier job.
      const pieces = words[job.pieces]!;
      try {
        const kernel = words[job.kernel]!;
        let run = runs[kernel];
        if (run === undefined) {
          const [start, length] = [words[job.code]! >>> 0, words[job.codeBytes]!];
          // A memory that another thread has grown shows its new size in this realm after growing
          // by 0 pages.
          if (memory.buffer.byteLength < start + length) memory.grow(0);
          const bytes = new Uint8Array(memory.buffer, start, length).slice();
          const instance = new WebAssembly.Instance(new WebAssembly.Module(bytes), { env: { memory } });
          run = instance.exports['run'] as RunWorkgroups;
          runs[kernel] = run;
          // Kernels are numbered in rising order, so an old number probably belongs to a destroyed
          // program. If it does not, the instance is made again.
          delete runs[kernel - 999];
        }
        const owner = (left - at.left) / 16;
        const share = words[job.share]!;
        const piece = owner * share + Math.min(share, pieces - owner * share) - count;
        const groups = words[job.groups]!;
        const first = Math.floor((groups * piece) / pieces);
        const end = Math.floor((groups * (piece + 1)) / pieces);
        const args = [first, end];
        for (let i = 0; i < words[job.count]!; i++) args.push(words[job.args + i]!);
        if (words[job.scratchBytes] !== 0) args.push(words[job.scratch]! + me * words[job.scratchBytes]!);
        if (first < end) run.apply(undefined, args);
      } catch (error) {
        if (Atomics.compareExchange(words, at.failed, 0, 1) === 0) {
          const reason = String(error instanceof Error ? error.message : error).slice(0, at.reasonLetters);
          words[at.reason] = reason.length;
          for (let i = 0; i < reason.length; i++) words[at.reason + 1 + i] = reason.charCodeAt(i);
        }
      }
      const last = Atomics.add(words, at.done, 1) + 1 === pieces;
      if (last && Atomics.load(words, at.waiting) === 1) Atomics.notify(words, at.done);
    }
  }
}

/**
 * The main loop of a worker: takes pieces, spins for the next job, then sleeps. Returns when the
 * pool is closed.
 */
export function serve(take: typeof takePieces, at: WordLayout, seat: Seat): void {
  const { words } = seat;
  const runs: (RunWorkgroups | undefined)[] = [];
  let seen = -1;
  while (Atomics.load(words, at.closed) === 0) {
    seen = Atomics.load(words, at.turn);
    take(at, seat, runs);
    const until = performance.now() + at.linger;
    let looks = 0;
    while (Atomics.load(words, at.turn) === seen) {
      looks += 1;
      if (looks % 64 !== 0 || performance.now() < until) continue;
      Atomics.add(words, at.sleepers, 1);
      Atomics.wait(words, at.turn, seen);
      Atomics.sub(words, at.sleepers, 1);
    }
  }
}
