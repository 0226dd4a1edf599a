// The collector on demand: what tests of memory measure is what is held, not when the engine last looked.

import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';

setFlagsFromString('--expose-gc');

/** Collects everything unreachable; what finalizers and weak references see follows a turn later. */
export const collect = runInNewContext('gc') as () => void;

/** Bytes of memory that this process holds besides the engine's own heap, which is as large as the collector lets it be. */
export function nativeBytes(): number {
  const { rss, heapTotal } = process.memoryUsage();
  return rss - heapTotal;
}

/** Collects until a figure falls no more: finalizers free what others refer to, and run when the engine likes. */
export async function settledAt(figure: () => number): Promise<number> {
  for (let [least, still] = [Infinity, 0]; still < 3;) {
    collect();
    await new Promise((resolve) => setTimeout(resolve, 1));
    const now = figure();
    still = now < least ? 0 : still + 1;
    least = Math.min(least, now);
  }
  return figure();
}
