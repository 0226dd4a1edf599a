// What each test file costs, as a full run measured it (test/costs.json), and what follows from it: the order in which files
// run, how long a file may take before it counts as hung, and which tests the quick tier runs.

import { createHash } from 'node:crypto';
import { existsSync, readFileSync } from 'node:fs';

/** Processor seconds of one test file. */
export interface FileCost {
  /** The file as a whole, in the full tier. */
  readonly seconds: number;
  /** Imports and hooks. */
  readonly setup: number;
  /** Tests that cost `leastSeconds` or more, by full name: what each costs in the quick tier. */
  readonly tests: Readonly<Record<string, number>>;
  /** All other tests together. */
  readonly rest: number;
}

/** The costs of files, by path below the root. */
export type Costs = Readonly<Record<string, FileCost>>;

/** What a test costs at least for its name to be kept, in processor seconds. */
export const leastSeconds = 0.03;

/** What the quick tier spends on the tests of a file, in processor seconds: more on a long file than on a short one. */
const allowance = (seconds: number): number => 0.3 + 0.15 * Math.sqrt(seconds);
/** What it spends at most where no test of a file fits into that: on its cheapest test. */
const leastAllowed = 2;
/** Tests that cost no more than this together all run. */
const smallEnough = 0.8;
/** Imports and hooks that cost more than this are left to the full tier, with their file. */
const setupAllowed = 7.5;

/** A file that nobody has measured yet runs as a whole, and takes the time that it takes. */
const unknown: FileCost = { seconds: 60, setup: 0, tests: {}, rest: 0 };

/** The costs in a file of JSON; none are known where there is no such file. */
export function readCosts(path: string): Costs {
  return existsSync(path) ? (JSON.parse(readFileSync(path, 'utf8')) as Costs) : {};
}

export const costOf = (costs: Costs, file: string): FileCost => costs[file] ?? unknown;

/** A number from 0 to 1 that depends on the text alone, so that the same tests are drawn from the same names. */
const draw = (text: string): number => createHash('sha1').update(text).digest().readUInt32BE(0) / 2 ** 32;

/** Which tests of a file the quick tier runs. */
export interface Sample {
  /** Which part of the tests that are not named here run. */
  readonly share: number;
  /** For the others, whether they run. */
  readonly tests: Readonly<Record<string, boolean>>;
}

export const everything: Sample = { share: 1, tests: {} };

export const runs = (sample: Sample, name: string): boolean =>
  sample.tests[name] ?? (sample.share >= 1 || draw(name) < sample.share);

/** What it spends on a file whose tests follow one another, all of which run or none, in processor seconds. */
const wholeAllowed = 12;

/**
 * The quick tier takes the tests of a file that cost next to nothing, or as many of them as fit into what a file may cost, and
 * of the others, in an order drawn from their names in which cheap ones tend to come first, all that fit into what is left.
 */
export function quickSample({ seconds, setup, tests, rest }: FileCost, whole: boolean = false): Sample {
  if (whole) return seconds <= wholeAllowed ? everything : { share: 0, tests: {} };
  const names = Object.keys(tests).toSorted((a, b) => tests[a]! * draw(a) - tests[b]! * draw(b));
  if (setup > setupAllowed)
    return { share: 0, tests: Object.fromEntries(names.map((name) => [name, false])) };
  const all = Object.values(tests).reduce((sum, cost) => sum + cost, rest);
  if (all <= smallEnough) return everything;
  const most = allowance(seconds);
  const share = rest <= most / 2 ? 1 : most / 2 / rest;
  let room = most - rest * share;
  const chosen = new Set<string>();
  for (const name of names) {
    if (tests[name]! > room) continue;
    room -= tests[name]!;
    chosen.add(name);
  }
  const cheapest = names.toSorted((a, b) => tests[a]! - tests[b]!)[0];
  if (chosen.size === 0 && cheapest !== undefined && tests[cheapest]! <= leastAllowed) chosen.add(cheapest);
  return { share, tests: Object.fromEntries(names.map((name) => [name, chosen.has(name)])) };
}

export type Tier = 'quick' | 'full';

/** What a file costs without its tests on the device `native`, which the quick tier does not have (test/support/devices.ts). */
export function withoutNative(cost: FileCost): FileCost {
  const isNative = ([name]: readonly [string, number]): boolean => /\bnative\b/.test(name);
  const tests = Object.entries(cost.tests);
  const left = tests.filter(isNative).reduce((sum, [, seconds]) => sum + seconds, 0);
  return {
    ...cost,
    seconds: Math.max(0, cost.seconds - left),
    tests: Object.fromEntries(tests.filter((one) => !isNative(one))),
  };
}

/** What a file costs in a tier, in processor seconds; `whole` where its tests follow one another. */
export function secondsIn(tier: Tier, cost: FileCost, whole: boolean = false): number {
  if (tier === 'full' || cost === unknown) return cost.seconds;
  if (whole) return cost.seconds * quickSample(cost, whole).share;
  if (cost.setup > setupAllowed) return 0;
  const sample = quickSample(cost);
  const chosen = Object.entries(cost.tests).filter(([name]) => runs(sample, name));
  return chosen.reduce((sum, [, of]) => sum + of, cost.setup + cost.rest * sample.share);
}

/** A test whose cost nobody has measured, or that has grown since. */
export interface Unmeasured {
  readonly file: string;
  readonly test: string;
  readonly seconds: number;
}

/**
 * Tests that cost more than the quick tier takes by choice, and more than three times what is known of them: a busy machine
 * doubles a cost at most. Until they are measured they all run in the quick tier. Dearest first.
 */
export function unmeasuredTests(
  costs: Costs,
  results: readonly {
    readonly file: string;
    readonly costs: readonly { readonly name: string; readonly seconds: number }[];
  }[],
): Unmeasured[] {
  const tests = results.flatMap(({ file, costs: found }) =>
    found
      .filter(({ name, seconds }) => seconds > leastAllowed && seconds > 3 * (costs[file]?.tests[name] ?? 0))
      .map(({ name, seconds }) => ({ file, test: name, seconds })),
  );
  return tests.toSorted((a, b) => b.seconds - a.seconds);
}

/** How long a file may take before it counts as hung, in seconds. */
export interface Limits {
  readonly processor: number;
  readonly wall: number;
  /** Without using the processor: it waits for something that does not come. */
  readonly idle: number;
}

/**
 * Ten times the known cost, and four minutes at least, since costs were measured with warm caches: the first run on a machine
 * compiles what the stand-in for CUDA runs. On the wall four times that, because other work may hold the cores.
 */
export function limitsOf(seconds: number): Limits {
  const processor = Math.max(240, 10 * seconds);
  return { processor, wall: 4 * processor, idle: 60 };
}

/** Splits files into `count` shards of about the same cost, longest first; gives shard `index`, counted from 1. */
export function shardOf(
  files: readonly string[],
  seconds: (file: string) => number,
  index: number,
  count: number,
): string[] {
  const shards = Array.from({ length: count }, () => ({ cost: 0, files: [] as string[] }));
  for (const file of longestFirst(files, seconds)) {
    const lightest = shards.reduce((a, b) => (b.cost < a.cost ? b : a));
    lightest.cost += seconds(file) + 0.1;
    lightest.files.push(file);
  }
  return shards[index - 1]!.files;
}

export const longestFirst = (files: readonly string[], seconds: (file: string) => number): string[] =>
  files.toSorted((a, b) => seconds(b) - seconds(a) || (a < b ? -1 : 1));
