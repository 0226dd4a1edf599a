// A BERT-like encoder as exporters write one, with a free batch and length: one compiled function runs
// it at many shapes without compiling again, as ONNX Runtime computes it; and so does a bundle.

import { afterAll, beforeAll, expect, test } from 'vitest';
import { compile, setDevice, stats, tensor, type Tensor } from '../../src/index.ts';
import { loadOnnx } from '../../src/onnx/index.ts';
import { bert, longest, vocabulary } from '../support/onnx/bert.ts';
import { runPeer } from './peer/compare.ts';

beforeAll(() => setDevice('wasm'));
afterAll(() => setDevice(undefined));

test('a BERT-like model runs 50 shapes by a few programs, as ONNX Runtime does', async () => {
  const file = bert();
  const model = await loadOnnx(file);
  const dims = [model.dims({ batch: { max: 6 }, length: { max: longest } })];
  const run = compile(model.toFunction(), { dims });
  const before = stats().programs;
  const compiled: number[] = [];
  for (let i = 0; i < 50; i++) {
    const [batch, length] = [1 + ((i * 5) % 6), 1 + ((i * 23) % longest)];
    const count = batch * length;
    const ids = BigInt64Array.from({ length: count }, (_, k) => BigInt((7 * k + 3 * i) % vocabulary));
    const mask = BigInt64Array.from({ length: count }, (_, k) =>
      BigInt(k % length === 0 || (k + i) % 5 > 0 ? 1 : 0),
    );
    const shape = [batch, length];
    const results = run({ ids: tensor(ids, { shape }), mask: tensor(mask, { shape }) }) as Record<
      string,
      Tensor
    >;
    const peer = await runPeer(file, {
      ids: { dtype: 'i64', shape, data: ids },
      mask: { dtype: 'i64', shape, data: mask },
    } as never);
    if (peer.kind === 'refused') throw new Error(peer.reason);
    for (const [k, name] of ['hidden', 'pooled'].entries()) {
      const found = (await results[name]!.data()) as Float32Array;
      const expected = peer.results[k]!.data as ArrayLike<number>;
      expect(found).toHaveLength(expected.length);
      const worst = found.reduce((most, value, at) => Math.max(most, Math.abs(value - expected[at]!)), 0);
      expect(worst, `${name} at ${shape.join(' x ')}`).toBeLessThan(2e-5);
    }
    compiled.push(stats().programs - before);
  }
  expect(compiled.at(-1)).toBeLessThanOrEqual(3);
  // Nothing after each part of the ranges was met.
  expect(new Set(compiled.slice(12)).size).toBe(1);
});
