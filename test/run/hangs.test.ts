// What hangs is ended, told with the test and the place where it was, and the files behind it run: each kind is planted in a
// file below planted/, and run as the tests are.

import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import * as path from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { findCompiler } from '../support/cpp.ts';
import { findRuntime } from '../support/runtimes.ts';
import { runBatch } from './batch.ts';
import type { Limits, Sample } from './costs.ts';
import type { FileResult } from './journal.ts';

const root = path.resolve(import.meta.dirname, '../..');
const folder = mkdtempSync(path.join(tmpdir(), 'sinter-planted-'));
afterAll(() => rmSync(folder, { recursive: true }));

const planted = (name: string): string => `test/run/planted/${name}.planted.ts`;
const good = planted('good');

/** What is left to the good files behind a hang: limits that they do not come near. */
const patient: Limits = { processor: 120, wall: 600, idle: 120 };

let batches = 0;
async function run(
  files: readonly string[],
  limits: Partial<Limits> = {},
  options: { readonly samples?: Readonly<Record<string, Sample>>; readonly signal?: AbortSignal } = {},
): Promise<{ readonly results: readonly FileResult[]; readonly back: readonly string[] }> {
  const results: FileResult[] = [];
  const back = await runBatch({
    root,
    folder: path.join(folder, String((batches += 1))),
    files,
    needs: { own: false, sources: false },
    sample: (file) => options.samples?.[file],
    limits: (file) => (file === good ? patient : { ...patient, ...limits }),
    seed: 7,
    env: { ...process.env, SINTER_PLANTED_PID: path.join(folder, 'pid') },
    signal: options.signal ?? new AbortController().signal,
    onResult: (result) => void results.push(result),
  });
  return { results, back };
}

/** Calls `run` with more and more patience, until a test has begun: on a busy machine workers wait before their first one. */
async function patiently<T>(
  limits: Partial<Limits>,
  run: (limits: Partial<Limits>) => Promise<T>,
  hasBegun: (made: T) => boolean,
): Promise<T> {
  for (let { idle = patient.idle } = limits; ; idle *= 4) {
    const made = await run({ ...limits, idle });
    if (hasBegun(made) || idle >= patient.idle) return made;
  }
}

/** Runs a planted file before a good one, which is given back and not lost. */
async function runPlanted(name: string, limits: Partial<Limits>): Promise<FileResult> {
  const { results, back } = await patiently(
    limits,
    (patience) => run([planted(name), good], patience),
    (made) => made.results.some(({ failures }) => failures.some(({ test: begun }) => begun !== '')),
  );
  expect(back).toEqual([good]);
  expect(results).toHaveLength(1);
  expect(results[0]!.state).toBe('failed');
  return results[0]!;
}

test('files run one after another in a worker, and tell what passed and what was skipped', async () => {
  const { results, back } = await run([good]);
  expect(back).toEqual([]);
  expect(results).toMatchObject([
    { file: good, state: 'passed', passed: 21, failures: [], left: 0, seed: 7 },
  ]);
  expect(results[0]!.skips).toEqual([
    { test: 'is skipped with its reason', reason: 'the machine lacks something' },
  ]);
});

test('a sample leaves the same tests out each time', async () => {
  const samples = { [good]: { share: 0.5, tests: { passes: false } } };
  const [first, second] = [await run([good], {}, { samples }), await run([good], {}, { samples })];
  expect(first.results[0]!.left).toBeGreaterThan(1);
  expect(first.results[0]!.passed).toBeGreaterThan(1);
  expect(second.results[0]).toMatchObject({
    passed: first.results[0]!.passed,
    left: first.results[0]!.left,
  });
});

test('a loop that never gives the thread back', async () => {
  const { passed, failures } = await runPlanted('loop', { processor: 3 });
  expect(passed).toBe(1);
  expect(failures).toMatchObject([{ test: 'spins' }]);
  expect(failures[0]!.text).toMatch(/stopped, because it took \d+ s of processor time/);
  expect(failures[0]!.text).toMatch(/at spin \(.*loop\.planted\.ts:\d+/);
});

test.each([
  ['an answer that does not come', 'wait', 'waits'],
  ['a program that does not end', 'program', 'waits for a program'],
])('%s', async (_, name, running) => {
  const { failures } = await runPlanted(name, { idle: 3 });
  expect(failures).toMatchObject([{ test: running }]);
  expect(failures[0]!.text).toMatch(/stopped, because nothing moved for \d+ s/);
});

test('a loop that begins when the tests of a file are over', async () => {
  const { results, back } = await patiently(
    { processor: 4, idle: 3 },
    (patience) => run([planted('after'), planted('wait')], patience),
    (made) => made.back.length === 0,
  );
  expect(back).toEqual([]);
  expect(results.map(({ file, state }) => [file, state])).toContainEqual([planted('wait'), 'failed']);
  const alone = await patiently(
    { idle: 3 },
    (patience) => run([planted('after')], patience),
    (made) => made.results.some(({ state }) => state === 'passed'),
  );
  expect(alone).toMatchObject({ back: [], results: [{ state: 'passed' }] });
});

test('a compiler that reads what nobody writes', async ({ skip }) => {
  if (findCompiler() === undefined) skip('no host C++ compiler');
  const { failures } = await runPlanted('compiler', { idle: 3 });
  expect(failures[0]!.text).toMatch(/nothing moved/);
});

test('a busy program in a process group of its own, which is ended too', async () => {
  const { failures } = await runPlanted('detached', { processor: 3 });
  expect(failures).toMatchObject([{ test: 'waits for a busy program' }]);
  const pid = Number(readFileSync(path.join(folder, 'pid'), 'utf8'));
  const state = `/proc/${pid}/stat`;
  const isGone = (): boolean => !existsSync(state) || readFileSync(state, 'utf8').includes(') Z ');
  await expect.poll(isGone).toBe(true);
});

test('a page that loops', async () => {
  const { failures } = await runPlanted('browser', { processor: 15 });
  expect(failures).toMatchObject([{ test: 'waits for a page' }]);
});

test('a program of Deno that loops', async ({ skip }) => {
  const deno = findRuntime('Deno');
  if ('absent' in deno) return skip(deno.absent);
  const { failures } = await runPlanted('deno', { processor: 3 });
  expect(failures).toMatchObject([{ test: 'waits for Deno' }]);
});

test('a loop on a device', async () => {
  const { failures } = await runPlanted('kernel', { processor: 5 });
  expect(failures).toMatchObject([{ test: 'waits for a device' }]);
});

test('a worker that dies', async () => {
  const { failures } = await runPlanted('dies', {});
  expect(failures).toMatchObject([{ test: 'dies' }]);
  expect(failures[0]!.text).toMatch(/the worker ended/);
});

test('an error that no test catches fails its file', async () => {
  const { results } = await run([planted('unhandled')]);
  expect(results.some(({ state }) => state === 'failed')).toBe(true);
  expect(results.flatMap(({ failures }) => failures.map(({ text }) => text)).join()).toContain(
    'nobody caught this',
  );
});

test('a run that is out of time stops, and gives back what it did not finish', async () => {
  const { results, back } = await run([planted('wait'), good], {}, { signal: AbortSignal.timeout(3000) });
  expect(results).toEqual([]);
  expect(back).toEqual([planted('wait'), good]);
});
