// Threads keep no process alive: it ends when its own work does, however it ends.

import { spawn } from 'node:child_process';
import * as path from 'node:path';
import { expect, test } from 'vitest';
import { waitLimit } from '../support/limits.ts';

const child = path.join(import.meta.dirname, 'children', 'leave.ts');

interface Leaving {
  readonly code: number | null;
  readonly signal: string | null;
  readonly out: string;
  readonly err: string;
}

function leave(way: string): Promise<Leaving> {
  return new Promise((resolve) => {
    const started = spawn(process.execPath, ['--import', 'tsx', child, way], {
      stdio: ['ignore', 'pipe', 'pipe'],
      timeout: waitLimit,
    });
    let [out, err] = ['', ''];
    started.stdout.on('data', (chunk: Buffer) => (out += chunk.toString()));
    started.stderr.on('data', (chunk: Buffer) => (err += chunk.toString()));
    started.on('close', (code, signal) => resolve({ code, signal, out, err }));
  });
}

const ramp = '3 threads: 1,3,5\n';

test.each(['end', 'exit', 'destroy', 'worker'])('a process that leaves by %s exits with 0', async (way) => {
  expect(await leave(way)).toEqual({ code: 0, signal: null, out: ramp, err: '' });
});

test('an uncaught error exits with 1 and shows the error', async () => {
  const { code, signal, out, err } = await leave('throw');
  expect([code, signal, out]).toEqual([1, null, ramp]);
  expect(err).toContain('on purpose');
});
