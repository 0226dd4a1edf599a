// One rank of `sinter launch`: a thread, or a process of MPI. It loads the script as `sinter run` loads modules, and puts its
// rank before each line that the script writes. Lines are written at once: a rank that waits for others writes nothing later.

import { writeSync } from 'node:fs';
import { isMainThread, workerData } from 'node:worker_threads';
import { ownSeat } from '../../distributed/engines/threads-memory.ts';
import { starterOf } from '../../distributed/place.ts';
import { loadModule } from '../program/module-file.ts';
import { taskKey, type RankTask } from './task.ts';

const task = isMainThread
  ? (JSON.parse(process.argv[2]!) as RankTask)
  : (workerData as { readonly [taskKey]: RankTask })[taskKey];
const { script, args, shown } = task;
const rank = ownSeat(workerData)?.rank ?? starterOf(process.env)?.rank ?? 0;

/** Has whole lines of a stream written to a file, each behind `prefix`; gives what writes the line that is not whole. */
function relay(stream: NodeJS.WriteStream, file: number, prefix: string): () => void {
  let open = '';
  const put = (text: string): void => {
    const bytes = Buffer.from(text);
    for (let written = 0; written < bytes.length;)
      try {
        written += writeSync(file, bytes, written);
      } catch (error) {
        // A pipe that is full: whoever reads it comes to it.
        if ((error as NodeJS.ErrnoException).code !== 'EAGAIN') throw error;
        Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 1);
      }
  };
  const write = (chunk: string | Uint8Array, ...rest: readonly unknown[]): boolean => {
    const lines = (open + (typeof chunk === 'string' ? chunk : Buffer.from(chunk).toString())).split('\n');
    open = lines.pop()!;
    if (lines.length > 0 && isShown) put(lines.map((line) => `${prefix}${line}\n`).join(''));
    const done = rest.find((value) => typeof value === 'function') as (() => void) | undefined;
    if (done !== undefined) queueMicrotask(done);
    return true;
  };
  stream.write = write as typeof stream.write;
  return () => {
    if (open !== '') write('\n');
  };
}

const isShown = shown === undefined || shown.includes(rank);
const prefix = shown?.length === 1 ? '' : `[${rank}] `;
const ends = [relay(process.stdout, 1, prefix), relay(process.stderr, 2, prefix)];
process.once('exit', () => ends.forEach((end) => end()));
process.argv.splice(1, process.argv.length - 1, script, ...args);
await loadModule(script);
