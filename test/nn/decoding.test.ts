// Decoding position by position with kept keys and values is decoding at once under a causal mask.

import { beforeAll, expect, test } from 'vitest';
import * as sn from '../../src/index.ts';
import type { Tensor } from '../../src/index.ts';
import * as nn from '../../src/nn/index.ts';

const width = 4;

function decoderOf(normFirst: boolean): nn.TransformerDecoder {
  sn.manualSeed(3);
  const options = { hidden: 6, normFirst, dtype: 'f64' } as const;
  const layers = [1, 2].map(() => new nn.TransformerDecoderLayer(width, 2, options));
  const norm = new nn.LayerNorm(width, { dtype: 'f64' });
  return nn.evalMode(new nn.TransformerDecoder(layers, { norm }));
}

const drawn = (...shape: number[]): Tensor => sn.randn(shape, { dtype: 'f64' });

async function differs(x: Tensor, y: Tensor): Promise<number> {
  return Number(await x.sub(y).abs().amax().item());
}

beforeAll(() => sn.setDevice('wasm'));

test.each([false, true])('steps of one and of two positions, with norms first: %s', async (normFirst) => {
  const decoder = decoderOf(normFirst);
  const [x, memory] = [drawn(2, 5, width), drawn(2, 3, width)];
  const mask = sn.tril(sn.ones([5, 5], { dtype: 'bool' }));
  const whole = decoder.forward(x, memory, { mask });
  let cache = decoder.startCache(memory, 5);
  for (const [from, count] of [
    [0, 1],
    [1, 2],
    [3, 1],
    [4, 1],
  ] as const) {
    const [y, next] = decoder.step(sn.narrow(x, 1, from, count), cache);
    expect(await differs(y, sn.narrow(whole, 1, from, count))).toBeLessThan(1e-12);
    cache = next;
  }
  expect(await cache[1]!.length.item()).toBe(5);
});

test('one compiled step serves all positions', async () => {
  const decoder = decoderOf(true);
  const [x, memory] = [drawn(1, 3, width), drawn(1, 2, width)];
  const whole = decoder.forward(x, memory, { mask: sn.tril(sn.ones([3, 3], { dtype: 'bool' })) });
  let traces = 0;
  const step = sn.compile((at: Tensor, cache: nn.DecoderCache) => {
    traces++;
    return decoder.step(at, cache);
  });
  let cache = decoder.startCache(memory, 4);
  for (let i = 0; i < 3; i++) {
    const [y, next] = step(sn.narrow(x, 1, i, 1), cache);
    expect(await differs(y, sn.narrow(whole, 1, i, 1))).toBeLessThan(1e-12);
    cache = next;
  }
  expect(traces).toBe(1);
});

test('a position beyond the room is an error, and NaN where nobody checks', async () => {
  const decoder = decoderOf(false);
  let cache = decoder.startCache(drawn(1, 2, width), 2);
  for (let i = 0; i < 2; i++) {
    const [y, next] = decoder.step(drawn(1, 1, width), cache);
    expect(await sn.isNan(y).any().item()).toBe(false);
    cache = next;
  }
  const [lost] = decoder.step(drawn(1, 1, width), cache);
  await expect(lost.data()).rejects.toThrow('TransformerDecoder: position 2 is outside a cache for 2');
  sn.setChecks(false);
  const [unseen] = decoder.step(drawn(1, 1, width), cache);
  expect(await sn.isNan(unseen).all().item()).toBe(true);
  sn.setChecks(true);
  expect(() => decoder.step(drawn(1, 3, width), cache)).toThrow('3 positions, and the cache holds 2');
});

test('a cache of another decoder is refused', () => {
  const decoder = decoderOf(false);
  expect(() => decoder.step(drawn(1, 1, width), [])).toThrow(/2 layers and a cache of 0/);
});
