// The commands for GPU machines, run as they are run there, on the stand-in and in small; and the archive that goes there.

import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { standIn } from '../cuda/standin/standin.ts';
import { torchCases } from '../support/torch/figures.ts';
import { root } from '../structure/source.ts';
import type { SuiteReport } from './suite.ts';

const found = standIn();

interface Outcome {
  readonly status: number | null;
  readonly out: string;
  readonly notes: string;
}

/** Runs a command with the stand-in as this machine's CUDA, and with nothing else to go by when `isBare`. */
function start(command: string, args: readonly string[], isBare = false): Outcome {
  const library = found.available ? found.library : '';
  const bare = { PATH: '/usr/bin:/bin', HOME: process.env['HOME'] };
  const env = {
    ...(isBare ? bare : process.env),
    SINTER_CUDA_DRIVER: library,
    NVRTC_PATH: library,
    SINTER_DEVICE: '',
  };
  const { status, stdout, stderr } = spawnSync(command, args, { cwd: root, env, encoding: 'utf8' });
  return { status, out: stdout, notes: stderr };
}

/** Neither whole programs nor checks of the runtime, which are for GPUs' sizes. */
const brief = ['--programs', 'none', '--runtime', 'none'];

const run = (...args: readonly string[]): Outcome =>
  start(process.execPath, ['--import', 'tsx', join(root, 'test/gpu/main.ts'), ...args]);
const bench = (...args: readonly string[]): Outcome =>
  start(process.execPath, ['--import', 'tsx', join(root, 'bench/gpu.ts'), ...args]);

test('the suite passes on the stand-in, and says so as JSON', async (context) => {
  if (!found.available) context.skip(found.reason);
  const small = ['--family', 'softmax', '--golden', 'softmax-cuda,adam-of-three-cuda'];
  const { status, out, notes } = run(
    ...small,
    '--products',
    'tn warpgroup 64x64',
    '--bundles',
    'sm_90,sm_80',
    '--programs',
    'argmax|sum of all',
    '--runtime',
    'elements',
  );
  expect(status, notes).toBe(0);
  const report = JSON.parse(out) as SuiteReport;
  expect(report).toMatchObject({ device: 'cuda', failed: [] });
  expect(report.description).toContain('stand-in');
  expect(report.passed).toBeGreaterThan(25);
});

test('what fails is named, and the command fails', async (context) => {
  if (!found.available) context.skip(found.reason);
  const { status, out } = run(
    '--family',
    'none',
    '--products',
    'none',
    '--golden',
    'softmax-cuda,no-such-kernel',
    '--bundles',
    'none',
    ...brief,
  );
  expect(status).toBe(1);
  expect(JSON.parse(out)).toMatchObject({
    passed: 1,
    failed: [{ name: 'golden no-such-kernel', error: 'there is no such golden kernel' }],
  });
});

test('one command runs all stages, and shards together are the whole', async (context) => {
  if (!found.available) context.skip(found.reason);
  const folder = mkdtempSync(join(tmpdir(), 'sinter-all-'));
  try {
    const script = join(root, 'test/gpu/all.ts');
    const stages = [
      '--small',
      '--parts',
      '2',
      '--only',
      'parts,runtime,torch,sanitizer',
      '--seconds',
      '200',
      '--out',
      folder,
    ];
    const { status, out, notes } = start(process.execPath, ['--import', 'tsx', script, ...stages]);
    // There is no PyTorch on a GPU here: that stage fails, and is named.
    expect(status, notes).toBe(1);
    expect(out).toMatch(/^runtime: \d+ s, status 0: 1 passed/m);
    expect(out).toMatch(/^torch: \d+ s, (?:status 1|spawn python3 ENOENT)/m);
    expect(out).toMatch(/^sanitizer: /m);
    const parts = [1, 2].map(
      (i) => JSON.parse(readFileSync(join(folder, `part-${i}.json`), 'utf8')) as SuiteReport,
    );
    const whole = ['softmax', 'norm'].flatMap((family) => torchCases(family)).length;
    // Both families, one golden kernel, one program.
    expect(parts[0]!.passed + parts[1]!.passed).toBe(whole + 2);
    expect(parts.flatMap(({ failed }) => failed)).toEqual([]);
  } finally {
    rmSync(folder, { recursive: true });
  }
});

test('a machine without the device fails with the reason', () => {
  const { status, notes } = run('--device', 'cuda:9', '--family', 'none', ...brief);
  expect(status).toBe(1);
  expect(notes).toMatch(/cuda:9: (?:there are 1 CUDA devices|no CUDA driver)/);
});

test('the benchmark times what is right, as JSON, and knows its workloads', async (context) => {
  if (!found.available) context.skip(found.reason);
  const { status, out, notes } = bench('--small', '--rounds', '1');
  expect(status, notes).toBe(0);
  const report = JSON.parse(out) as {
    readonly copyGBs: number;
    readonly workloads: readonly { readonly name: string; readonly ms: number; readonly ok: boolean }[];
  };
  expect(report.copyGBs).toBeGreaterThan(0);
  expect(report.workloads.map(({ name }) => name)).toEqual([
    'elementwise',
    'softmax',
    'layerNorm',
    'adam',
    'matmul-f32-64',
    'matmul-bf16-64',
    'matmul-f16-64',
    'matmul-bias-gelu-bf16-64',
    'attention',
    'attention-long',
    'attention-gradient',
    'decode-attention-f32',
    'decode-attention-f16',
    'row-by-matrix-f32',
    'row-by-matrix-f16',
    'row-by-matrix-q8_0',
    'row-by-matrix-q4_0',
    'row-by-matrix-q4_k',
    'row-by-matrix-q6_k',
    'convolution-bf16',
    'head-loss',
    'head-loss-gradient',
    'add-bf16',
    'softmax-wide',
    'sum',
    'running-sum',
    'sort',
  ]);
  expect(report.workloads.filter(({ ms, ok }) => !ok || !(ms > 0))).toEqual([]);
  const unknown = bench('--small', '--workload', 'sleep');
  expect(unknown.status).toBe(1);
  expect(unknown.notes).toContain('there is no workload sleep: expected elementwise, softmax');
});

test('what is packed runs with nothing of this machine but the libraries of CUDA', async (context) => {
  if (!found.available) context.skip(found.reason);
  const parent = mkdtempSync(join(tmpdir(), 'sinter-packed-'));
  try {
    const folder = join(parent, 'sinter-gpu');
    const script = join(root, 'scripts/pack-gpu.ts');
    const packed = start(process.execPath, ['--import', 'tsx', script, '--folder', '--out', folder]);
    expect(packed.status, packed.notes).toBe(0);
    const there = (...args: readonly string[]): Outcome => start(join(folder, 'run.sh'), args, true);
    expect(there('devices').out).toMatch(/cuda +yes +CUDA stand-in/);
    const few = ['--family', 'softmax', '--golden', 'softmax-cuda', '--products', 'none', ...brief];
    const tested = there('test', ...few, '--bundles', 'compute_80');
    expect(tested.status, tested.notes).toBe(0);
    expect(JSON.parse(tested.out)).toMatchObject({ device: 'cuda', failed: [] });
    const timed = there('bench', '--small', '--rounds', '1', '--workload', 'softmax');
    expect(timed.status, timed.notes).toBe(0);
    expect(JSON.parse(timed.out)).toMatchObject({ workloads: [{ name: 'softmax', ok: true }] });
    expect(there('dance')).toMatchObject({ status: 2 });
  } finally {
    rmSync(parent, { recursive: true });
  }
});

test('--help says what there is', () => {
  const { status, out } = run('--help');
  expect(status).toBe(0);
  expect(out).toContain('compute-sanitizer --tool memcheck');
});
