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

const gone = new FinalizationRegistry<() => void>((tell) => tell());

/** Collects, and waits until a finalizer ran for an object that nothing held. */
async function collected(): Promise<void> {
  await new Promise<void>((resolve) => {
    let waiting: NodeJS.Timeout | undefined;
    const again = (): void => {
      collect();
      waiting = setTimeout(again, 50); // What is still on the stack is collected the next time.
    };
    gone.register({}, () => {
      clearTimeout(waiting);
      resolve();
    });
    again();
  });
}

/**
 * Collects, and waits until the finalizers of all that was unreachable have run. The engine runs the finalizers of one registry
 * after another, those of the later collection behind those of the earlier one: so two collections are enough.
 */
export async function finalized(): Promise<void> {
  await collected();
  await collected();
}

/** Collects until a figure falls no more: a finalizer may free what another waits for. */
export async function settledAt(figure: () => number): Promise<number> {
  for (let before = Infinity; ;) {
    await finalized();
    const now = figure();
    if (now >= before) return now;
    before = now;
  }
}
