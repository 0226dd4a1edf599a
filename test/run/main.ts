// `npm test` and `npm run test:full`: the tests, in workers that are watched over. Vitest runs the tests of a batch of files
// (vitest.config.ts, worker/); this program decides which files and tests run (costs.ts, since.ts), ends what hangs (batch.ts,
// group.ts), and keeps the results (journal.ts). `--help` lists the options.

import { execFileSync } from 'node:child_process';
import * as fs from 'node:fs';
import { availableParallelism, tmpdir } from 'node:os';
import * as path from 'node:path';
import { fileURLToPath } from 'node:url';
import { costOf, type Costs, readCosts, secondsIn, shardOf, type Tier, withoutNative } from './costs.ts';
import { ownSeconds } from './group.ts';
import { type FileResult, openJournal, readJournal, type RunHeader } from './journal.ts';
import { measured, writeCosts } from './measure.ts';
import { needsIn, type Needs, testFiles } from './needs.ts';
import { fixedSeed, matches, readOptions, type RunOptions, usage, UsageError } from './options.ts';
import { byFile, endingOf, lineOf } from './report.ts';
import { runFiles } from './run.ts';
import { affectedSince } from './since.ts';

const root = path.resolve(path.dirname(fileURLToPath(import.meta.url)), '../..');
const costsFile = path.join(root, 'test/costs.json');

function chosenFiles(options: RunOptions, seconds: (file: string) => number): string[] {
  let files = testFiles(root).toSorted();
  if (options.only !== undefined) files = files.filter(matches(options.only));
  if (options.since !== undefined) {
    const affected = affectedSince(root, options.since, files);
    files = files.filter((file) => affected.has(file));
  }
  if (options.shard !== undefined)
    files = shardOf(files, seconds, options.shard.index, options.shard.count).toSorted();
  return files;
}

function quickCosts(costs: Costs, needsOf: (file: string) => Needs): Costs {
  const entries = Object.entries(costs).filter(([file]) => fs.existsSync(path.join(root, file)));
  return Object.fromEntries(
    entries.map(([file, cost]) => [file, needsOf(file).native ? withoutNative(cost) : cost]),
  );
}

function commit(): string {
  try {
    return execFileSync('git', ['rev-parse', '--short', 'HEAD'], { cwd: root, encoding: 'utf8' }).trim();
  } catch {
    return 'unknown';
  }
}

function seedOf(tier: Tier, earlier: RunHeader | undefined): number {
  const given = process.env['SINTER_SEED'];
  if (given !== undefined) return Number(given);
  return tier === 'quick' ? fixedSeed : (earlier?.seed ?? Date.now() % 2 ** 31);
}

/** Aborts at the deadline, or when the run is interrupted. */
function endOf(deadline: number | undefined): AbortSignal {
  const stop = new AbortController();
  for (const name of ['SIGINT', 'SIGTERM'] as const) process.once(name, () => stop.abort());
  // A timer counts no more than 24 days.
  const rest = Math.min((deadline ?? Infinity) - Date.now(), 2 ** 31 - 1);
  setTimeout(() => stop.abort(), Math.max(0, rest)).unref();
  return stop.signal;
}

async function main(): Promise<number> {
  const options = readOptions(process.argv.slice(2), process.env);
  if (options === undefined) {
    console.log(usage);
    return 0;
  }
  const began = performance.now();
  const { tier, json } = options;
  const known = readCosts(costsFile);
  const needsOf = needsIn(root);
  const costs = tier === 'quick' ? quickCosts(known, needsOf) : known;
  const seconds = (file: string): number => secondsIn(tier, costOf(costs, file), needsOf(file).whole);
  const files = chosenFiles(options, seconds);
  if (options.list) {
    for (const file of files) console.log(json ? JSON.stringify({ file, seconds: seconds(file) }) : file);
    return 0;
  }
  const place = options.results ?? path.join(root, 'node_modules/.cache/sinter-tests', `${tier}.jsonl`);
  const earlier = options.resume ? readJournal(place) : undefined;
  if (options.resume && earlier === undefined) throw new UsageError(`--resume: ${place} holds no run`);
  if (earlier !== undefined && earlier.header.tier !== tier)
    throw new UsageError(`--resume: ${place} is of the ${earlier.header.tier} tier`);
  const header: RunHeader = {
    tier,
    seed: seedOf(tier, earlier?.header),
    commit: commit(),
    began: new Date().toISOString(),
  };
  const wanted = new Set(files);
  const kept = byFile(earlier?.results ?? []).filter(
    ({ file, state }) => state === 'passed' && wanted.has(file),
  );
  const journal = openJournal(place, header, kept);
  const note = (line: string): void => {
    if (!json) console.log(line);
  };
  note(
    `${tier} tier: ${files.length} files; SINTER_SEED=${header.seed}; results: ${path.relative(root, place)}`,
  );
  if (earlier !== undefined) {
    note(`${kept.length} files passed before, at ${earlier.header.commit}; this is ${header.commit}`);
  }
  // What programs of the stand-in cost is measured where none is compiled yet.
  const fresh = options.writeCosts ? fs.mkdtempSync(path.join(tmpdir(), 'sinter-costs-')) : undefined;
  if (fresh !== undefined) process.env['TMPDIR'] = fresh;
  const results: FileResult[] = [...kept];
  const already = new Set(kept.map(({ file }) => file));
  const unrun = await runFiles({
    root,
    tier,
    files: files.filter((file) => !already.has(file)),
    costs,
    seconds,
    needsOf,
    measuring: options.writeCosts,
    seed: header.seed,
    // One more than there are cores: tests wait for processes, servers and limits of time that they start.
    workers: options.workers ?? Math.min(5, availableParallelism() + 1),
    signal: endOf(options.deadline),
    onResult(result) {
      journal.add(result);
      results.push(result);
      if (json) console.log(JSON.stringify(result));
      else {
        console.log(lineOf(result, byFile(results).length, files.length));
        for (const { test } of result.failures) console.log(`  ✗ ${test}`);
      }
    },
  });
  const merged = byFile(results);
  const lines = endingOf({
    tier,
    seed: header.seed,
    results: merged,
    costs,
    unrun,
    processorSeconds: ownSeconds(),
    wallSeconds: (performance.now() - began) / 1000,
  });
  for (const line of json ? lines.slice(-1) : lines) console.log(line);
  if (fresh !== undefined) fs.rmSync(fresh, { recursive: true, force: true });
  if (options.writeCosts) writeCosts(costsFile, measured(tier, known, merged, new Set(testFiles(root))));
  return unrun.length > 0 || merged.some(({ state }) => state === 'failed') || merged.length === 0 ? 1 : 0;
}

try {
  process.exitCode = await main();
} catch (error) {
  if (!(error instanceof UsageError)) throw error;
  console.error(`${error.message}\n\n${usage}`);
  process.exitCode = 2;
}
