// Real networks from ONNX files, built ahead of time: in few kernels, and to the figures that came with them.

import { readFileSync } from 'node:fs';
import * as path from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { setDevice } from '../../src/index.ts';
import type { Inputs, Outputs } from '../../src/bundle-runtime/runtime.ts';
import { removeFolders, temporary } from './bundles.ts';
import { standIn, useStandIn } from '../cuda/standin/standin.ts';
import { sinter, type Said } from '../support/cli.ts';
import { missingNetworks as missing, networkFigures, type Network } from '../support/onnx/networks.ts';

afterAll(() => {
  removeFolders();
  setDevice(undefined);
});

const build = (...args: string[]): Promise<Said> => sinter('build', ...args);

/** Dispatches: one for each convolution and pooling, and three. */
const networks: readonly (readonly [Network, number])[] = [
  ['squeezenet', 26 + 4 + 3],
  ['shufflenet', 49 + 5 + 3],
];

test.for(networks)('%s', async ([name, most], { skip }) => {
  if (missing !== undefined) skip(missing);
  const { model: file, input, output: expected } = networkFigures(name);
  const out = temporary();
  const { code, out: told, err } = await build(file, '--out', out, '--json', '--target', 'wasm');
  expect([code, err]).toEqual([0, '']);
  const result = JSON.parse(told) as { dispatches: { wasm: number }; scriptGzip: number };
  expect(result.dispatches.wasm).toBeLessThanOrEqual(most);
  expect(result.scriptGzip).toBeLessThanOrEqual(8700);
  const { load } = (await import(path.join(out, 'index.js'))) as {
    load: () => Promise<{ run(inputs: Inputs): Promise<Outputs>; dispose(): void }>;
  };
  const { entries } = JSON.parse(readFileSync(path.join(out, 'program.json'), 'utf8')) as {
    entries: { run: { inputs: { name: string }[]; outputs: { name: string }[] } };
  };
  const model = await load();
  const found = await model.run({ [entries.run.inputs[0]!.name]: input.data });
  model.dispose();
  const output = found[entries.run.outputs[0]!.name] as Float32Array;
  const scale = Math.max(...expected.data.map(Math.abs));
  expect(output).toHaveLength(expected.data.length);
  expected.data.forEach((value, i) => expect(Math.abs(output[i]! - value) / scale).toBeLessThan(1e-3));
});

test.for(networks)('%s on a GPU, and on the software adapter', async ([name, most], { skip }) => {
  if (missing !== undefined) skip(missing);
  const { model } = networkFigures(name);
  const built = await build(model, '--out', temporary(), '--json', '--target', 'webgpu');
  expect([built.code, built.err]).toEqual([0, '']);
  const result = JSON.parse(built.out) as { dispatches: { webgpu: number }; scriptGzip: number };
  expect(result.dispatches.webgpu).toBeLessThanOrEqual(most);
  expect(result.scriptGzip).toBeLessThanOrEqual(6650);
  const explained = await sinter('explain', model, '--software', '--json');
  const { kernels } = JSON.parse(explained.out) as { kernels: unknown[] };
  expect(kernels.length).toBeLessThanOrEqual(most);
});

test.for(networks)('%s on CUDA', async ([name, most], { skip }) => {
  if (missing !== undefined) skip(missing);
  const found = standIn();
  if (!found.available) skip(found.reason);
  useStandIn();
  const { model, folder } = networkFigures(name);
  const out = temporary();
  const args = ['--target', 'cuda', '--arch', 'sm_90', '--out', out, '--json'];
  const built = await build(model, ...args);
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
  const { model } = networkFigures('squeezenet');
  const { code, err } = await build(model, '--out', temporary(), ...args);
  expect([code, err]).toEqual([2, expect.stringContaining(words)]);
});
