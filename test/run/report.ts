// What a run says of itself: a line a file while it runs, and at the end what failed, what cost most and how much there was.

import { type Costs, unmeasuredTests } from './costs.ts';
import type { FileResult } from './journal.ts';

const seconds = (value: number): string => `${value.toFixed(1)} s`;

/** One file's line. */
export function lineOf(result: FileResult, done: number, all: number): string {
  const { state, file, passed, failures, skips, left } = result;
  const counts = [
    `${passed} passed`,
    ...(failures.length > 0 ? [`${failures.length} failed`] : []),
    ...(skips.length > 0 ? [`${skips.length} skipped`] : []),
    ...(left > 0 ? [`${left} left to the full tier`] : []),
  ];
  const mark = state === 'passed' ? '✓' : '✗';
  return `${mark} [${done}/${all}] ${file}: ${counts.join(', ')}; ${seconds(result.processorSeconds)}`;
}

/** What failed in a file. */
export function failuresOf({ file, failures }: FileResult): string[] {
  return failures.map(({ test, text }) => `✗ ${file}${test === '' ? '' : ` > ${test}`}\n${indent(text)}`);
}

const indent = (text: string): string =>
  text
    .split('\n')
    .map((line) => `    ${line}`)
    .join('\n');

/** The results by file: of two about one file, what either found. */
export function byFile(results: readonly FileResult[]): FileResult[] {
  const merged = new Map<string, FileResult>();
  for (const result of results) {
    const before = merged.get(result.file);
    merged.set(
      result.file,
      before === undefined
        ? result
        : {
            ...before,
            state: before.state === 'failed' ? 'failed' : result.state,
            failures: [...before.failures, ...result.failures],
          },
    );
  }
  return [...merged.values()];
}

export interface Ending {
  readonly tier: string;
  readonly seed: number;
  readonly results: readonly FileResult[];
  /** What was known of the costs before the run. */
  readonly costs: Costs;
  /** Files that had no time left. */
  readonly unrun: readonly string[];
  /** Processor seconds of the run as a whole, the workers' own included. */
  readonly processorSeconds: number;
  readonly wallSeconds: number;
}

const folderOf = (file: string): string => /^test\/([^/]+)\//.exec(file)?.[1] ?? 'test';

/** The end of the output; its last line counts the tests. */
export function endingOf(ending: Ending): string[] {
  const { results, unrun, tier, costs } = ending;
  const sum = (of: (result: FileResult) => number): number =>
    results.reduce((total, each) => total + of(each), 0);
  const slowest = results.toSorted((a, b) => b.processorSeconds - a.processorSeconds).slice(0, 10);
  const rooms = new Map<string, number>();
  for (const { file, processorSeconds } of results)
    rooms.set(folderOf(file), (rooms.get(folderOf(file)) ?? 0) + processorSeconds);
  const dearest = [...rooms].toSorted(([, a], [, b]) => b - a);
  const failed = sum(({ failures }) => failures.length) + unrun.length;
  const left = sum((each) => each.left);
  const unmeasured = unmeasuredTests(costs, results);
  return [
    ...results.flatMap(({ file, skips }) =>
      skips.map(({ test, reason }) => `skipped: ${file} > ${test}: ${reason}`),
    ),
    ...results.flatMap(failuresOf),
    ...unrun.map((file) => `✗ ${file}: there was no time left to run it`),
    '',
    'slowest files, in processor seconds:',
    ...slowest.map(({ file, processorSeconds }) => `${seconds(processorSeconds).padStart(9)}  ${file}`),
    ...(unmeasured.length === 0
      ? []
      : ['tests that cost far more than test/costs.json says (`--costs` measures them):']),
    ...unmeasured.map(({ file, test, seconds: cost }) => `${seconds(cost).padStart(9)}  ${file} > ${test}`),
    `by folder: ${dearest.map(([name, cost]) => `${name} ${cost.toFixed(0)}`).join(', ')}`,
    `${tier} tier: ${seconds(ending.processorSeconds)} of processor time in ${seconds(ending.wallSeconds)}; ` +
      `${results.length} files, ${left} tests left to the full tier; SINTER_SEED=${ending.seed}`,
    `${sum(({ passed }) => passed)} passed, ${failed} failed, ${sum(({ skips }) => skips.length)} skipped`,
  ];
}
