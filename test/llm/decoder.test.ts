// Decoders of every family against plain loops in double precision: a prompt in blocks, then token by
// token over the cache that it left, on every device.

import { beforeAll, describe, expect, test } from 'vitest';
import * as sn from '../../src/index.ts';
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
