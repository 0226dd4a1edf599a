// The command line as its users see it: what it writes where, and the exit code.
//
// Runs on the sources: it explains programs of TypeScript, which import them.

import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { plot } from '../../src/cli/demo/demo.ts';
import { workloads } from '../../src/workloads/all.ts';
import { parallelWorkloads } from '../../src/workloads/parallel.ts';
import { sinter } from '../support/cli.ts';
import { graph, model as onnxFile, node, port } from '../support/onnx/file.ts';

let folder = '';
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'sinter-cli-'));
});
afterAll(() => rm(folder, { recursive: true }));

describe('help', () => {
  test('lists the commands, and each command its options', async () => {
    const { code, out } = await sinter('--help');
    expect(code).toBe(0);
    for (const name of [
      'devices',
      'demo',
      'explain',
      'lower',
      'generate',
      'chat',
      'serve',
      'budget',
      'bench',
    ]) {
      expect(out).toContain(`  ${name} `);
      const help = await sinter(name, '--help');
      expect(help.code).toBe(0);
      expect(help.out).toMatch(new RegExp(`^usage: sinter ${name} `));
      for (const option of ['--json', '--debug', '--help']) expect(help.out).toContain(option);
      expect(await sinter('help', name)).toEqual(help);
    }
  });

  test('--version gives the version of the package', async () => {
    const { version } = JSON.parse(
      await readFile(new URL('../../package.json', import.meta.url), 'utf8'),
    ) as { version: string };
    expect((await sinter('--version')).out).toBe(version);
  });
});

describe('mistakes exit with 2 and say what there is', () => {
  test.each([
    [[], 'usage: sinter COMMAND'],
    [
      ['explian'],
      "there is no command 'explian': expected devices, demo, explain, lower, build, export, run, check, launch, generate, chat, serve, budget, bench",
    ],
    [['budget', '--jsn'], "budget: Unknown option '--jsn'\n  try: sinter budget --help"],
    [['budget', 'extra'], 'budget: Unexpected argument'],
    [['explain'], '--workload NAME is missing: expected one of\n  gelu '],
    [['explain', '--workload', 'sofmax'], "there is no workload 'sofmax': expected one of\n  gelu "],
    [['demo', '--steps', 'ten'], "--steps: expects a whole number of at least 10, got 'ten'"],
  ])('%j', async (args, message) => {
    const { code, out, err } = await sinter(...args);
    expect(code).toBe(2);
    expect(out).toBe('');
    expect(err).toContain(message);
    expect(err).not.toMatch(/\n\s+at /);
  });
});

describe('failures exit with 1', () => {
  test('a target without a generator', async () => {
    const { code, err } = await sinter('lower', '--workload', 'gelu', '--target', 'metal');
    expect([code, err]).toEqual([
      1,
      'sinter: lower: there is no target metal: expected one of wgsl, cuda, wasm, native',
    ]);
  });

  test('a file that is not there; the stack only with --debug', async () => {
    const args = ['demo', '--device', 'interpreter', '--text', join(folder, 'none.txt')];
    const { code, err } = await sinter(...args);
    expect(code).toBe(1);
    expect(err).toContain('no such file');
    expect(err).not.toMatch(/\n\s+at /);
    expect((await sinter(...args, '--debug')).err).toMatch(/\n\s+at /);
  });
});

describe('budget', () => {
  test('--json is an array of counts, one per workload', async () => {
    const { code, out } = await sinter('budget', '--json');
    expect(code).toBe(0);
    const lines = JSON.parse(out) as Record<string, unknown>[];
    expect(lines.map((line) => line['workload'])).toEqual(
      [...workloads, ...parallelWorkloads].map(({ name }) => name),
    );
    const fields = ['workload', 'kernels', 'bytes', 'lowerBoundBytes', 'peakBytes', 'leastPeakBytes'];
    expect(Object.keys(lines[0]!)).toEqual(fields);
  });

  test('the table has a line for each workload', async () => {
    const { out } = await sinter('budget', '--workload', 'softmax');
    expect(out.split('\n')).toHaveLength(3);
    expect(out).toMatch(/softmax +1 +8.00 MiB +8.00 MiB +1.00 +8.00 MiB +1.00$/);
  });
});

describe('lower', () => {
  test('writes one file a kernel and says so', async () => {
    const out = join(folder, 'kernels');
    const run = await sinter('lower', '--workload', 'normMatmul', '--target', 'wgsl', '--out', out);
    expect(run.code).toBe(0);
    const files = (await readdir(out)).sort();
    expect(files).toHaveLength(2);
    expect(files[0]).toMatch(/^00-row_\w+\.wgsl$/);
    expect(files[1]).toMatch(/^01-dot_\w+\.wgsl$/);
    expect(run.out).toBe(files.map((file) => `wrote ${join(out, file)}`).join('\n'));
    for (const file of files) expect(await readFile(join(out, file), 'utf8')).toContain('@compute');
  });

  test('writes CUDA C for its compilers to take', async () => {
    const out = join(folder, 'cuda');
    const run = await sinter('lower', '--workload', 'normMatmul', '--target', 'cuda', '--out', out);
    expect(run.code).toBe(0);
    const files = (await readdir(out)).sort();
    expect(files.map((file) => file.replace(/^(\d+-[a-z]+)_.*(\.cu)$/, '$1$2'))).toEqual([
      '00-row.cu',
      '01-dot.cu',
    ]);
    for (const file of files) expect(await readFile(join(out, file), 'utf8')).toContain('__global__');
  });

  test('gives the same sources on stdout and as JSON', async () => {
    const [plain, json] = [
      await sinter('lower', '--workload', 'gelu'),
      await sinter('lower', '--workload', 'gelu', '--json'),
    ];
    const kernels = JSON.parse(json.out) as { name: string; kind: string; source: string }[];
    expect(kernels.map(({ kind }) => kind)).toEqual(['map']);
    expect(plain.out.trimEnd()).toBe(kernels[0]!.source.trimEnd());
  });

  test('takes modules and ONNX models as explain does', async () => {
    const module = join(import.meta.dirname, '../fixtures/programs/model.ts');
    expect((await sinter('lower', module, '--target', 'cuda')).out).toContain('__global__');
    expect((await sinter('lower', module, '--target', 'native')).out).toContain('SINTER_KERNEL void');

    const file = join(folder, 'relu.onnx');
    const [x, y] = [port('x', 1, ['batch', 8]), port('y', 1, ['batch', 8])];
    await writeFile(
      file,
      onnxFile(graph({ inputs: [x], outputs: [y], nodes: [node('Relu', ['x'], ['y'])] })),
    );
    const open = await sinter('explain', file);
    expect([open.code, open.err]).toEqual([2, expect.stringContaining('try: --dim batch=1')]);
    expect((await sinter('explain', file, '--dim', 'batch=3')).out).toContain('f32[3,8]');
    expect((await sinter('lower', file, '--dim', 'batch=3', '--target', 'wasm')).out).toContain('(module');

    // WebGPU has pairs of words for 64-bit integers.
    const [n, m] = [port('n', 7, [8]), port('m', 7, [8])];
    const whole = join(folder, 'whole.onnx');
    await writeFile(
      whole,
      onnxFile(graph({ inputs: [n], outputs: [m], nodes: [node('Add', ['n', 'n'], ['m'])] })),
    );
    expect((await sinter('explain', whole)).out).toContain('i64[8]');
    expect((await sinter('lower', whole)).out).toContain('add_64(');
    expect((await sinter('lower', whole, '--target', 'cuda')).out).toContain('long long');
  });
});

describe('devices', () => {
  test('always finds the interpreter', async () => {
    const { code, out } = await sinter('devices', '--json');
    expect(code).toBe(0);
    const reports = JSON.parse(out) as { name: string; available: boolean }[];
    expect(reports.find(({ name }) => name === 'interpreter')).toMatchObject({ available: true });
    expect((await sinter('devices')).out).toContain('reference interpreter');
  });

  test('says in one line where CUDA was looked for', async () => {
    vi.stubEnv('SINTER_CUDA_DRIVER', '/no/libcuda.so.1');
    const { code, out } = await sinter('devices');
    vi.unstubAllEnvs();
    expect(code).toBe(0);
    const line = out.split('\n').find((text) => text.startsWith('cuda '));
    expect(line).toContain(
      'no CUDA driver on this machine: /no/libcuda.so.1 is not there (SINTER_CUDA_DRIVER)',
    );
  });
});

describe('plot', () => {
  test('starts and ends where the values do', () => {
    const lines = plot([4, 3, 2, 1], 8, 4).split('\n');
    expect(lines).toHaveLength(5);
    expect(lines[0]).toMatch(/^4\.00 ┤[\u2801-\u28ff]/u);
    expect(lines[3]).toMatch(/^1\.00 ┤.*[\u2801-\u28ff]$/u);
  });

  test('a constant, a single value and none are drawn too', () => {
    expect(plot([2, 2, 2], 4, 2)).toContain('2.00 ┤');
    expect(plot([2], 4, 2)).toContain('2.00 ┤');
    expect(plot([])).toBe('');
    expect(plot([Number.NaN])).toBe('');
  });
});
