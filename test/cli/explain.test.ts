// `sinter explain` as its users see it: their own programs, one kernel, other targets, pages.

import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { runCli } from '../../src/cli/run.ts';
import type { Explained, ExplainedKernel } from '../../src/index.ts';

async function explain(...args: string[]): Promise<{ code: number; out: string; err: string }> {
  const [out, err]: [string[], string[]] = [[], []];
  const code = await runCli(['explain', ...args], {
    columns: undefined,
    line: (text) => out.push(text),
    note: (text) => err.push(text),
    mark: (text) => err.push(text),
    live: () => undefined,
  });
  return { code, out: out.join('\n'), err: err.join('\n') };
}

const fixture = (name: string): string => join(import.meta.dirname, '../fixtures/programs', name);
const model = fixture('model.ts');

let folder = '';
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'sinter-explain-'));
});
afterAll(() => rm(folder, { recursive: true }));

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
    expect(kernels.map(({ kind }) => kind)).toEqual(['dot', 'row', 'row']);
    expect(nodes.map(({ source }) => source?.op)).toContain('softmax');
  });

  test('may be a value that waits to be computed', async () => {
    const { out } = await explain(model, '--export', 'table', '--json');
    expect((JSON.parse(out) as Explained).kernels.map(({ kind }) => kind)).toEqual(['map']);
  });

  test.each([
    [['none.ts'], 'there is no file none.ts'],
    [
      [model, '--export', 'lost'],
      "exports no function or tensor 'lost': it exports forward, inputs, loss, table",
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

describe('the text', () => {
  test('has the graph, the table, each kernel, the reasons and the sum', async () => {
    const { out } = await explain('--workload', 'attention');
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
    expect((await explain('--workload', 'attention', '--sources')).out).toContain('@compute');
  });

  test('leaves out a long graph, and says so', async () => {
    const { out, err } = await explain('--workload', 'gptBlockForward');
    expect(out).not.toContain('graph {');
    expect(err).toMatch(/^the recorded graph has \d+ nodes: --graph shows it$/);
    expect((await explain('--workload', 'gptBlockForward', '--graph')).out).toContain('graph {');
  });

  test('is of one kernel, with its source, by name or number', async () => {
    const { out } = await explain('--workload', 'attention', '--kernel', '0');
    expect(out).toMatch(/^0 {2}dot_\w+\n {2}schedule/);
    expect(out).toContain('@compute');
    const name = /^0 {2}(\w+)/.exec(out)![1]!;
    expect(await explain('--workload', 'attention', '--kernel', name)).toEqual({ code: 0, out, err: '' });
    const json = (await explain('--workload', 'attention', '--kernel', name, '--json')).out;
    expect((JSON.parse(json) as ExplainedKernel).name).toBe(name);
    const { code, err } = await explain('--workload', 'attention', '--kernel', 'lost');
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
