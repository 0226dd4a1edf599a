// profile: what a piece of work does to the device and to the host: each kernel with its time, each
// compilation with its reason, bytes brought up and down, and all of it as a trace for Perfetto's
// viewer. Programs run step by step meanwhile (`../profile.ts`), so that the device's clock can
// time every kernel; results are those of ordinary runs.

import { synchronize } from '../device.ts';
import { novelties } from '../evaluate/cache.ts';
import { noveltyOf } from '../evaluate/structure.ts';
import { expectFunction } from '../expect.ts';
import { spansOf } from '../report/spans.ts';
import { onCompile, type CompileEvent } from '../report/compiles.ts';
import { currentSession, withSession } from '../session.ts';
import type { Profile } from './profiled.ts';
import { stats, type Stats } from '../report/stats.ts';

export type { Profile, ProfiledKernel } from './profiled.ts';

/** From here on there are words for why operations are compiled once more. Node has them from the start (preloaded.ts). */
export function tellNovelties(): void {
  novelties.fill(noveltyOf);
}

/**
 * Calls `fn` once and waits until everything that it asked the device for is done. Kernels run one
 * by one meanwhile: the whole takes longer than without, each kernel does not. The first call
 * compiles; profile a later one to see what every further one takes. One profile at a time.
 */
export async function profile<T>(fn: () => T | Promise<T>): Promise<Profile<T>> {
  expectFunction('profile', fn);
  tellNovelties();
  const session = currentSession();
  const within = <R>(call: () => R): R => withSession(session, call);
  // What was asked for before is not of this profile.
  await synchronize();
  const before = stats();
  const compiles: CompileEvent[] = [];
  const stop = within(() => onCompile((event) => compiles.push(event)));
  const start = performance.now();
  try {
    const { value, spans, device } = await within(() =>
      spansOf(async () => {
        const given = await fn();
        await within(synchronize);
        return given;
      }),
    );
    const milliseconds = performance.now() - start;
    const kernels = spans.map(({ run, nanoseconds, start: at, ...span }) => ({
      ...span,
      program: run,
      microseconds: nanoseconds === undefined ? undefined : nanoseconds / 1000,
      at: at - start,
    }));
    const made = await import('./profiled.ts');
    return new made.Profile(
      value,
      device ?? 'no device',
      start,
      milliseconds,
      kernels,
      compiles,
      differenceOf(before, stats()),
    );
  } finally {
    stop();
  }
}

function differenceOf(before: Stats, after: Stats): Stats {
  const { bytes: was, live: held, ...counted } = before;
  const { bytes: now, live: holding, ...counting } = after;
  const minus = <K extends string>(
    a: Readonly<Record<K, number>>,
    b: Readonly<Record<K, number>>,
  ): Record<K, number> =>
    Object.fromEntries((Object.keys(a) as K[]).map((key) => [key, a[key] - b[key]])) as Record<K, number>;
  return { ...minus(counting, counted), bytes: minus(now, was), live: minus(holding, held) };
}
