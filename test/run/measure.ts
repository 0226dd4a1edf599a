// Writes test/costs.json: what each test file costs, from the results of a full run.

import { writeFileSync } from 'node:fs';
import type { Costs, FileCost } from './costs.ts';
import type { FileResult } from './journal.ts';

/** Two digits that count: more would change with every run. */
const rounded = (value: number): number => Number(value.toPrecision(2));

const sum = (values: readonly number[]): number => values.reduce((a, b) => a + b, 0);

function costOf(result: FileResult): FileCost {
  const { processorSeconds, setupSeconds, costs } = result;
  const tests = costs.toSorted((a, b) => (a.name < b.name ? -1 : 1));
  const rest = processorSeconds - setupSeconds - sum(costs.map(({ seconds }) => seconds));
  return {
    seconds: rounded(processorSeconds),
    setup: rounded(setupSeconds),
    rest: rounded(Math.max(0, rest)),
    tests: Object.fromEntries(tests.map(({ name, seconds }) => [name, rounded(seconds)])),
  };
}

/** The costs after a run: those of the files that ended in it anew, the others' as before, without files that are gone. */
export function measured(before: Costs, results: readonly FileResult[], files: ReadonlySet<string>): Costs {
  const passed = results.filter(({ state }) => state === 'passed');
  const all = { ...before, ...Object.fromEntries(passed.map((result) => [result.file, costOf(result)])) };
  const kept = Object.entries(all).filter(([file]) => files.has(file));
  return Object.fromEntries(kept.toSorted(([a], [b]) => (a < b ? -1 : 1)));
}

/** One line a test, so that a diff shows which ones changed. */
export function writeCosts(file: string, costs: Costs): void {
  writeFileSync(file, `${JSON.stringify(costs, null, 1)}\n`);
}
