// Schedules for `sinter build`: those of a file, and with --tune those that are the fastest on the
// devices of this machine.

import { readFile } from 'node:fs/promises';
import type { FindBundleSchedules } from '../../aot/bundle.ts';
import { setDevice } from '../../index.ts';
import type { BundleTarget } from '../../bundle-runtime/manifest.ts';
import { device } from '../../tensor/device.ts';
import { parseBook, type Book } from '../../tune/book.ts';
import { partsOfKey, problemKey } from '../../tune/key.ts';
import { schedulesFor } from '../../tune/tune.ts';
import { text, UsageError, type Output, type OptionValues } from '../command.ts';

export interface BuildSchedules {
  readonly find: FindBundleSchedules;
  /** How many kinds of contractions have a schedule from there, by target. */
  counts(): Readonly<Partial<Record<BundleTarget, number>>>;
}

type Device = Awaited<ReturnType<typeof device>>;

/**
 * What --schedules and --tune ask for; undefined where they do not. Throws UsageError at a file
 * that is not there.
 */
export async function buildSchedules(
  values: OptionValues,
  output: Output,
): Promise<BuildSchedules | undefined> {
  const file = text(values, 'schedules');
  const tune = values['tune'] === true;
  if (file === undefined && !tune) return undefined;
  const book = file === undefined ? new Map() : parseBook(file, await contentOf(file));
  const used = new Map<BundleTarget, Set<string>>();
  const opened = new Map<BundleTarget, Promise<Device | undefined>>();
  const find: FindBundleSchedules = async (name, graph, target, options) => {
    const pinned = ofTarget(book, name, file ?? '');
    let measured: Awaited<ReturnType<typeof schedulesFor>> | undefined;
    if (tune) {
      const opening = opened.get(name) ?? tunable(name, output);
      opened.set(name, opening);
      const on = await opening;
      // What the file has is not measured again.
      const known = on && new Map([...book].filter(([key]) => pinned.has(partsOfKey(key)[0])));
      if (on !== undefined)
        measured = await schedulesFor(
          graph,
          on,
          options,
          known,
          {},
          {
            target,
            onProgress: (done, total) =>
              output.live(`build: measuring on ${name}, kernel ${done + 1} of ${total}`),
          },
        );
    }
    return (problem) => {
      const key = problemKey(problem);
      const schedule = pinned.get(key) ?? measured?.(problem);
      if (schedule !== undefined) used.set(name, (used.get(name) ?? new Set()).add(key));
      return schedule;
    };
  };
  return { find, counts: () => Object.fromEntries([...used].map(([name, keys]) => [name, keys.size])) };
}

async function contentOf(file: string): Promise<string> {
  try {
    return await readFile(file, 'utf8');
  } catch (error) {
    throw new UsageError(`--schedules: ${file} cannot be read: ${(error as Error).message}`);
  }
}

/**
 * A file's schedules for a target by their problems: the machine that they were measured on need
 * not be here.
 */
function ofTarget(book: Book, name: BundleTarget, file: string): Book {
  const machines = new Set<string>();
  const found = [...book].flatMap(([key, schedule]) => {
    const [problem, machine] = partsOfKey(key);
    if (!new RegExp(`^${name}[: ]`).test(machine)) return [];
    machines.add(machine);
    return [[problem, schedule] as const];
  });
  if (machines.size > 1)
    throw new UsageError(
      `--schedules: ${file} has those of several machines for ${name}:\n  ${[...machines].join('\n  ')}\n  try: a file with those of one`,
    );
  return new Map(found);
}

/**
 * The device to measure on; undefined, and said why, where there is none that stands for those that
 * the bundle will run on.
 */
async function tunable(name: BundleTarget, output: Output): Promise<Device | undefined> {
  const skip = (reason: string): undefined => {
    output.note(`build: --tune: nothing is measured for ${name}: ${reason}`);
    return undefined;
  };
  try {
    setDevice(name);
    const found = await device();
    return found.facts.software && name === 'webgpu' ? skip('what is here is no GPU, but software') : found;
  } catch (error) {
    return skip((error as Error).message.split('\n')[0]!);
  } finally {
    setDevice('wasm');
  }
}
