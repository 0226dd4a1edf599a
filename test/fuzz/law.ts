// What every reader keeps to, whatever it is given: it reads, or refuses by an error of the project, in time and memory by the size of
// what it was given; it fetches nothing from outside of a file's folder, and leaves prototypes alone.

import { afterAll, beforeAll, expect } from 'vitest';
import { setDevice, SinterError } from '../../src/index.ts';
import { seed } from '../support/property.ts';
import { casesOf } from '../support/sample.ts';
import { cpuTimeOf } from '../support/cpu-time.ts';
import { drawsOf, type Draw } from './mutate.ts';

/** A reader, and what it is given in a case. */
export interface Subject<Given> {
  /** What is not changed, and is read. */
  readonly whole: readonly Given[];
  readonly make: (draw: Draw) => Given;
  readonly read: (given: Given) => unknown;
  readonly sizeOf: (given: Given) => number;
  /** Whether an error that is none of this realm's classes is the project's, as those of bundles are. */
  readonly isOwn?: (error: unknown) => boolean;
}

/** The folder of the files that are fetched. */
export const home: string = 'http://a.test/m/';
/** What lies there, and what was asked for elsewhere. */
export const served: Map<string, Uint8Array> = new Map();
const strayed: string[] = [];

/** Milliseconds of processor time and bytes: those of any case, and those for each byte given. */
/** A decoder in a thread is ended after a second, and takes some time to start. */
const [leastTime, timePerByte] = [1500, 1e-3] as const;
const [leastMemory, memoryPerByte] = [2 ** 26, 8] as const;
/** Bytes that the engine takes for itself, such as code that it compiles meanwhile. */
const ownMemory = 2 ** 24;

const realFetch = globalThis.fetch;
beforeAll(() => {
  setDevice('interpreter');
  globalThis.fetch = (async (source: string | URL) => {
    const { href } = new URL(source);
    if (!href.startsWith(home)) strayed.push(href);
    const bytes = served.get(decodeURIComponent(href.slice(home.length)));
    return bytes === undefined
      ? new Response(null, { status: 404 })
      : new Response(bytes as Uint8Array<ArrayBuffer>);
  }) as typeof fetch;
});
afterAll(() => {
  globalThis.fetch = realFetch;
  setDevice(undefined);
});

const prototypes = [Object, Array, Function, String, Promise, Map].map(
  ({ prototype }): object => prototype as object,
);
const properties = (): unknown[] => prototypes.flatMap((prototype) => Reflect.ownKeys(prototype));

function inUse(): number {
  const { heapUsed, external } = process.memoryUsage();
  return heapUsed + external;
}

/** Gives a reader `count` mutations, in the quick tier `quick` of them. */
export async function keepsTo<Given>(subject: Subject<Given>, count: number, quick: number): Promise<void> {
  console.log(`mutations from SINTER_SEED=${seed}`);
  for (const given of subject.whole) await subject.read(given);
  const wrong: string[] = [];
  const before = properties();
  const tried = casesOf(count, quick);
  const only = process.env['SINTER_FUZZ_CASE'];
  let refused = 0;
  for (let i = only === undefined ? 0 : Number(only); i < tried && wrong.length < 5; i++) {
    const given = subject.make(drawsOf(seed, i));
    if (process.env['SINTER_FUZZ_TRACE'] !== undefined) process.stderr.write(`case ${i}\n`);
    const say = (problem: string): void => {
      wrong.push(`case ${i}: ${problem}: ${show(given)}`);
    };
    const size = subject.sizeOf(given);
    const memory = inUse();
    const time = await cpuTimeOf(async () => {
      try {
        const found = await subject.read(given);
        if (isOdd(found)) say('the result has another prototype');
      } catch (error) {
        refused++;
        const isOwn = subject.isOwn?.(error) ?? error instanceof SinterError;
        const isBug = (error as { code?: unknown }).code === 'E_BUG';
        if (!isOwn || isBug) say(`not typed: ${String((error as Error).stack ?? error).slice(0, 600)}`);
      }
    });
    const taken = inUse() - memory;
    if (time > leastTime + timePerByte * size) say(`${time} ms`);
    if (taken > leastMemory + memoryPerByte * size + ownMemory) say(`${taken} bytes of memory`);
    if (strayed.length > 0) say(`fetched ${strayed.splice(0).join(', ')}`);
    if (only !== undefined) break;
  }
  expect(wrong).toEqual([]);
  expect(properties()).toEqual(before);
  // Mutations that nobody notices would test nothing.
  console.log(`${refused} of ${tried} were refused`);
  if (only === undefined) expect(refused).toBeGreaterThan(tried / 20);
}

/** Whether an object has a prototype that a name in a file gave it. */
function isOdd(found: unknown): boolean {
  if (typeof found !== 'object' || found === null) return false;
  const prototype: unknown = Object.getPrototypeOf(found);
  return prototype !== null && !Object.hasOwn(prototype as object, 'constructor');
}

function show(given: unknown): string {
  if (given instanceof Uint8Array) return `bytes ${Buffer.from(given).toString('base64').slice(0, 2000)}`;
  return JSON.stringify(given)?.slice(0, 2000) ?? '';
}
