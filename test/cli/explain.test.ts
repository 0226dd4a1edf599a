// `sinter explain` as its users see it: their own programs, one kernel, other targets, pages.
//
// Runs on the sources: it explains programs of TypeScript, which import them.

import { spawnSync } from 'node:child_process';
import { cpSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import type { OneKernel } from '../../src/cli/explain/explain.ts';
import { setDevice, type Explained } from '../../src/index.ts';
import { stagePackage } from '../support/browser/package.ts';
import { sinter, type Said } from '../support/cli.ts';

const explain = (...args: string[]): Promise<Said> => sinter('explain', ...args);

const fixture = (name: string): string => join(import.meta.dirname, '../fixtures/programs', name);
const model = fixture('model.ts');

let folder = '';
// Whatever device the tests before had: the interpreter has no kernels of its own, and a GPU's are shown.
beforeAll(async () => {
  setDevice('interpreter');
  folder = await mkdtemp(join(tmpdir(), 'sinter-explain-'));
});
afterAll(() => {
  setDevice(undefined);
  return rm(folder, { recursive: true });
});

describe('a program of the user’s', () => {
  test('is the function that is called as such are, with the inputs beside it', async () => {
    const { code, out } = await explain(model);
    expect(code).toBe(0);
    expect(out).toMatch(/^graph \{\n {2}%0 = parameter \{index: 0, name: "arg0"\} : f32\[16,8\]/);
    expect(out).toContain('relu (model.ts:5:');
  });

  test('is the one named', async () => {
    const { out } = await explain(model, '--export', 'loss', '--json');
    const { kernels, nodes } = JSON.parse(out) as Explained;
    expect(kernels.map(({ kind }) => kind)).toContain('dot');
    expect(nodes.map(({ source }) => source?.op)).toContain('softmax');
  });

  test('has the kernels of the device that would run', async () => {
    setDevice(undefined);
    vi.stubEnv('SINTER_DEVICE', 'wasm');
    const { out } = await explain(model, '--json');
    const { out: other } = await explain(model, '--software', '--json');
    vi.unstubAllEnvs();
    setDevice('interpreter');
    expect((JSON.parse(out) as Explained).target).toBe('wasm');
    expect((JSON.parse(other) as Explained).target).toBe('wgsl:software');
  });

  test('may be a value that waits to be computed', async () => {
    const { out } = await explain(model, '--export', 'table', '--json');
    expect((JSON.parse(out) as Explained).kernels.map(({ kind }) => kind)).toEqual(['map']);
  });

  test('takes the inputs and the state that build takes', async () => {
    const { code, out } = await explain(fixture('../../aot/perceptron.ts'), '--export', 'predict', '--json');
    expect(code).toBe(0);
    expect((JSON.parse(out) as Explained).kernels.map(({ kind }) => kind)).toContain('dot');
  });

  test.each([
    [['none.ts'], 'there is no file none.ts'],
    [['none.onnx'], 'there is no file none.onnx'],
    [
      [model, '--export', 'lost'],
      "exports no function or tensor 'lost': it exports chain, forward, inputs, loss, table",
    ],
    [
      [fixture('data.ts')],
      'exports no function or tensor: it exports answer, inputs\n  try: export const fn',
    ],
    [[model, '--workload', 'gelu'], 'explain takes a file or --workload, not both'],
    [[model, 'other.ts'], "explain: Unexpected argument 'other.ts'"],
  ])('%j is asked wrongly', async (args, message) => {
    const { code, out, err } = await explain(...args);
    expect([code, out]).toEqual([2, '']);
    expect(err).toContain(message);
  });
});

describe('a program that processes of a mesh would run', () => {
  const sharded = fixture('sharded.ts');
  test('has its arguments held as the export plans says of the mesh', async () => {
    const { code, out } = await explain(sharded, '--export', 'step', '--mesh', 'data=2,model=2', '--json');
    expect(code).toBe(0);
    const { parallel } = JSON.parse(out) as Explained;
    expect(parallel!.mesh).toBe('data=2,model=2');
    expect(parallel!.inputs.map(({ name, split, part }) => `${name} ${split} ${part}`)).toEqual([
      'arg1 [data, null] f32[8,8]',
      'arg0.up [null, model] f32[8,16]',
      'arg0.down [model, null] f32[16,8]',
    ]);
    const { out: page } = await explain(sharded, '--export', 'step', '--mesh', 'data=8');
    expect(page).toContain('mesh data=8: 8 processes, this is rank 0');
  });

  test('needs no --mesh where the function names one, and shows passes and kernels alike', async () => {
    const { out } = await explain(sharded, '--export', 'annotated');
    expect(out).toContain('mesh data=4: 4 processes');
    expect(out).toContain('allReduce f32[] over data (4 ranks)');
    const passes = await explain(sharded, '--export', 'annotated', '--passes');
    expect([passes.code, passes.out]).toEqual([0, expect.stringContaining('placeRank')]);
  });

  test.each([
    [['--export', 'wrong', '--mesh', 'data=2'], 'is no list of at most 1 plans, one an argument'],
    [['--export', 'step', '--mesh', 'data'], "--mesh: expects axes with sizes, got 'data'"],
    [['--export', 'step', '--mesh', 'data=2,data=4'], "--mesh: expects axes with sizes, got 'data=2,data=4'"],
    [['--export', 'annotated', '--mesh', 'data=2'], 'tensors of two meshes meet: data=2 and data=4'],
    [['--export', 'step', '--mesh', 'data=5'], 'which are not 5 equal parts'],
  ])('%j is asked wrongly', async (args, message) => {
    const { code, out, err } = await explain(sharded, ...args);
    expect([code === 0, out]).toEqual([false, '']);
    expect(err).toContain(message);
  });
});

describe('the text', () => {
  test('has the graph, the table, each kernel, the reasons and the sum', async () => {
    const { out } = await explain(model, '--export', 'chain');
    expect(out).toMatch(/^graph \{/);
    for (const part of [
      'flops/B',
      '\n  schedule  ',
      '\n  reads     ',
      'why kernels are separate',
      ' moved, at least ',
    ])
      expect(out).toContain(part);
    expect(out).not.toContain('@compute');
    expect((await explain(model, '--export', 'chain', '--sources')).out).toContain('@compute');
  });

  test('leaves out a long graph, and says so', async () => {
    const { out, err } = await explain('--workload', 'gptBlockForward');
    expect(out).not.toContain('graph {');
    expect(err).toMatch(/^the recorded graph has \d+ nodes: --graph shows it$/);
    expect((await explain('--workload', 'gptBlockForward', '--graph')).out).toContain('graph {');
  });

  test('is of one kernel, with its source, by name or number', async () => {
    const { out } = await explain(model, '--export', 'chain', '--kernel', '0');
    expect(out).toMatch(/^0 {2}dot_\w+\n {2}schedule/);
    expect(out).toContain('@compute');
    const name = /^0 {2}(\w+)/.exec(out)![1]!;
    expect(await explain(model, '--export', 'chain', '--kernel', name)).toEqual({ code: 0, out, err: '' });
    const json = (await explain(model, '--export', 'chain', '--kernel', name, '--json')).out;
    const { place, kernel, nodes, fusionDiagnostics } = JSON.parse(json) as OneKernel;
    expect([place, kernel.name]).toEqual([0, name]);
    for (const node of [...kernel.prologue, ...kernel.body, ...kernel.epilogue])
      expect(nodes[node]).toBeDefined();
    expect(fusionDiagnostics.every(({ first, second }) => first === 0 || second === 0)).toBe(true);
    const { code, err } = await explain(model, '--export', 'chain', '--kernel', 'lost');
    expect(code).toBe(2);
    expect(err).toContain(`there is no kernel 'lost': expected one of\n  0  ${name}`);
  });
});

describe('the target', () => {
  test('is a GPU, the software adapter, or that of a device', async () => {
    const target = async (...args: string[]): Promise<string> =>
      (JSON.parse((await explain('--workload', 'gelu', '--json', ...args)).out) as Explained).target;
    expect(await target()).toBe('wgsl');
    expect(await target('--software')).toBe('wgsl:software');
    expect(await target('--device', 'webgpu:software')).toBe('wgsl:software');
  });

  test.each([
    [['--device', 'interpreter'], 'the interpreter runs no kernels'],
    [['--device', 'webgpu:software', '--software'], 'explain takes --device or --software, not both'],
  ])('%j is asked wrongly', async (args, message) => {
    const { code, err } = await explain('--workload', 'gelu', ...args);
    expect(code).toBe(2);
    expect(err).toContain(message);
  });
});

describe('the page', () => {
  test('is written beside other results, or alone', async () => {
    const file = join(folder, 'page.html');
    expect(await explain('--workload', 'softmax', '--html', file)).toEqual({
      code: 0,
      out: '',
      err: `wrote ${file}`,
    });
    const page = await readFile(file, 'utf8');
    expect(page).toMatch(/^<!doctype html>/);
    expect(page).toContain('<title>softmax</title>');
    const { out } = await explain('--workload', 'softmax', '--html', file, '--json');
    expect((JSON.parse(out) as Explained).kernels).toHaveLength(1);
  });
});

describe('the published command, in a project of the user’s', () => {
  let project = '';
  let home = '';
  const modules = join(import.meta.dirname, '../../node_modules');
  const lines = [
    "import { zeros, type Tensor } from 'sinter';",
    'export const fn = (x: Tensor, w: Tensor): Tensor => x.matmul(w).softmax();',
    'export const inputs = (): Tensor[] => [zeros([128, 64]), zeros([64, 32])];',
  ];
  const sinter = (...args: string[]): { code: number | null; out: string; err: string } => {
    const { status, stdout, stderr } = spawnSync(
      process.execPath,
      [join(home, 'dist/cli/main.js'), ...args],
      {
        cwd: project,
        encoding: 'utf8',
        env: { ...process.env, NODE_OPTIONS: '' },
      },
    );
    return { code: status, out: stdout, err: stderr };
  };
  beforeAll(() => {
    project = join(folder, 'project');
    home = stagePackage(project);
    writeFileSync(join(project, 'model.ts'), lines.join('\n'));
    const plain = lines.join('\n').replaceAll(/, type Tensor|: Tensor(?:\[\])?/g, '');
    writeFileSync(join(project, 'model.js'), plain);
  });

  test('loads JavaScript, and names its lines', () => {
    const { code, out } = sinter('explain', 'model.js');
    expect(code).toBe(0);
    expect(out).toContain('softmax (model.js:2:');
  });

  test('loads TypeScript where Node or the project’s tsx reads it, and else says how', () => {
    const first = sinter('explain', 'model.ts');
    if ('typescript' in process.features && process.features.typescript !== false) expect(first.code).toBe(0);
    else {
      expect(first.code).toBe(1);
      expect(first.err).toMatch(/cannot read TypeScript by itself\n {2}try: npm install --save-dev tsx/);
    }
    symlinkSync(join(modules, 'tsx'), join(project, 'node_modules/tsx'));
    const second = sinter('explain', 'model.ts');
    expect(second.code, second.err).toBe(0);
    expect(second.out).toContain('softmax (model.ts:2:');
  });

  test('draws where the package for it is there, and else names it', () => {
    const first = sinter('explain', 'model.js', '--html', 'page.html');
    expect(first.code).toBe(1);
    expect(first.err).toContain('@dagrejs/dagre, which is not installed\n  try: npm install @dagrejs/dagre');
    symlinkSync(join(modules, '@dagrejs'), join(project, 'node_modules/@dagrejs'));
    expect(sinter('explain', 'model.js', '--html', 'page.html').code).toBe(0);
    expect(readFileSync(join(project, 'page.html'), 'utf8')).toMatch(/^<!doctype html>/);
  });

  test('tells a file of another copy from its own', () => {
    cpSync(join(home, 'dist'), join(project, 'other'), { recursive: true });
    writeFileSync(
      join(project, 'foreign.js'),
      lines
        .join('\n')
        .replace("'sinter'", "'./other/index.js'")
        .replaceAll(/, type Tensor|: Tensor(?:\[\])?/g, ''),
    );
    const { code, err } = sinter('explain', 'foreign.js');
    expect([code, err]).toEqual([
      1,
      'sinter: foreign.js imports another copy of sinter than the one of this command\n  try: npx sinter in the folder of its package.json\n',
    ]);
  });
});
