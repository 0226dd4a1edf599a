// Real networks from ONNX files, built ahead of time: in few kernels, and to the figures that came with them.

import { existsSync, readFileSync } from 'node:fs';
import * as path from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { runCli } from '../../src/cli/run.ts';
import { setDevice } from '../../src/index.ts';
import { decode } from '../../src/onnx/wire.ts';
import { readTensor } from '../../src/onnx/weights.ts';
import type { Inputs, Outputs } from '../../src/player/player.ts';
import { removeFolders, temporary } from './bundles.ts';

const models = path.resolve(import.meta.dirname, '../../../shared/onnx/models');

afterAll(() => {
  removeFolders();
  setDevice(undefined);
});

function elements(file: string): Float32Array<ArrayBuffer> {
  return Float32Array.from(readTensor(decode('Tensor', readFileSync(file))).array.data as Float32Array);
}

async function build(...args: string[]): Promise<{ code: number; out: string; err: string }> {
  const [out, err]: [string[], string[]] = [[], []];
  const note = (text: string): void => void err.push(text);
  const line = (text: string): void => void out.push(text);
  const output = { columns: undefined, line, note, mark: note, live: () => undefined };
  const code = await runCli(['build', ...args], output);
  return { code, out: out.join('\n'), err: err.join('\n') };
}

// Kernels: at most one for each convolution and pooling, and three.
test.each([
  ['squeezenet', 26 + 4 + 3],
  ['shufflenet', 49 + 3 + 3],
])('%s', { timeout: 120_000 }, async (name, most) => {
  const folder = path.join(models, name);
  expect(existsSync(folder), `${folder} is not there`).toBe(true);
  const out = temporary();
  const {
    code,
    out: told,
    err,
  } = await build(path.join(folder, 'model.onnx'), '--out', out, '--json', '--target', 'wasm');
  expect([code, err]).toEqual([0, '']);
  const result = JSON.parse(told) as { kernels: { wasm: number }; scriptGzip: number };
  expect(result.kernels.wasm).toBeLessThanOrEqual(most);
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

test.each([
  [['--dim', 'batch'], "--dim: expects NAME=SIZE, got 'batch'"],
  [['--dim', 'batch=x'], "got 'batch=x'"],
])('%j is refused with what to do', async (args, words) => {
  const { code, err } = await build(
    path.join(models, 'squeezenet/model.onnx'),
    '--out',
    temporary(),
    ...args,
  );
  expect([code, err]).toEqual([2, expect.stringContaining(words)]);
});
