// Vitest's runner, in the worker: leaves out what is for the full tier, and writes down each file and test as it begins and ends,
// with the processor time that it took.

import { appendFileSync, readFileSync } from 'node:fs';
import * as path from 'node:path';
import { stripVTControlCharacters } from 'node:util';
import type { RunnerTask, RunnerTestCase, RunnerTestFile, RunnerTestSuite } from 'vitest';
import { TestRunner, vi } from 'vitest';
import { everything, runs } from '../costs.ts';
import type { Batch, Failure, Skip, TestEvent } from './events.ts';
import { processorSeconds } from './seconds.ts';

const batch = JSON.parse(readFileSync(process.env['SINTER_TEST_BATCH']!, 'utf8')) as Batch;

const tell = (event: TestEvent): void => appendFileSync(batch.events, `${JSON.stringify(event)}\n`);

const isTest = (task: RunnerTask): task is RunnerTestCase => task.type === 'test';

/** What a test is called in its file: its name after those of its suites. */
function nameOf(task: RunnerTask): string {
  const outer = task.suite === undefined || task.suite.name === '' ? '' : `${nameOf(task.suite)} > `;
  return task.type === 'suite' && 'filepath' in task ? '' : `${outer}${task.name}`;
}

function testsOf(suite: RunnerTestSuite | RunnerTestFile): RunnerTestCase[] {
  return suite.tasks.flatMap((task) => (isTest(task) ? [task] : testsOf(task as RunnerTestSuite)));
}

function suitesOf(suite: RunnerTestSuite | RunnerTestFile): (RunnerTestSuite | RunnerTestFile)[] {
  return [suite, ...suite.tasks.flatMap((task) => (isTest(task) ? [] : suitesOf(task as RunnerTestSuite)))];
}

const willRun = (task: RunnerTask): boolean => task.mode === 'run' || task.mode === 'queued';

/** Skips the suites of which nothing runs, so that their hooks do not run either. */
function skipEmpty(suite: RunnerTestSuite | RunnerTestFile): void {
  for (const task of suite.tasks) if (!isTest(task)) skipEmpty(task as RunnerTestSuite);
  if (willRun(suite) && suite.tasks.length > 0 && !suite.tasks.some(willRun)) suite.mode = 'skip';
}

/** An error as Vitest keeps it. */
interface Thrown {
  readonly message: string;
  readonly stack?: string;
  readonly diff?: string;
  readonly cause?: unknown;
}

function textOf(task: RunnerTask): string {
  const errors: readonly Thrown[] = task.result?.errors ?? [];
  return stripVTControlCharacters(errors.map(failureText).join('\n'));
}

/** An error with what caused it: a law that fast-check refutes says only there what came out. */
function failureText({ stack, message, diff, cause }: Thrown): string {
  const own = `${stack ?? message}${diff === undefined ? '' : `\n${diff}`}`;
  return typeof cause === 'object' && cause !== null
    ? `${own}\ncaused by ${failureText(cause as Thrown)}`
    : own;
}

/** The runner that test/run/vitest.config.ts names. */
export default class WorkerRunner extends TestRunner {
  readonly #left = new Set<RunnerTestCase>();
  /** The environment before the first test of a file ran. */
  #environment: NodeJS.ProcessEnv = {};
  #fileBegan = 0;
  #testBegan = 0;

  override onCollectStart(file: RunnerTestFile): void {
    super.onCollectStart(file);
    this.#fileBegan = processorSeconds();
    this.#left.clear();
    tell({ kind: 'file', file: this.#pathOf(file), pid: process.pid });
  }

  onCollected(files: RunnerTestFile[]): void {
    for (const file of files) {
      const sample = batch.samples[this.#pathOf(file)] ?? everything;
      for (const test of testsOf(file)) {
        if (!willRun(test) || runs(sample, nameOf(test))) continue;
        test.mode = 'skip';
        this.#left.add(test);
      }
      skipEmpty(file);
    }
    this.#environment = { ...process.env };
  }

  override async onBeforeRunTask(test: RunnerTask): Promise<void> {
    if (willRun(test)) tell({ kind: 'test', file: this.#pathOf(test.file), name: nameOf(test) });
    await super.onBeforeRunTask(test);
    this.#testBegan = processorSeconds();
  }

  override onAfterRunTask(test: RunnerTask): void {
    super.onAfterRunTask(test);
    const state = test.result?.state;
    tell({
      kind: 'tested',
      file: this.#pathOf(test.file),
      name: nameOf(test),
      state: state === 'pass' ? 'passed' : state === 'fail' ? 'failed' : 'skipped',
      seconds: processorSeconds() - this.#testBegan,
      share: shareOf(test),
    });
  }

  override onAfterRunFiles(files?: RunnerTestFile[]): void {
    super.onAfterRunFiles();
    // What tests put aside for themselves is not for the next file.
    vi.restoreAllMocks();
    vi.unstubAllGlobals();
    vi.unstubAllEnvs();
    for (const name of Object.keys(process.env)) delete process.env[name];
    Object.assign(process.env, this.#environment);
    for (const file of files ?? []) {
      const tests = testsOf(file);
      const failed = [...suitesOf(file), ...tests].filter(({ result }) => (result?.errors ?? []).length > 0);
      const failures: Failure[] = failed.map((task) => ({ test: nameOf(task), text: textOf(task) }));
      if (tests.length === 0 && failures.length === 0)
        failures.push({ test: '', text: 'the file has no test' });
      const skipped = tests.filter(
        (test) => !this.#left.has(test) && test.result?.state !== 'pass' && test.result?.state !== 'fail',
      );
      const skips: Skip[] = skipped.map((test) => ({ test: nameOf(test), reason: reasonOf(test) }));
      tell({
        kind: 'done',
        file: this.#pathOf(file),
        seconds: processorSeconds() - this.#fileBegan,
        passed: tests.filter(({ result }) => result?.state === 'pass').length,
        failures,
        skips,
        left: this.#left.size,
      });
    }
  }

  #pathOf(file: RunnerTestFile): string {
    return path.relative(this.config.root, file.filepath).replaceAll('\\', '/');
  }
}

/** Which part of its work a test does in the quick tier: what test/support/sample.ts notes. */
function shareOf(test: RunnerTask): number {
  const { share } = test.meta as { share?: unknown };
  return typeof share === 'number' ? share : 1;
}

function reasonOf(test: RunnerTestCase): string {
  const { result } = test;
  const note = result !== undefined && 'note' in result ? result.note : undefined;
  return typeof note === 'string' ? note : test.mode === 'todo' ? 'todo' : 'no reason given';
}
