// A process leaves cleanly, however it leaves: no crash, no hang, nothing printed that nobody asked for.

import { spawn } from 'node:child_process';
import * as path from 'node:path';
import { expect, test } from 'vitest';

const child = path.join(import.meta.dirname, 'children', 'leave.ts');

function leave(
  way: string,
): Promise<{ code: number | null; signal: string | null; out: string; err: string }> {
  return new Promise((resolve) => {
    const started = spawn(process.execPath, ['--import', 'tsx', child, way], {
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    let out = '';
    let err = '';
    started.stdout.on('data', (chunk: Buffer) => (out += chunk.toString()));
    started.stderr.on('data', (chunk: Buffer) => (err += chunk.toString()));
    started.on('close', (code, signal) => resolve({ code, signal, out, err }));
  });
}

const clean = { code: 0, signal: null, out: '1,2\n', err: '' };

test.each(['exit', 'end', 'destroy', 'worker'])(
  'a process that leaves by %s with work in flight exits with 0',
  async (way) => {
    expect(await leave(way)).toEqual(clean);
  },
);

test('leaving by process.exit with work in flight never crashes', async () => {
  // Without destroying the device first, about one in four of these died of a segmentation fault.
  for (let k = 0; k < 4; k++) expect(await leave('exit')).toEqual(clean);
});

test('an uncaught error with work in flight exits with 1 and shows the error', async () => {
  const { code, signal, err } = await leave('throw');
  expect([code, signal]).toEqual([1, null]);
  expect(err).toContain('on purpose');
});
