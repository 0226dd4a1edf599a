// Models that PyTorch's own exporters wrote (scripts/layers/onnx-models.py), the older and the newer one: they give what
// PyTorch gives, at the sizes of the export and at others, and so do bundles whose sizes are left open.

import { readFileSync } from 'node:fs';
import * as path from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { Inputs } from '../../../src/bundle-runtime/runtime.ts';
import { setDevice, tensor } from '../../../src/index.ts';
import { loadOnnx } from '../../../src/onnx/index.ts';
import { removeFolders, temporary } from '../../aot/bundles.ts';
import type { Load } from '../../aot/places.ts';
import { sinter } from '../../support/cli.ts';

interface Stored {
  readonly dtype: 'f32' | 'i64' | 'bool';
  readonly shape: readonly number[];
  /** Infinite numbers are text. */
  readonly data: readonly (number | string)[];
}

interface Model {
  readonly exporters: readonly string[];
  readonly dims: readonly string[];
  readonly runs: readonly { readonly inputs: readonly Stored[]; readonly outputs: readonly Stored[] }[];
}

const folder = fileURLToPath(new URL('../../fixtures/onnx/', import.meta.url));
const models = JSON.parse(readFileSync(path.join(folder, 'models.json'), 'utf8')) as Record<string, Model>;
const files = Object.entries(models).flatMap(([name, model]) =>
  model.exporters.map((exporter) => [`${name}.${exporter}`, model] as const),
);

function arrayOf({ dtype, data }: Stored): Float32Array | BigInt64Array | Uint8Array {
  if (dtype === 'i64') return BigInt64Array.from(data, BigInt);
  return dtype === 'bool' ? Uint8Array.from(data, Number) : Float32Array.from(data, Number);
}

function expectNear(found: ArrayLike<number | bigint>, stored: Stored, what: string): void {
  const expected = arrayOf(stored);
  expect(found.length, what).toBe(expected.length);
  const odd = expected.findIndex((value: number | bigint, i: number) => {
    const [a, b] = [Number(found[i]), Number(value)];
    return a !== b && !(Math.abs(a - b) <= 1e-4 * Math.max(1, Math.abs(b)));
  });
  expect(odd < 0 ? undefined : [odd, found[odd], expected[odd]], what).toBeUndefined();
}

beforeAll(() => setDevice('wasm'));
afterAll(removeFolders);

test.each(files)('%s gives what PyTorch gives', async (file, { runs }) => {
  const model = await loadOnnx(path.join(folder, `${file}.onnx`));
  for (const { inputs, outputs } of runs) {
    const given = inputs.map((one, i) => {
      const { dtype, shape } = one;
      return [`in${i}`, tensor(arrayOf(one), { dtype, shape })] as const;
    });
    const found = await model.run(Object.fromEntries(given));
    expect(model.outputs).toHaveLength(outputs.length);
    for (const [i, { name }] of model.outputs.entries()) {
      const { dtype, shape } = outputs[i]!;
      expect([found[name]!.dtype, found[name]!.shape], name).toEqual([dtype, shape]);
      expectNear(await found[name]!.data(), outputs[i]!, name);
    }
  }
});

describe('a bundle for open sizes', () => {
  // Positions of the text models end at 16. Pools need two rows.
  const ranges: Readonly<Record<string, string>> = { h: '2..32', w: '2..32', t: '1..16' };

  // Of each kind one. Sizes of the others are left open by the same rules.
  const built = [
    'bert.script',
    'bert.dynamo',
    'cnn.script',
    'encoder.dynamo',
    'shapes.dynamo',
    'unet.dynamo',
  ];

  test.each(files.filter(([file]) => built.includes(file)))('of %s', async (file, { dims, runs }) => {
    const at = path.join(folder, `${file}.onnx`);
    const open = dims.flatMap((name) => ['--dim', `${name}=${ranges[name] ?? '1..8'}`]);
    const out = temporary();
    const { code, err } = await sinter('build', at, '--out', out, '--target', 'wasm', ...open);
    expect([code, err]).toEqual([0, '']);
    const { load } = (await import(path.join(out, 'index.js'))) as { load: Load };
    const { outputs: names } = await loadOnnx(at);
    const bundle = await load({ target: 'wasm', threads: 1 });
    for (const { inputs, outputs } of runs) {
      const given = inputs.map((one, i) => [`in${i}`, { data: arrayOf(one), shape: one.shape }] as const);
      const found = await bundle.run(Object.fromEntries(given) as Inputs);
      for (const [i, { name }] of names.entries())
        expectNear(found[name] as ArrayLike<number | bigint>, outputs[i]!, name);
    }
    bundle.dispose();
  });
});
