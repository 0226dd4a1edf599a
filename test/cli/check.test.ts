// `sinter check` at a command line: models of every kind on a right device, and on one that folds wrongly, whose table
// a later command obeys.
//
// Runs on the sources: it runs a program of TypeScript, which imports them.

import * as fs from 'node:fs';
import * as path from 'node:path';
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import type { CheckResult } from '../../src/cli/check/check.ts';
import type { RunResult } from '../../src/cli/run/run.ts';
import { setDevice, useWorkarounds } from '../../src/index.ts';
import { removeFolders, temporary } from '../aot/bundles.ts';
import { sinter } from '../support/cli.ts';
import { fileSpecs, ggufBytes } from '../support/llm/gguf-model.ts';
import { plantedDevice } from '../tensor/check/planted.ts';

const squeezenet = path.resolve(import.meta.dirname, '../../../shared/onnx/models/squeezenet/model.onnx');
const source = path.resolve(import.meta.dirname, '../../src/index.ts');

let folder = '';
beforeAll(() => {
  folder = temporary();
});
afterEach(() => {
  delete process.env['SINTER_WORKAROUNDS'];
  useWorkarounds(undefined);
});
afterAll(() => {
  removeFolders();
  setDevice(undefined);
});

function file(name: string, content: string | Uint8Array): string {
  const place = path.join(folder, name);
  fs.writeFileSync(place, content);
  return place;
}

const rows = `import { arange } from ${JSON.stringify(source)};
export const fn = (x) => x.softmax(-1);
export const inputs = { fn: [arange(8192).reshape([16, 512]).mul(0.01).sin()] };`;

async function checked(...args: readonly string[]): Promise<CheckResult> {
  const { code, out, err } = await sinter('check', ...args, '--json');
  expect([code, err]).toEqual([0, '']);
  return JSON.parse(out) as CheckResult;
}

test('an ONNX model on wasm: all kernels are right', async () => {
  const { device, kernels, workarounds } = await checked(squeezenet, '--device', 'wasm:1');
  expect(device).toBe('wasm:1');
  expect(workarounds).toBeUndefined();
  expect(kernels.length).toBeGreaterThan(10);
  for (const { name, verdict } of kernels) expect([name, verdict]).toEqual([name, 'right']);
});

test('a language model: the programs of a prompt and of a token', async () => {
  const model = file('small.gguf', await ggufBytes(fileSpecs.find(({ name }) => name === 'llama f32')!));
  const { kernels } = await checked(model, '--device', 'wasm:1', '--prompt-tokens', '5');
  expect(new Set(kernels.map(({ program }) => program)).size).toBeGreaterThan(1);
  for (const { name, verdict } of kernels) expect([name, verdict]).toEqual([name, 'right']);
});

test('a wrong device: exit code 1, and a table that later commands obey', async () => {
  const device = plantedDevice(({ source: text }) => text.replace('subgroupAdd(', 'subgroupMax('));
  const module = file('rows.ts', rows);
  const table = path.join(folder, 'workarounds.json');
  const { code, out, err } = await sinter('check', module, '--device', device, '--write', table);
  expect(code).toBe(1);
  expect(out).toMatch(/1 wrong: .*driver 1/);
  expect(err).toMatch(/wrong on planted-\d+: row_reduction/);
  const sums = async (): Promise<number> => {
    const { out: said } = await sinter('run', module, '--device', device, '--json');
    return (JSON.parse(said) as RunResult).outputs[0]!.mean! * 512;
  };
  expect(Math.abs((await sums()) - 1)).toBeGreaterThan(0.1);
  process.env['SINTER_WORKAROUNDS'] = table;
  // The device is asked for anew, as in a process of its own.
  useWorkarounds(JSON.parse(fs.readFileSync(table, 'utf8')) as never);
  expect(await sums()).toBeCloseTo(1, 4);
});

test('a bundle: right as it was built, and wrong where a kernel was changed', async () => {
  const out = path.join(folder, 'rows');
  const built = await sinter('build', file('rows.ts', rows), '--check', '--out', out, '--json');
  expect([built.code, built.err]).toEqual([0, '']);
  expect((JSON.parse(built.out) as { check: number }).check).toBeGreaterThan(0);
  for (const name of ['wasm:1', 'webgpu:software']) {
    const { device, kernels } = await checked(out, '--device', name);
    expect(device).toBe(name.split(':')[0]);
    expect(kernels.map(({ verdict }) => verdict)).toEqual(kernels.map(() => 'right'));
    expect(kernels.length).toBeGreaterThan(0);
  }
  const kernel = fs.readdirSync(path.join(out, 'kernels')).find((name) => name.endsWith('.wgsl'))!;
  const place = path.join(out, 'kernels', kernel);
  const source = fs.readFileSync(place, 'utf8');
  fs.writeFileSync(place, source.replace(/(out0\[[^\]]+\]) = ([^;]+);/, '$1 = ($2) * 1.1;'));
  const { code, out: said, err } = await sinter('check', out, '--device', 'webgpu:software');
  expect(code).toBe(1);
  expect(said).toMatch(/1 wrong: .*[^]*right where wasm computes instead/);
  expect(err).toMatch(/wrong on webgpu: row_reduction/);
});

test.each([
  ['no model', [], 2, 'no MODEL given'],
  ['no such file', ['none.onnx'], 2, 'none.onnx'],
  [
    'the interpreter',
    ['rows.ts', '--device', 'interpreter'],
    1,
    'the interpreter, which others are compared with',
  ],
  ['a bundle without a check', ['bundle'], 2, 'was built without what its kernels are compared with'],
  ['inputs of a bundle', ['bundle', '--random', '3'], 2, '--random: a bundle was given its inputs'],
])('refuses %s', async (_, [name, ...options], code, words) => {
  file('rows.ts', rows);
  fs.mkdirSync(path.join(folder, 'bundle'), { recursive: true });
  file('bundle/program.json', '{}');
  const said = await sinter('check', ...(name === undefined ? [] : [path.join(folder, name)]), ...options);
  expect(said.code).toBe(code);
  expect(said.err).toContain(words);
});
