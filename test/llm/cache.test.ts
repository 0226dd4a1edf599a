// Caches of keys and values in blocks of 8 bits: what is read is what was written, within half a step of its block; no
// kernel decodes the cache as a whole; and a model writes with it.

import { beforeAll, describe, expect, test } from 'vitest';
import * as sn from '../../src/index.ts';
import { explainFor } from '../../src/explain/explain.ts';
import { appended, cached, emptyCache } from '../../src/llm/decoder/cache.ts';
import { loadModel } from '../../src/llm/index.ts';
import { cudaTarget, gpuTarget, wasmTarget } from '../../src/schedule/target.ts';
import { everyDevice } from '../support/devices.ts';
import { fileSpecs, ggufBytes } from '../support/llm/gguf-model.ts';
import { plain } from '../support/llm/small.ts';

const config = { ...plain, layers: 1, headSize: 64 };
const [keyHeads, room, rows] = [config.keyHeads, 10, 3];
const at = (value: number): sn.Tensor => sn.tensor(Int32Array.of(value), { shape: [] });

describe.each(everyDevice)('on %s', (device) => {
  beforeAll(() => sn.setDevice(device));

  test('a cache has what joined it, within half a step of each block', async () => {
    const size = config.headSize;
    const shape = [2, keyHeads, rows, size] as const;
    const values = Float32Array.from({ length: 2 * keyHeads * rows * size }, (_, i) => 3 * Math.sin(i * i));
    // A block of large values, one of small ones, one of zeros, and one that has no largest value.
    values.forEach((value, i) => {
      const block = Math.floor(i / 32);
      if (block < 3) values[i] = value * [1e20, 1e-20, 0][block]!;
    });
    values[3 * 32 + 5] = Infinity;
    const join = sn.compile((cache: sn.Tensor, fresh: sn.Tensor, position: sn.Tensor) => {
      const next = appended(cache, fresh, position);
      return [next, cached(next, 0), cached(next, 1)] as const;
    });
    const [empty] = emptyCache(config, room, 'q8_0');
    const found = join(empty!, sn.tensor(values, { shape }), at(4));
    for (const which of [0, 1] as const) {
      const read = (await found[1 + which]!.data()) as Float32Array;
      expect(read.length).toBe(keyHeads * room * size);
      for (let head = 0; head < keyHeads; head++)
        for (let position = 0; position < room; position++)
          for (let from = 0; from < size; from += 32) {
            const begin = (head * room + position) * size + from;
            const block = read.slice(begin, begin + 32);
            const row = position - 4;
            if (row < 0 || row >= rows) {
              expect(block.every((value) => value === 0)).toBe(true);
              continue;
            }
            const source = ((which * keyHeads + head) * rows + row) * size + from;
            const given = values.slice(source, source + 32);
            const largest = given.reduce((most, value) => Math.max(most, Math.abs(value)), 0);
            if (largest === Infinity) expect(block.every(Number.isNaN)).toBe(true);
            else
              block.forEach((value, i) =>
                expect(Math.abs(value - given[i]!)).toBeLessThanOrEqual((largest / 127) * 0.5001),
              );
          }
    }
  });
});

test.each([
  ['WebGPU', gpuTarget],
  ['CUDA', cudaTarget],
  ['WebAssembly', wasmTarget],
])('%s reads the blocks where it attends', (_, target) => {
  const length = 512;
  const [cache] = emptyCache(config, length, 'q8_0');
  const attend = (held: sn.Tensor, fresh: sn.Tensor, query: sn.Tensor, position: sn.Tensor): sn.Tensor[] => {
    const next = appended(held, fresh, position);
    const mask = sn.arange(length).le(position).reshape([1, length]);
    return [next, sn.scaledDotProductAttention(query, cached(next, 0), cached(next, 1), { mask })];
  };
  const fresh = sn.zeros([2, keyHeads, 1, config.headSize]);
  const step = sn.compile(attend, { donate: [0] });
  const { kernels } = explainFor(
    target,
    step,
    cache!,
    fresh,
    sn.zeros([keyHeads, 2, config.headSize]),
    at(9),
  );
  const attention = kernels.find(({ kind }) => kind === 'attention')!;
  const whole = 4 * cache!.size;
  expect(attention.bytes).toBeLessThan(1.1 * whole);
  // The one that appends may copy the words; decoded values would be 3.5 times as many bytes.
  for (const { bytes } of kernels) expect(bytes).toBeLessThan(2.1 * whole);
  expect(kernels.length).toBe(4);
});

test('a model writes with it as with floats, but for a few thousandths', async () => {
  const spec = fileSpecs.find(({ name }) => name === 'llama f32')!;
  const options = { contextLength: 64, device: 'wasm' };
  const exact = await loadModel(await ggufBytes(spec), options);
  const blocks = await loadModel(await ggufBytes(spec), { ...options, cacheType: 'q8_0' });
  const prompt = Array.from({ length: 40 }, (_, i) => 33 + ((i * 7919) % 90));
  const [scores, close] = [await exact.logits(prompt), await blocks.logits(prompt)];
  const largest = scores.reduce((most, score) => Math.max(most, Math.abs(score)), 0);
  scores.forEach((score, i) => expect(Math.abs(score - close[i]!)).toBeLessThan(0.01 * largest));
  const generation = blocks.generate(prompt, { temperature: 0, maxTokens: 8, ignoreEnd: true });
  await generation.text();
  expect(generation.tokens.length).toBe(8);
  // 36 bytes a block of 32 values, of which floats take 128.
  const read = (model: typeof exact): number => model.tokenBytes(63) - model.tokenBytes(0);
  expect(read(blocks) / read(exact)).toBe(36 / 128);
  exact.dispose();
  blocks.dispose();
});

test('heads of other sizes are refused', async () => {
  const spec = fileSpecs.find(({ name }) => name === 'qwen2')!;
  const given = loadModel(await ggufBytes(spec), { contextLength: 64, cacheType: 'q8_0', device: 'wasm' });
  await expect(given).rejects.toThrow("a multiple of 32 values, and the model's have 16");
});
