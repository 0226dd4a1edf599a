// Vitest's reporter, in the process that started the worker: writes down errors that belong to no test. Everything else is said
// by the worker itself (runner.ts). Should the program end that watches over both, so do they.

import { appendFileSync, readFileSync } from 'node:fs';
import type { Reporter } from 'vitest/node';
import type { Batch, TestEvent } from './events.ts';

interface Unhandled {
  readonly message?: unknown;
  readonly stack?: unknown;
  readonly VITEST_TEST_PATH?: unknown;
}

const parent = process.ppid;

function endWithTheRun(): void {
  // This process leads its group.
  if (process.ppid !== parent) process.kill(-process.pid, 'SIGKILL');
}

export default class UnhandledErrors implements Reporter {
  onInit(): void {
    setInterval(endWithTheRun, 500).unref();
  }

  onTestRunEnd(_modules: unknown, errors: readonly unknown[]): void {
    const { events, files } = JSON.parse(readFileSync(process.env['SINTER_TEST_BATCH']!, 'utf8')) as Batch;
    for (const error of errors as readonly Unhandled[]) {
      const place = error.VITEST_TEST_PATH;
      const file = typeof place === 'string' ? files.find((name) => place.endsWith(name)) : undefined;
      const event: TestEvent = {
        kind: 'unhandled',
        file,
        text: String(error.stack ?? error.message ?? error),
      };
      appendFileSync(events, `${JSON.stringify(event)}\n`);
    }
  }
}
