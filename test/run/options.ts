// The options of `npm test` and `npm run test:full`.

import { parseArgs } from 'node:util';
import type { Tier } from './costs.ts';

export interface RunOptions {
  readonly tier: Tier;
  /** Which test files: those whose path holds the text or matches it as a regular expression. */
  readonly only: string | undefined;
  /** Of `count` shards, which one: from 1. */
  readonly shard: { readonly index: number; readonly count: number } | undefined;
  readonly resume: boolean;
  /** The revision since which sources have changed. */
  readonly since: string | undefined;
  readonly results: string | undefined;
  readonly workers: number | undefined;
  /** When the run has to have ended, in milliseconds since 1970. */
  readonly deadline: number | undefined;
  readonly writeCosts: boolean;
  readonly json: boolean;
  readonly list: boolean;
}

export const usage = `usage: npm test -- [options]            the quick tier: a fixed sample of the tests
       npm run test:full -- [options]   all tests

  --only PATTERN     test files whose path holds PATTERN or matches it as a regular expression
  --since REV        test files that changed since REV, or import a file that did
  --shard I/N        the I-th of N parts that together are the whole and cost about the same
  --resume           goes on where the last run of the tier was cut; what failed runs again
  --results FILE     where the results go, a line of JSON a test file
                     (default: node_modules/.cache/sinter-tests/TIER.jsonl)
  --workers N        how many files run at once (default: one more than the cores, five at most)
  --deadline MIN     minutes until the run ends; what has not run by then is listed and fails the run
  --costs            writes test/costs.json from what the run measured; of the quick tier, what cost more than was known
  --list             prints the files that would run, and runs nothing
  --json             prints the results as lines of JSON instead of text
  --help             this text

SINTER_SEED repeats the random inputs of an earlier run; the quick tier always draws the same.`;

/** The seed of the quick tier, so that the same commit always gives the same answer. */
export const fixedSeed = 20_261_120;

/** What `--only` chooses: texts that hold the pattern or match it as a regular expression. */
export function matches(pattern: string): (text: string) => boolean {
  let expression: RegExp | undefined;
  try {
    expression = new RegExp(pattern);
  } catch {
    // It is a text then.
  }
  return (text) => text.includes(pattern) || expression?.test(text) === true;
}

/** A mistake in the command line. */
export class UsageError extends Error {}

/** Reads the command line; gives nothing where help is asked for. */
export function readOptions(args: readonly string[], env: NodeJS.ProcessEnv): RunOptions | undefined {
  const { values, positionals } = parse(args);
  if (values.help) return undefined;
  const [tier = 'quick', ...more] = positionals;
  if (tier !== 'quick' && tier !== 'full') throw new UsageError(`no tier is called ${tier}: quick, full`);
  if (more.length > 0) throw new UsageError(`unexpected: ${more.join(' ')}; try: --only ${more[0]}`);
  const minutes = number('--deadline', values.deadline);
  const last = Number(env['SINTER_TEST_DEADLINE'] ?? Number.NaN) * 1000;
  return {
    tier,
    only: values.only,
    shard: values.shard === undefined ? undefined : readShard(values.shard),
    resume: values.resume,
    since: values.since,
    results: values.results,
    workers: number('--workers', values.workers),
    deadline: minutes === undefined ? (Number.isNaN(last) ? undefined : last) : Date.now() + minutes * 60_000,
    writeCosts: values.costs,
    json: values.json,
    list: values.list,
  };
}

function parse(args: readonly string[]) {
  try {
    return parseArgs({
      args: [...args],
      allowPositionals: true,
      options: {
        only: { type: 'string' },
        since: { type: 'string' },
        shard: { type: 'string' },
        resume: { type: 'boolean', default: false },
        results: { type: 'string' },
        workers: { type: 'string' },
        deadline: { type: 'string' },
        costs: { type: 'boolean', default: false },
        list: { type: 'boolean', default: false },
        json: { type: 'boolean', default: false },
        help: { type: 'boolean', default: false },
      },
    });
  } catch (error) {
    throw new UsageError((error as Error).message);
  }
}

function number(name: string, text: string | undefined): number | undefined {
  if (text === undefined) return undefined;
  const value = Number(text);
  if (!(value > 0)) throw new UsageError(`${name}: ${text} is no positive number`);
  return value;
}

function readShard(text: string): { readonly index: number; readonly count: number } {
  const [, index, count] = /^(\d+)\/(\d+)$/.exec(text)?.map(Number) ?? [];
  if (index === undefined || count === undefined || index < 1 || index > count)
    throw new UsageError(`--shard: ${text} is none; expected I/N with 1 ≤ I ≤ N, such as 1/2`);
  return { index, count };
}
