// Decoders of every family against plain loops in double precision: a prompt in blocks, then token by
// token over the cache that it left, on every device.

import { beforeAll, describe, expect, test } from 'vitest';
import * as sn from '../../src/index.ts';
import { emptyCache } from '../../src/llm/decoder/cache.ts';
import { Decoder, turnsOf } from '../../src/llm/decoder/decoder.ts';
import { loadWeights } from '../../src/llm/decoder/weights.ts';
import { loadModel } from '../../src/llm/index.ts';
import { everyDevice } from '../support/devices.ts';
import { referenceScores } from '../support/llm/reference.ts';
import { families, smallModel, sourceOf } from '../support/llm/small.ts';

const prompt = Array.from({ length: 35 }, (_, i) => (i * 17 + 3) % 50);

const largest = (values: ArrayLike<number>): number =>
  Array.from(values).reduce((best, value, i, all) => (value > all[best]! ? i : best), 0);

async function holds(family: string, room: number, count: number, tolerance: number): Promise<void> {
  const small = smallModel(family);
  const model = await loadModel(sourceOf(small), { contextLength: room });
  const scores = await model.logits(prompt);
  const expected = referenceScores(small, prompt, room).at(-1)!;
  expected.forEach((value, i) => expect(Math.abs(scores[i]! - value)).toBeLessThan(tolerance));

  const written: number[] = [];
  for await (const { token } of model.generate(prompt, { temperature: 0, maxTokens: count }).pieces()) {
    written.push(token);
  }
  const all = referenceScores(small, [...prompt, ...written], room);
  // Of random weights the likeliest token is rarely a near thing; where it is, either may come.
  written.forEach((token, i) => {
    const row = all[prompt.length - 1 + i]!;
    expect(row[largest(row)]! - row[token]!).toBeLessThan(tolerance);
  });
  expect(written.length).toBe(count);
  model.dispose();
}

describe('a decoder is its family in plain loops', () => {
  beforeAll(() => sn.setDevice('interpreter'));

  test.each(Object.keys(families))('%s', (family) => holds(family, 48, 4, 2e-5));
});

describe.each(everyDevice.filter((name) => name !== 'interpreter'))('on %s', (device) => {
  beforeAll(() => sn.setDevice(device));

  test('llama', () => holds('llama', 48, 6, 1e-4));
});

test('a prompt of 5,000 tokens in blocks is the same as a whole', async () => {
  sn.setDevice('wasm');
  const length = 5000;
  const { config: few, weights } = smallModel('gemma3');
  const config = { ...few, contextLength: length };
  const source = sourceOf({ config, weights });
  const tokens = Int32Array.from({ length }, (_, i) => (i * i * 31 + i * 17 + 3) % 50);
  const model = await loadModel(source, { contextLength: length });
  const scores = await model.logits([...tokens]);
  model.dispose();
  const decoder = new Decoder(
    config,
    await loadWeights(source.weights, config),
    turnsOf(config, length, length),
  );
  const whole = sn.compile((all: sn.Tensor, cache: readonly sn.Tensor[]) => {
    const { hidden } = decoder.run(all, sn.tensor(Int32Array.of(0), { shape: [] }), cache);
    return decoder.scores(hidden.narrow(0, length - 1, 1));
  });
  const expected = await whole(sn.tensor(tokens), emptyCache(config, length, 'f32')).data();
  decoder.dispose();
  expect(expected.length).toBe(50);
  scores.forEach((score, i) => expect(Math.abs(score - Number(expected[i]))).toBeLessThan(1e-4));
});
