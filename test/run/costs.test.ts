// What a known cost decides: the order, the limits, the shards, and which tests are in the quick tier.

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import {
  costOf,
  everything,
  type FileCost,
  limitsOf,
  longestFirst,
  quickSample,
  readCosts,
  runs,
  secondsIn,
  shardOf,
  unmeasuredTests,
  withoutNative,
} from './costs.ts';
import { measured } from './measure.ts';
import type { FileResult } from './journal.ts';
import { testFiles } from './needs.ts';
import { processorSeconds } from './worker/seconds.ts';

/** A file with one test of ten seconds, thirty of a tenth, and a matrix of many that cost next to nothing. */
const file: FileCost = {
  seconds: 20,
  setup: 0.5,
  tests: { long: 10, ...Object.fromEntries(Array.from({ length: 30 }, (_, i) => [`case ${i}`, 0.1])) },
  rest: 6.5,
};

describe('the quick tier', () => {
  test('takes what fits, the same each time, and never what costs more than a file may', () => {
    const sample = quickSample(file);
    expect(sample).toEqual(quickSample(structuredClone(file)));
    expect(sample.tests['long']).toBe(false);
    const taken = Object.values(sample.tests).filter(Boolean).length;
    expect(taken).toBeGreaterThan(2);
    expect(taken).toBeLessThan(30);
    expect(secondsIn('quick', file)).toBeLessThan(2.5);
    expect(secondsIn('full', file)).toBe(20);
  });

  test('leaves the tests on compiled C to the full tier, and gives their room to others', () => {
    const names = ['on wasm > x', 'on native > x', 'kernels compute it: native', 'alternatives'];
    const cost = { seconds: 9, setup: 1, tests: Object.fromEntries(names.map((name) => [name, 2])), rest: 0 };
    expect(withoutNative(cost)).toEqual({
      seconds: 5,
      setup: 1,
      tests: { 'on wasm > x': 2, alternatives: 2 },
      rest: 0,
    });
  });

  test('takes all of a file that costs little, and what nobody has measured', () => {
    expect(runs(quickSample({ seconds: 0.4, setup: 0.1, tests: { a: 0.2 }, rest: 0.1 }), 'a')).toBe(true);
    expect(runs(quickSample({ ...file, rest: 0.1 }), 'new')).toBe(true);
    expect(runs(everything, 'anything')).toBe(true);
  });

  test('takes a part of many tests that are not known one by one', () => {
    const sample = quickSample(file);
    const names = Array.from({ length: 1000 }, (_, i) => `cell ${i}`);
    const taken = names.filter((name) => runs(sample, name)).length / 1000;
    expect(Math.abs(taken - sample.share)).toBeLessThan(0.05);
    expect(sample.share).toBeLessThan(0.2);
  });
});

test('of a file whose tests all cost much the quick tier takes the cheapest, and none behind hooks that cost more', () => {
  const cost: FileCost = { seconds: 9, setup: 0.1, tests: { a: 4, b: 2, c: 2.4 }, rest: 0 };
  expect(quickSample(cost).tests).toEqual({ a: false, b: true, c: false });
  expect(quickSample({ ...cost, tests: { a: 4, b: 5 } }).tests).toEqual({ a: false, b: false });
  expect(quickSample({ ...cost, setup: 30 })).toEqual({ share: 0, tests: { a: false, b: false, c: false } });
  expect(secondsIn('quick', { ...cost, setup: 30 })).toBe(0);
});

test('a file may take ten times its cost, and four minutes at least', () => {
  expect(limitsOf(0.2)).toEqual({ processor: 240, wall: 960, idle: 60 });
  expect(limitsOf(30)).toEqual({ processor: 300, wall: 1200, idle: 60 });
});

test('a file that nobody has measured may take its time in either tier', () => {
  for (const tier of ['quick', 'full'] as const)
    expect(limitsOf(secondsIn(tier, costOf({}, 'new'))).processor).toBe(600);
});

test('tests that cost far more than is known of them are named, dearest first', () => {
  const costs = [
    { name: 'long', seconds: 29 },
    { name: 'case 1', seconds: 3 },
    { name: 'new', seconds: 12 },
    { name: 'new, and cheap', seconds: 2 },
  ];
  expect(unmeasuredTests({ a: file }, [{ file: 'a', costs }])).toEqual([
    { file: 'a', test: 'new', seconds: 12 },
    { file: 'a', test: 'case 1', seconds: 3 },
  ]);
});

test('each test file has been measured: the quick tier runs all of one that has not', () => {
  const known = readCosts('test/costs.json');
  const unknown = testFiles('.').filter((name) => known[name] === undefined);
  expect(unknown, 'npm run test:full -- --only FILE --costs').toEqual([]);
  expect(Object.keys(known).filter((name) => !existsSync(name))).toEqual([]);
});

test('shards are the whole together, and cost about the same', () => {
  const costs = new Map(Array.from({ length: 50 }, (_, i) => [`file ${i}`, (i * 7) % 31]));
  const seconds = (name: string): number => costs.get(name)!;
  const files = [...costs.keys()];
  for (const count of [1, 2, 3]) {
    const shards = Array.from({ length: count }, (_, i) => shardOf(files, seconds, i + 1, count));
    expect(shards.flat().toSorted()).toEqual(files.toSorted());
    const sums = shards.map((shard) => shard.reduce((sum, name) => sum + seconds(name), 0));
    expect(Math.max(...sums) - Math.min(...sums)).toBeLessThanOrEqual(31);
  }
  expect(seconds(longestFirst(files, seconds)[0]!)).toBe(30);
});

test('costs are those of the last run, and of files that are there', () => {
  const result: FileResult = {
    file: 'a',
    state: 'passed',
    seed: 1,
    processorSeconds: 1.2345,
    wallSeconds: 2,
    setupSeconds: 0.5,
    restSeconds: 0.134,
    passed: 2,
    failures: [],
    skips: [],
    left: 0,
    costs: [{ name: 'one', seconds: 0.6 }],
  };
  const before = { gone: file, b: file, a: file };
  expect(
    measured('full', before, [result, { ...result, file: 'b', state: 'failed' }], new Set(['a', 'b'])),
  ).toEqual({
    a: { seconds: 1.2, setup: 0.5, tests: { one: 0.6 }, rest: 0.13 },
    b: file,
  });
  const raised = measured('quick', before, [result], new Set(['a']));
  expect(raised['a']).toEqual({ ...file, tests: { ...file.tests, one: 0.6 } });
});

test('a program that a test started counts while it runs, and when nobody waits for its end', async () => {
  const before = processorSeconds();
  const loop = 'while (process.cpuUsage().user < 3e5); console.log(1); setTimeout(() => {}, 1e6)';
  const child = spawn(process.execPath, ['-e', loop], { stdio: 'pipe' });
  try {
    await once(child.stdout, 'data');
    expect(processorSeconds() - before).toBeGreaterThan(process.platform === 'linux' ? 0.25 : -1);
  } finally {
    child.kill('SIGKILL');
  }
});
