// Real networks from ONNX files, built ahead of time: in few kernels, and to the figures that came with them.

import { existsSync, readFileSync } from 'node:fs';
import * as path from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { setDevice } from '../../src/index.ts';
import { decode } from '../../src/onnx/wire.ts';
import { readTensor } from '../../src/onnx/weights.ts';
import type { Inputs, Outputs } from '../../src/player/player.ts';
import { removeFolders, temporary } from './bundles.ts';
import { standIn, useStandIn } from '../cuda/standin.ts';
import { sinter, type Said } from '../support/cli.ts';

const models = path.resolve(import.meta.dirname, '../../../shared/onnx/models');

afterAll(() => {
  removeFolders();
  setDevice(undefined);
});

/** The networks lie beside the checkout, where they are given at all. */
const missing = existsSync(models) ? undefined : `${models} is not there`;

function elements(file: string): Float32Array<ArrayBuffer> {
  return Float32Array.from(readTensor(decode('Tensor', readFileSync(file))).array.data as Float32Array);
}

const build = (...args: string[]): Promise<Said> => sinter('build', ...args);

// Dispatches: one for each convolution and pooling, and three.
test.for<[string, number]>([
  ['squeezenet', 26 + 4 + 3],
  ['shufflenet', 49 + 5 + 3],
])('%s', { timeout: 120_000 }, async ([name, most], { skip }) => {
  if (missing !== undefined) skip(missing);
  const folder = path.join(models, name);
  const out = temporary();
  const {
    code,
    out: told,
    err,
  } = await build(path.join(folder, 'model.onnx'), '--out', out, '--json', '--target', 'wasm');
  expect([code, err]).toEqual([0, '']);
  const result = JSON.parse(told) as { dispatches: { wasm: number }; scriptGzip: number };
  expect(result.dispatches.wasm).toBeLessThanOrEqual(most);
  expect(result.scriptGzip).toBeLessThanOrEqual(8000);
  const { load } = (await import(path.join(out, 'index.js'))) as {
    load: () => Promise<{ run(inputs: Inputs): Promise<Outputs>; dispose(): void }>;
  };
  const { entries } = JSON.parse(readFileSync(path.join(out, 'program.json'), 'utf8')) as {
    entries: { run: { inputs: { name: string }[]; outputs: { name: string }[] } };
  };
  const model = await load();
  const found = await model.run({ [entries.run.inputs[0]!.name]: elements(path.join(folder, 'input_0.pb')) });
  model.dispose();
  const expected = elements(path.join(folder, 'output_0.pb'));
  const output = found[entries.run.outputs[0]!.name] as Float32Array;
  const scale = Math.max(...expected.map(Math.abs));
  expect(output).toHaveLength(expected.length);
  expected.forEach((value, i) => expect(Math.abs(output[i]! - value) / scale).toBeLessThan(1e-3));
});

test.for<[string, number]>([
  ['squeezenet', 26 + 4 + 3],
  ['shufflenet', 49 + 5 + 3],
])('%s on CUDA', { timeout: 120_000 }, async ([name, most], { skip }) => {
  if (missing !== undefined) skip(missing);
  const found = standIn();
  if (!found.available) skip(found.reason);
  useStandIn();
  const folder = path.join(models, name);
  const out = temporary();
  const args = ['--target', 'cuda', '--arch', 'sm_90', '--out', out, '--json'];
  const built = await build(path.join(folder, 'model.onnx'), ...args);
  expect([built.code, built.err]).toEqual([0, '']);
  const result = JSON.parse(built.out) as { dispatches: { cuda: number }; archs: string[] };
  expect(result.dispatches.cuda).toBeLessThanOrEqual(most);
  expect(result.archs).toEqual(['sm_90']);
  const [input, output] = ['input_0.pb', 'output_0.pb'].map((file) => path.join(folder, file));
  const figures = ['--input', input!, '--expect', output!, '--rtol', '0.001'];
  const { code, err } = await sinter('run', out, '--device', 'cuda', ...figures);
  expect([code, err]).toEqual([0, expect.stringContaining('on CUDA stand-in on the CPU')]);
});

test.for<[string[], string]>([
  [['--dim', 'batch'], "--dim: expects NAME=SIZE, got 'batch'"],
  [['--dim', 'batch=x'], "got 'batch=x'"],
])('%j is refused with what to do', async ([args, words], { skip }) => {
  if (missing !== undefined) skip(missing);
  const { code, err } = await build(
    path.join(models, 'squeezenet/model.onnx'),
    '--out',
    temporary(),
    ...args,
  );
  expect([code, err]).toEqual([2, expect.stringContaining(words)]);
});
