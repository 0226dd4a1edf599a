// Writes test/costs.json: what each test file costs, from the results of a run.

import { writeFileSync } from 'node:fs';
import type { Costs, FileCost, Tier } from './costs.ts';
import type { FileResult } from './journal.ts';

/** Two digits that count: more would change with every run. */
const rounded = (value: number): number => Number(value.toPrecision(2));

function costOf(result: FileResult): FileCost {
  const { processorSeconds, setupSeconds, restSeconds, costs } = result;
  const tests = costs.toSorted((a, b) => (a.name < b.name ? -1 : 1));
  return {
    seconds: rounded(processorSeconds),
    setup: rounded(setupSeconds),
    rest: rounded(restSeconds),
    tests: Object.fromEntries(tests.map(({ name, seconds }) => [name, rounded(seconds)])),
  };
}

/**
 * What a quick run adds to a known cost: tests may cost more there, where none before them compiled what they need. What is
 * known of imports and hooks stays: the first file of a run pays for what all others find.
 */
function raised(known: FileCost, result: FileResult): FileCost {
  const dearer = result.costs.filter(({ name, seconds }) => rounded(seconds) > (known.tests[name] ?? 0));
  const tests = {
    ...known.tests,
    ...Object.fromEntries(dearer.map(({ name, seconds }) => [name, rounded(seconds)])),
  };
  return {
    ...known,
    tests: Object.fromEntries(Object.entries(tests).toSorted(([a], [b]) => (a < b ? -1 : 1))),
  };
}

/** The costs after a run: those of the files that passed in it anew, the others' as before, without files that are gone. */
export function measured(
  tier: Tier,
  before: Costs,
  results: readonly FileResult[],
  files: ReadonlySet<string>,
): Costs {
  const passed = results.filter(({ state }) => state === 'passed');
  const entries = passed.map((result): [string, FileCost] => {
    const known = before[result.file];
    return [result.file, tier === 'quick' && known !== undefined ? raised(known, result) : costOf(result)];
  });
  const all = { ...before, ...Object.fromEntries(entries) };
  const kept = Object.entries(all).filter(([file]) => files.has(file));
  return Object.fromEntries(kept.toSorted(([a], [b]) => (a < b ? -1 : 1)));
}

/** One line a test, so that a diff shows which ones changed. */
export function writeCosts(file: string, costs: Costs): void {
  writeFileSync(file, `${JSON.stringify(costs, null, 1)}\n`);
}
