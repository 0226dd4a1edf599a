// `npm run test:mutants`: puts the defects of mutants.ts into a copy of the checkout, one at a time, and shows that the tests
// of the quick tier that are named beside each fail with it. A file that fails without it too is refused. Ends with
// `N of M found`, and with exit code 1 unless all are. `--help` lists the options.

import * as fs from 'node:fs';
import { tmpdir } from 'node:os';
import * as path from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { runBatch } from '../run/batch.ts';
import { costOf, limitsOf, quickSample, readCosts, secondsIn } from '../run/costs.ts';
import type { FileResult } from '../run/journal.ts';
import { needsIn } from '../run/needs.ts';
import { fixedSeed, matches } from '../run/options.ts';
import { Checkout } from './checkout.ts';
import { type Mutant, mutants } from './mutants.ts';
import { MutantError } from './text.ts';

const root = path.resolve(path.dirname(fileURLToPath(import.meta.url)), '../..');

const usage = `usage: npm run test:mutants -- [options]

Shows that the quick tier of the tests finds the defects of test/mutants/mutants.ts, each put into a copy of the sources.

  --only PATTERN     mutants whose name, file or test holds PATTERN or matches it as a regular expression
  --json             prints a line of JSON for each mutant, and one for all, instead of text
  --help             this text`;

/** What became of a mutant. */
interface Outcome {
  readonly name: string;
  readonly file: string;
  readonly caughtBy: string;
  readonly found: boolean;
  /** The first test that failed. */
  readonly test?: string;
  /** Why it was not found. */
  readonly reason?: string;
  readonly seconds: number;
}

function readOptions(args: readonly string[]) {
  try {
    return parseArgs({
      args: [...args],
      options: {
        only: { type: 'string' },
        json: { type: 'boolean', default: false },
        help: { type: 'boolean', default: false },
      },
    }).values;
  } catch (error) {
    throw new MutantError(`${(error as Error).message}\n\n${usage}`);
  }
}

function chosen(pattern: string | undefined): readonly Mutant[] {
  if (pattern === undefined) return mutants;
  const fits = matches(pattern);
  const found = mutants.filter(({ name, file, caughtBy }) => [name, file, caughtBy].some(fits));
  if (found.length === 0) throw new MutantError(`--only: no mutant fits ${pattern}`);
  return found;
}

/** Runs the quick tier's sample of a test file on the sources of the copy. */
async function runQuick(copy: Checkout, file: string, signal: AbortSignal): Promise<FileResult> {
  const cost = costOf(readCosts(path.join(root, 'test/costs.json')), file);
  const { whole } = needsIn(root)(file);
  const folder = fs.mkdtempSync(path.join(tmpdir(), 'sinter-mutant-run-'));
  const results: FileResult[] = [];
  try {
    await runBatch({
      root: copy.folder,
      folder,
      files: [file],
      needs: { own: false, sources: true },
      sample: () => quickSample(cost, whole),
      limits: () => limitsOf(secondsIn('quick', cost, whole)),
      seed: fixedSeed,
      env: { ...process.env, SINTER_TEST_TIER: 'quick' },
      signal,
      onResult: (result) => results.push(result),
    });
  } finally {
    fs.rmSync(folder, { recursive: true, force: true });
  }
  signal.throwIfAborted();
  const [first, ...more] = results;
  if (first === undefined) throw new MutantError(`${file}: gave no result`);
  return { ...first, failures: [...first.failures, ...more.flatMap(({ failures }) => failures)] };
}

/** What is wrong with a test file that should pass without any mutant; undefined where it does. */
function problemOf({ file, failures, passed }: FileResult): string | undefined {
  const [failure] = failures;
  if (failure !== undefined) {
    const where = [file, failure.test].filter((part) => part !== '').join(' > ');
    return `${where} fails without the mutant too: ${failure.text.split('\n')[0]}; try: npm test -- --only ${file}`;
  }
  if (passed > 0) return undefined;
  return `no test of ${file} runs in the quick tier; try: npm run test:full -- --costs`;
}

/** What the tests say of a mutant. A file that does not even load says nothing of what is wrong. */
function judge({ failures, passed }: FileResult, caughtBy: string): { test: string } | { reason: string } {
  const failed = failures.find(({ test }) => test !== '');
  if (failed !== undefined) return { test: failed.test };
  const [broken] = failures;
  return {
    reason:
      broken === undefined
        ? `${passed} tests of ${caughtBy} pass; try: a small test of it there`
        : `${caughtBy} fails before its tests do: ${broken.text.split('\n')[0]}`,
  };
}

async function main(): Promise<number> {
  const options = readOptions(process.argv.slice(2));
  if (options.help) {
    console.log(usage);
    return 0;
  }
  const rows = chosen(options.only);
  const stop = new AbortController();
  for (const name of ['SIGINT', 'SIGTERM'] as const) process.once(name, () => stop.abort());
  const copy = new Checkout(root);
  const problems = new Map<string, string | undefined>();
  const outcomes: Outcome[] = [];
  try {
    // Tests that look for files where they run find those of the copy.
    process.chdir(copy.folder);
    for (const mutant of rows) {
      const { name, file, caughtBy } = mutant;
      const began = performance.now();
      if (!problems.has(caughtBy))
        problems.set(caughtBy, problemOf(await runQuick(copy, caughtBy, stop.signal)));
      const reason = problems.get(caughtBy);
      const verdict =
        reason === undefined
          ? judge(await copy.with(mutant, () => runQuick(copy, caughtBy, stop.signal)), caughtBy)
          : { reason };
      const seconds = Math.round((performance.now() - began) / 100) / 10;
      const outcome = { name, file, caughtBy, found: 'test' in verdict, ...verdict, seconds };
      outcomes.push(outcome);
      console.log(options.json ? JSON.stringify(outcome) : lineOf(outcome));
    }
  } finally {
    process.chdir(root);
    copy.close();
  }
  const found = outcomes.filter((outcome) => outcome.found).length;
  console.log(options.json ? JSON.stringify({ found, of: rows.length }) : `${found} of ${rows.length} found`);
  return found === rows.length ? 0 : 1;
}

function lineOf({ name, caughtBy, found, test, reason, seconds }: Outcome): string {
  const verdict = found ? 'found    ' : 'NOT FOUND';
  return `${verdict} ${name}: ${found ? `${caughtBy} > ${test}` : reason} (${seconds.toFixed(1)} s)`;
}

try {
  process.exitCode = await main();
} catch (error) {
  if (!(error instanceof MutantError)) throw error;
  console.error(error.message);
  process.exitCode = 2;
}
