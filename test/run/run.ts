// Runs test files in batches, a few workers at once, and gathers the results.

import * as fs from 'node:fs';
import { tmpdir } from 'node:os';
import * as path from 'node:path';
import { runBatch } from './batch.ts';
import { type Costs, costOf, limitsOf, longestFirst, quickSample, type Sample, type Tier } from './costs.ts';
import type { FileResult } from './journal.ts';
import { keyOf, type Needs } from './needs.ts';

export interface RunPlan {
  readonly root: string;
  readonly tier: Tier;
  readonly files: readonly string[];
  readonly costs: Costs;
  /** What a file costs in the tier, in processor seconds. */
  readonly seconds: (file: string) => number;
  readonly needsOf: (file: string) => Needs;
  /** Costs are being measured, and no limit follows from those that are known. */
  readonly measuring: boolean;
  readonly seed: number;
  readonly workers: number;
  /** Aborts when the run has to end; what runs then is ended with all that it started. */
  readonly signal: AbortSignal;
  readonly onResult: (result: FileResult) => void;
}

/** Processor seconds after which a worker gives way to a new one, so that none keeps what many files left behind. */
const batchSeconds = 80;
const batchFiles = 150;
/** Processor seconds for which a worker is started at least, unless less is left: its own start costs three. */
const startedFor = 12;
/** What a file costs besides, however little its tests do. */
const fileSeconds = 0.15;

/** Runs the files of a plan, those that measure last and one after another; gives those that had no time left to run. */
export async function runFiles(plan: RunPlan): Promise<string[]> {
  // A file of which nothing runs measures nothing.
  const isAlone = (file: string): boolean => plan.needsOf(file).alone && plan.seconds(file) > 0;
  const others = plan.files.filter((file) => !isAlone(file));
  const unrun = await runTogether({ ...plan, files: others });
  return [...unrun, ...(await runTogether({ ...plan, files: plan.files.filter(isAlone), workers: 1 }))];
}

/** Runs files beside one another; gives those that had no time left to run. */
async function runTogether(plan: RunPlan): Promise<string[]> {
  const { root, tier, costs, seconds, seed, needsOf } = plan;
  const kindOf = (file: string): string => keyOf(needsOf(file));
  const sampleOf = (file: string): Sample => quickSample(costOf(costs, file), needsOf(file).whole);
  let waiting = longestFirst(plan.files, seconds);
  const folder = fs.mkdtempSync(path.join(tmpdir(), 'sinter-tests-'));
  let batches = 0;

  /** Takes files for one worker: at the end of a run few at a time, so that all workers end together. */
  const take = (): string[] => {
    const [first] = waiting;
    if (first === undefined) return [];
    const weight = (file: string): number => seconds(file) + fileSeconds;
    const rest = waiting.reduce((sum, file) => sum + weight(file), 0);
    const share = plan.workers === 1 ? rest : rest / plan.workers / 2;
    const most = Math.min(batchSeconds, Math.max(startedFor, share));
    const taken: string[] = [];
    let cost = 0;
    for (const file of waiting) {
      if (kindOf(file) !== kindOf(first) || taken.length >= batchFiles) continue;
      if (taken.length > 0 && cost + weight(file) > most) continue;
      taken.push(file);
      cost += weight(file);
    }
    const set = new Set(taken);
    waiting = waiting.filter((file) => !set.has(file));
    return taken;
  };

  const work = async (): Promise<void> => {
    while (!plan.signal.aborted) {
      const files = take();
      if (files.length === 0) return;
      batches += 1;
      const needs = needsOf(files[0]!);
      const back = await runBatch({
        root,
        folder: path.join(folder, String(batches)),
        files,
        needs,
        sample: (file) => (tier === 'quick' ? sampleOf(file) : undefined),
        limits: (file) => limitsOf(plan.measuring ? Math.max(60, seconds(file)) : seconds(file)),
        seed,
        env: {
          ...process.env,
          SINTER_TEST_TIER: tier,
          // Scripts in TypeScript that tests start import the package as it is built, as those of users do.
          ...(needs.sources ? {} : { TSX_TSCONFIG_PATH: path.join(root, 'test/run/on-build.tsconfig.json') }),
        },
        signal: plan.signal,
        onResult: plan.onResult,
      });
      waiting = longestFirst([...waiting, ...back], seconds);
    }
  };
  await Promise.all(Array.from({ length: plan.workers }, work));
  fs.rmSync(folder, { recursive: true, force: true });
  return waiting;
}
