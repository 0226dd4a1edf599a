// Every mutant still fits: its text stands once in its source, and the test that finds it runs in the quick tier.

import { existsSync, readFileSync } from 'node:fs';
import * as path from 'node:path';
import { describe, expect, test } from 'vitest';
import { costOf, quickSample, readCosts } from '../run/costs.ts';
import { mutants } from './mutants.ts';
import { mutated, MutantError } from './text.ts';

const root = path.resolve(import.meta.dirname, '../..');
const costs = readCosts(path.join(root, 'test/costs.json'));
const read = (file: string): string => readFileSync(path.join(root, file), 'utf8');

test('there are at least twenty, each with a name of its own', () => {
  const names = mutants.map(({ name }) => name);
  expect(names.length).toBeGreaterThanOrEqual(20);
  expect(new Set(names).size).toBe(names.length);
});

describe.each(mutants)('$name', (mutant) => {
  test('changes one place of a source', () => {
    expect(mutant.file).toMatch(/^src\//);
    const text = read(mutant.file);
    expect(mutated(mutant, text)).not.toBe(text);
  });

  test('is found by tests of the quick tier', () => {
    expect(mutant.caughtBy).toMatch(/\.test\.ts$/);
    expect(existsSync(path.join(root, mutant.caughtBy))).toBe(true);
    const { share, tests } = quickSample(costOf(costs, mutant.caughtBy));
    expect(share > 0 || Object.values(tests).includes(true)).toBe(true);
  });
});

test('one that does not fit any more is told with what to do', () => {
  const mutant = { ...mutants[0]!, find: 'b' };
  expect(() => mutated(mutant, 'a')).toThrow(MutantError);
  expect(() => mutated(mutant, 'a')).toThrow(`${mutant.name}: \`find\` occurs 0 times in ${mutant.file}`);
  expect(() => mutated(mutant, 'abb')).toThrow(/occurs 2 times[^]*try: take more/);
});
