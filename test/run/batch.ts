// Runs a batch of test files in one worker, watches over it, and gives a result for every file that ended. A file that takes more
// than its limits ends the worker: it fails with the test that was running and where that was, and the files behind it are
// given back.

import * as fs from 'node:fs';
import * as path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { type Limits, leastSeconds, type Sample } from './costs.ts';
import { knowsSeconds, ProcessGroup } from './group.ts';
import type { FileResult, TestCost } from './journal.ts';
import type { Needs } from './needs.ts';
import { freePort, whereIs } from './where.ts';
import type { Batch, TestEvent } from './worker/events.ts';

export interface BatchOptions {
  readonly root: string;
  /** A folder of the batch's own, for what is passed to and from the worker. */
  readonly folder: string;
  readonly files: readonly string[];
  /** What each of the files needs. */
  readonly needs: Pick<Needs, 'own' | 'sources'>;
  readonly sample: (file: string) => Sample | undefined;
  readonly limits: (file: string) => Limits;
  readonly seed: number;
  readonly env: NodeJS.ProcessEnv;
  /** Aborts when the whole run is out of time. */
  readonly signal: AbortSignal;
  readonly onResult: (result: FileResult) => void;
}

/** A file that a worker runs. */
interface Running {
  readonly file: string;
  readonly began: number;
  /** What the batch's clock showed. */
  readonly clock: number;
  /** Processor seconds of the group when it began. */
  readonly base: number;
  readonly pid: number;
  test: string | undefined;
  passed: number;
  testSeconds: number;
  restSeconds: number;
  readonly costs: Map<string, number>;
}

const pollMs = 250;

/** Gives the files that did not run. */
export async function runBatch(options: BatchOptions): Promise<string[]> {
  return new BatchRun(options, await freePort()).run();
}

class BatchRun {
  readonly #options: BatchOptions;
  /** Where the worker's inspector listens once it is asked to. */
  readonly #port: number;
  readonly #events: string;
  readonly #output: string;
  readonly #group: ProcessGroup;
  readonly #waiting: Set<string>;
  readonly #unhandled: Extract<TestEvent, { kind: 'unhandled' }>[] = [];
  /** The file that ended last. */
  #last: string | undefined;
  #running: Running | undefined;
  #read = 0;
  #used = 0;
  /**
   * Milliseconds that the worker had, as limits count them: what lies between two looks at it counts a second at most, so that a
   * machine that stood still took nothing from it.
   */
  #clock = 0;
  #looked = performance.now();
  /** When the worker last got on, and when it last told of it. */
  #moved = 0;
  #heard = 0;

  constructor(options: BatchOptions, port: number) {
    this.#options = options;
    this.#port = port;
    const { folder, files, root, env, seed } = options;
    this.#events = path.join(folder, 'events.jsonl');
    this.#output = path.join(folder, 'output.txt');
    this.#waiting = new Set(files);
    fs.mkdirSync(folder, { recursive: true });
    fs.writeFileSync(this.#events, '');
    const samples = files.flatMap((file) => {
      const sample = options.sample(file);
      return sample === undefined ? [] : [[file, sample] as const];
    });
    const batch: Batch = {
      files,
      needs: options.needs,
      samples: Object.fromEntries(samples),
      events: this.#events,
      inspectorPort: port,
    };
    const description = path.join(folder, 'batch.json');
    fs.writeFileSync(description, JSON.stringify(batch));
    const vitest = path.join(root, 'node_modules/vitest/vitest.mjs');
    this.#group = new ProcessGroup(
      process.execPath,
      [vitest, 'run', '--config', path.join(root, 'test/run/vitest.config.ts')],
      { ...env, SINTER_TEST_BATCH: description, SINTER_SEED: String(seed) },
      this.#output,
    );
  }

  async run(): Promise<string[]> {
    const { child } = this.#group;
    const ended = new Promise<void>((resolve) => {
      child.once('exit', () => resolve());
      child.once('error', () => resolve());
    });
    const over = (): boolean =>
      child.exitCode !== null || child.signalCode !== null || child.pid === undefined;
    while (!over()) {
      await Promise.race([sleep(pollMs), ended]);
      this.#readEvents();
      if (over()) break;
      const reason = this.#exceeded();
      if (reason === undefined) continue;
      await this.#stop(reason);
      await ended;
    }
    this.#readEvents();
    this.#group.kill();
    this.#conclude();
    return this.#options.signal.aborted ? [...this.#waiting] : this.#givenBack();
  }

  /** Files to run again, in another worker: one that starts no file at all is not tried forever. */
  #givenBack(): string[] {
    const rest = [...this.#waiting];
    if (rest.length < this.#options.files.length || rest.length === 0) return rest;
    const [first, ...others] = rest;
    this.#fail(first!, undefined, `the worker ended before its first test file:\n${this.#printed()}`);
    return others;
  }

  #readEvents(): void {
    const size = fs.statSync(this.#events).size;
    if (size === this.#read) return;
    const bytes = Buffer.alloc(size - this.#read);
    const file = fs.openSync(this.#events, 'r');
    fs.readSync(file, bytes, 0, bytes.length, this.#read);
    fs.closeSync(file);
    // The last line may still be written.
    const whole = bytes.lastIndexOf('\n') + 1;
    this.#read += whole;
    const lines = bytes.toString('utf8', 0, whole).split('\n').slice(0, -1);
    for (const line of lines) this.#take(JSON.parse(line) as TestEvent);
  }

  #take(event: TestEvent): void {
    const running = this.#running;
    this.#moved = this.#heard = this.#clock;
    switch (event.kind) {
      case 'file':
        // Vitest starts another worker after one that died.
        if (running !== undefined) this.#fail(running.file, running, 'the worker ended before the file did');
        this.#running = this.#begun(event.file, event.pid);
        return;
      case 'test':
        if (running !== undefined) running.test = event.name;
        return;
      case 'tested': {
        if (running === undefined) return;
        running.test = undefined;
        running.testSeconds += event.seconds;
        if (event.state === 'passed') running.passed += 1;
        const seconds = event.seconds * event.share;
        if (seconds < leastSeconds) {
          running.restSeconds += seconds;
          return;
        }
        running.costs.set(event.name, (running.costs.get(event.name) ?? 0) + seconds);
        return;
      }
      case 'done': {
        if (running === undefined) return;
        const { passed, failures, skips, left } = event;
        this.#result(running, { passed, failures, skips, left }, event.seconds);
        return;
      }
      case 'unhandled':
        this.#unhandled.push(event);
    }
  }

  #begun(file: string, pid: number): Running {
    const [began, clock, base] = [performance.now(), this.#clock, this.#group.seconds()];
    const none = { test: undefined, passed: 0, testSeconds: 0, restSeconds: 0 };
    return { file, began, clock, base, pid, ...none, costs: new Map() };
  }

  #result(
    running: Running,
    counts: Pick<FileResult, 'passed' | 'failures' | 'skips' | 'left'>,
    seconds: number,
  ): void {
    this.#running = undefined;
    this.#waiting.delete(running.file);
    this.#last = running.file;
    const costs: TestCost[] = [...running.costs].map(([name, cost]) => ({ name, seconds: cost }));
    this.#options.onResult({
      file: running.file,
      state: counts.failures.length === 0 ? 'passed' : 'failed',
      seed: this.#options.seed,
      processorSeconds: seconds,
      wallSeconds: (performance.now() - running.began) / 1000,
      setupSeconds: Math.max(0, seconds - running.testSeconds),
      restSeconds: running.restSeconds,
      ...counts,
      costs,
    });
  }

  #fail(file: string, running: Running | undefined, text: string): void {
    const at = running ?? this.#begun(file, 0);
    const failures = [{ test: at.test ?? '', text }];
    const seconds = running === undefined ? 0 : this.#group.seconds() - at.base;
    this.#result(at, { passed: at.passed, failures, skips: [], left: 0 }, seconds);
  }

  /** Why the worker has to end now. */
  #exceeded(): string | undefined {
    if (this.#options.signal.aborted) return 'the run was out of time';
    const used = this.#group.seconds();
    const now = performance.now();
    this.#clock += Math.min(1000, now - this.#looked);
    this.#looked = now;
    // Browsers tick over while nothing happens: a fiftieth of a core is no work.
    if (used - this.#used > 0.02 * ((this.#clock - this.#moved) / 1000)) {
      this.#used = used;
      this.#moved = this.#clock;
    }
    const running = this.#running;
    const limits = this.#options.limits(running?.file ?? this.#options.files[0]!);
    const idle = (this.#clock - this.#moved) / 1000;
    if (knowsSeconds && idle > limits.idle) return `nothing moved for ${Math.round(idle)} s`;
    if (running === undefined) {
      const silent = (this.#clock - this.#heard) / 1000;
      return silent > 2 * limits.idle ? `no file began for ${Math.round(silent)} s` : undefined;
    }
    const seconds = used - running.base;
    if (seconds > limits.processor) return `it took ${Math.round(seconds)} s of processor time`;
    const wall = (this.#clock - running.clock) / 1000;
    return wall > limits.wall ? `it took ${Math.round(wall)} s` : undefined;
  }

  async #stop(reason: string): Promise<void> {
    const running = this.#running;
    const where =
      running === undefined || this.#options.signal.aborted ? '' : await whereIs(running.pid, this.#port);
    // It may have ended just now.
    this.#readEvents();
    this.#group.kill();
    if (running === undefined || running !== this.#running || this.#options.signal.aborted) return;
    const { processor, wall, idle } = this.#options.limits(running.file);
    const allowed = `allowed: ${processor} s of processor time, ${wall} s in all, ${idle} s without either`;
    this.#fail(running.file, running, `stopped, because ${reason} (${allowed})\n${where}`);
  }

  /** After the worker's end: a file without an end fails, and so does one whose errors no test caught. */
  #conclude(): void {
    const running = this.#running;
    if (running !== undefined && !this.#options.signal.aborted) {
      const { exitCode, signalCode } = this.#group.child;
      const how = signalCode ?? `exit code ${exitCode}`;
      this.#fail(running.file, running, `the worker ended (${how}) before the file did:\n${this.#printed()}`);
    }
    for (const { file, text } of this.#unhandled) {
      // Vitest says of a worker that died that it did, without a file.
      const at = file ?? (running === undefined ? this.#last : undefined);
      if (at !== undefined) this.#fail(at, undefined, `an error that no test caught: ${text}`);
    }
  }

  /** The end of what the worker printed. */
  #printed(): string {
    return fs.readFileSync(this.#output, 'utf8').slice(-4000);
  }
}
