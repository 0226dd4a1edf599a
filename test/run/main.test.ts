// The command line of the tests: a run that is cut goes on, shards divide the whole, mistakes are told, and the end is a plain line.

import { spawn, spawnSync } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import * as path from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { readJournal } from './journal.ts';
import { readOptions, UsageError } from './options.ts';

const root = path.resolve(import.meta.dirname, '../..');
const folder = mkdtempSync(path.join(tmpdir(), 'sinter-run-'));
afterAll(() => rmSync(folder, { recursive: true }));

// One process, so that what ends it ends the run.
const command = ['--import', 'tsx', path.join(root, 'test/run/main.ts')];
const few = '^test/ir/(scalar|print|value)\\.test\\.ts$';

const run = (...args: readonly string[]): { readonly status: number | null; readonly out: string } => {
  const { status, stdout, stderr } = spawnSync(process.execPath, [...command, ...args], {
    encoding: 'utf8',
    cwd: root,
  });
  return { status, out: stdout + stderr };
};

test('a run that is cut goes on where it was', async () => {
  const results = path.join(folder, 'cut.jsonl');
  const args = ['full', '--only', few, '--results', results, '--workers', '1'];
  const first = spawn(process.execPath, [...command, ...args], { stdio: 'ignore', cwd: root });
  const ended = new Promise((resolve) => first.once('exit', resolve));
  const done = (): number => (existsSync(results) ? (readJournal(results)?.results.length ?? 0) : 0);
  while (done() === 0 && first.exitCode === null) await new Promise((resolve) => setTimeout(resolve, 5));
  first.kill('SIGKILL');
  await ended;
  const before = done();
  expect(before).toBeGreaterThan(0);
  const { status, out } = run(...args, '--resume');
  expect([status, out]).toEqual([0, expect.stringContaining(`${before} files passed before`)]);
  const { header, results: after } = readJournal(results)!;
  expect(after.map(({ file }) => file).toSorted()).toEqual([
    'test/ir/print.test.ts',
    'test/ir/scalar.test.ts',
    'test/ir/value.test.ts',
  ]);
  expect(new Set(after.map(({ seed }) => seed))).toEqual(new Set([header.seed]));
  expect(out).toMatch(/\n\d+ passed, 0 failed, 0 skipped\n/);
  expect(out).toMatch(/slowest files/);
});

test('what measures runs last', () => {
  const results = path.join(folder, 'order.jsonl');
  const measuring = 'test/onnx/malformed.test.ts';
  const files = `${measuring}|test/data/progress`;
  // One worker takes the longest first: without the order that is the one which measures.
  const { status } = run('full', '--only', files, '--results', results, '--workers', '1');
  expect(status).toBe(0);
  const order = readJournal(results)!.results.map(({ file }) => file);
  expect(order).toEqual(['test/data/progress.test.ts', measuring]);
});

test('two shards together are the whole', () => {
  const files = (...args: readonly string[]): string[] =>
    run(...args, '--list')
      .out.trim()
      .split('\n');
  const whole = files('full');
  const shards = [files('full', '--shard', '1/2'), files('full', '--shard', '2/2')];
  expect(whole.length).toBeGreaterThan(300);
  expect(shards.flat().toSorted()).toEqual(whole.toSorted());
  expect(files('quick')).toEqual(whole);
});

test('what had no time to run is listed, and fails the run', () => {
  const results = path.join(folder, 'late.jsonl');
  const { status, out } = run('quick', '--only', few, '--results', results, '--deadline', '0.0001');
  expect(status).toBe(1);
  expect(out).toContain('✗ test/ir/print.test.ts: there was no time left to run it');
  expect(out).toMatch(/\n0 passed, 3 failed, 0 skipped\n/);
});

test.each([
  [['quik'], 'no tier is called quik'],
  [['quick', 'test/ir'], 'try: --only test/ir'],
  [['full', '--shard', '3/2'], 'expected I/N with 1 ≤ I ≤ N'],
  [['--workers', 'none'], 'none is no positive number'],
  [['--onyl', 'a'], "Unknown option '--onyl'"],
])('%j is refused', (args, told) => {
  expect(() => readOptions(args, {})).toThrow(UsageError);
  expect(() => readOptions(args, {})).toThrow(told);
});

test('help lists every option', () => {
  const { status, out } = run('--help');
  expect(status).toBe(0);
  const source = readFileSync(path.join(root, 'test/run/options.ts'), 'utf8');
  const names = [...source.matchAll(/^ {8}(\w+): \{ type/gm)].map(([, name]) => `--${name}`);
  expect(names.length).toBeGreaterThan(8);
  for (const name of names) expect(out).toContain(name);
});
