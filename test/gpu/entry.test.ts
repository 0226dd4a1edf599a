// The command for GPU machines, run as it is run there, on the stand-in and a part of the suite.

import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { standIn } from '../cuda/standin.ts';
import { root } from '../structure/source.ts';
import type { SuiteReport } from './suite.ts';

const found = standIn();

function run(...args: readonly string[]): {
  readonly status: number | null;
  readonly out: string;
  readonly notes: string;
} {
  const library = found.available ? found.library : '';
  const env = { ...process.env, SINTER_CUDA_DRIVER: library, NVRTC_PATH: library, SINTER_DEVICE: '' };
  const command = ['--import', 'tsx', join(root, 'test/gpu/main.ts'), ...args];
  const { status, stdout, stderr } = spawnSync(process.execPath, command, {
    cwd: root,
    env,
    encoding: 'utf8',
  });
  return { status, out: stdout, notes: stderr };
}

test('the suite passes on the stand-in, and says so as JSON', async (context) => {
  if (!found.available) context.skip(found.reason);
  const { status, out, notes } = run('--family', 'softmax', '--golden', 'softmax-cuda,adam-of-three-cuda');
  expect(status, notes).toBe(0);
  const report = JSON.parse(out) as SuiteReport;
  expect(report).toMatchObject({ device: 'cuda', failed: [] });
  expect(report.description).toContain('stand-in');
  expect(report.passed).toBeGreaterThan(15);
  expect(report.refused).toBeGreaterThan(5);
});

test('what fails is named, and the command fails', async (context) => {
  if (!found.available) context.skip(found.reason);
  const { status, out } = run('--family', 'none', '--golden', 'softmax-cuda,no-such-kernel');
  expect(status).toBe(1);
  expect(JSON.parse(out)).toMatchObject({
    passed: 1,
    failed: [{ name: 'golden no-such-kernel', error: 'there is no such golden kernel' }],
  });
});

test('a machine without the device fails with the reason', () => {
  const { status, notes } = run('--device', 'cuda:9', '--family', 'none');
  expect(status).toBe(1);
  expect(notes).toMatch(/cuda:9: (?:there are 1 CUDA devices|no CUDA driver)/);
});

test('--help says what there is', () => {
  const { status, out } = run('--help');
  expect(status).toBe(0);
  expect(out).toContain('compute-sanitizer --tool memcheck');
});
