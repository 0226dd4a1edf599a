// Texts that are written: what is kept of a conversation, limits, ends, several at once, and memory.

import { afterEach, beforeAll, beforeEach, expect, test } from 'vitest';
import * as sn from '../../src/index.ts';
import { loadModel, type GenerateOptions, type LanguageModel } from '../../src/llm/index.ts';
import { heldBytes } from '../support/llm/held.ts';
import { letters } from '../support/llm/letters.ts';
import { smallModel, sourceOf } from '../support/llm/small.ts';

let model: LanguageModel;

const open = (sequences: number): Promise<LanguageModel> =>
  loadModel({ ...sourceOf(smallModel('llama')), codec: letters }, { contextLength: 64, sequences });

beforeAll(() => sn.setDevice('wasm'));
beforeEach(async () => {
  model = await open(2);
});
afterEach(() => model.dispose());

async function tokensOf(prompt: readonly number[], options: GenerateOptions = {}): Promise<number[]> {
  const generation = model.generate(prompt, { temperature: 0, ...options });
  for await (const _ of generation.pieces());
  return generation.tokens;
}

test('what a text has in common with the one before is not computed again, and nothing else is kept', async () => {
  const first = await tokensOf([1, 2, 3], { maxTokens: 5 });
  // The same beginning, then something else; then a shorter text.
  const longer = await tokensOf([1, 2, 3, ...first.slice(0, 2), 7], { maxTokens: 5 });
  expect(await tokensOf([1, 2, 3], { maxTokens: 5 })).toEqual(first);
  const fresh = await open(1);
  const again = fresh.generate([1, 2, 3, ...first.slice(0, 2), 7], { temperature: 0, maxTokens: 5 });
  for await (const _ of again.pieces());
  expect(again.tokens).toEqual(longer);
  fresh.dispose();
});

test('a text ends where there is no more room, at a stop, and at its end', async () => {
  const full = model.generate(
    Array.from({ length: 60 }, (_, i) => i % 40),
    { temperature: 0, ignoreEnd: true },
  );
  await full.text();
  expect([full.tokens.length, full.finish]).toEqual([4, 'length']);
  expect(await tokensOf([1, 2], { maxTokens: 0 })).toEqual([]);
  const whole = await model.generate('abc', { temperature: 0, maxTokens: 12, ignoreEnd: true }).text();
  const stopped = model.generate('abc', { temperature: 0, maxTokens: 12, ignoreEnd: true, stop: whole[5]! });
  expect(await stopped.text()).toBe(whole.slice(0, whole.indexOf(whole[5]!)));
  expect(stopped.finish).toBe('stop');
  const ended = model.generate('abc', { temperature: 0, maxTokens: 12 });
  await ended.text();
  expect(ended.finish).toBe(ended.tokens.length < 12 ? 'stop' : 'length');
});

test('texts that are written at once are those written alone', async () => {
  const options = { maxTokens: 8, seed: 3, topK: 5, temperature: 1, ignoreEnd: true };
  const prompts = [
    [1, 2, 3],
    [9, 8],
    [4, 4, 4, 4],
  ];
  const alone: number[][] = [];
  for (const prompt of prompts) alone.push(await tokensOf(prompt, options));
  expect(await Promise.all(prompts.map((prompt) => tokensOf(prompt, options)))).toEqual(alone);
});

test('a constraint decides what may come', async () => {
  const seen: number[] = [];
  const constraint = {
    // Even tokens after odd ones, and the other way round.
    allowed: () => Uint8Array.from({ length: 50 }, (_, token) => Number(token % 2 === seen.length % 2)),
    accept: (token: number) => void seen.push(token),
  };
  const tokens = await tokensOf([1, 2, 3], { maxTokens: 6, ignoreEnd: true, constraint });
  expect(tokens.map((token) => token % 2)).toEqual([0, 1, 0, 1, 0, 1]);
  expect(seen).toEqual(tokens);
});

test('an abort ends a text within a token, and others go on', async () => {
  const stop = new AbortController();
  const seen: number[] = [];
  const reading = async (): Promise<void> => {
    const options = { temperature: 0, ignoreEnd: true, signal: stop.signal };
    for await (const { token } of model.generate([1, 2, 3], options).pieces()) {
      seen.push(token);
      if (seen.length === 3) stop.abort(new Error('enough'));
    }
  };
  await expect(reading()).rejects.toThrow('enough');
  expect(seen.length).toBe(3);
  expect(await tokensOf([1, 2, 3], { maxTokens: 3, ignoreEnd: true })).toEqual(seen);
});

test('what was asked wrongly is refused by name', async () => {
  expect(() => model.generate([1], { maxTokens: -1 })).toThrow('maxTokens');
  expect(() => model.generate([1], { topk: 3 } as never)).toThrow('topk');
  expect(() => model.generate([1], { stop: 3 as never })).toThrow('stop');
  expect(() => model.generate(Array.from({ length: 65 }, () => 1))).toThrow('65 tokens');
  await expect(tokensOf([])).rejects.toThrow('no token');
  await expect(tokensOf([50])).rejects.toThrow('no token 50');
  const small = sourceOf(smallModel('llama'));
  await expect(loadModel(small, { contextLength: 65 })).rejects.toThrow('contextLength');
  await expect(loadModel(small, { cacheType: 'f64' as never })).rejects.toThrow('cacheType');
  await expect(loadModel(small, { contextlength: 8 } as never)).rejects.toThrow(
    /no option 'contextlength'[^]*contextLength/,
  );
  expect(() => model.generate([1], { signal: {} as never })).toThrow('signal must be an AbortSignal');
  expect(() => model.generate([1], { constraint: {} as never })).toThrow(/constraint must be .* 'accept'/);
  model.dispose();
  await expect(tokensOf([1])).rejects.toThrow('disposed');
});

test('a text is read once: again is an error, and adds nothing to it', async () => {
  const generation = model.generate([1, 2], { temperature: 0, maxTokens: 3, ignoreEnd: true });
  await generation.text();
  await expect(generation.text()).rejects.toMatchObject({ code: 'E_STATE' });
  expect(generation.tokens.length).toBe(3);
});

test('an abort gives the place of a text back where nobody reads on', async () => {
  const stopped = new AbortController();
  const signals = { ignoreEnd: true, signal: stopped.signal };
  const held = [1, 2].map((i) => model.generate([i], signals).pieces());
  for (const each of held) await each.next();
  const waiting = tokensOf([3], { maxTokens: 2, ignoreEnd: true });
  expect(model.waiting).toBe(1);
  stopped.abort(new Error('gone'));
  expect((await waiting).length).toBe(2);
  await expect(held[0]!.next()).rejects.toThrow('gone');
});

test('a text whose model is disposed of says so', async () => {
  const reading = async (): Promise<void> => {
    for await (const _ of model.generate([1, 2], { ignoreEnd: true }).pieces()) model.dispose();
  };
  await expect(reading()).rejects.toMatchObject({
    code: 'E_STATE',
    message: expect.stringContaining('model: it has been disposed of') as string,
  });
});

test('keys and values of half precision, embeddings, and memory that stays as it is', async () => {
  const half = await loadModel(sourceOf(smallModel('llama')), { contextLength: 64, cacheType: 'f16' });
  const prompt = [5, 6, 7, 8];
  const [exact, rounded] = [await model.logits(prompt), await half.logits(prompt)];
  exact.forEach((score, i) => expect(Math.abs(score - rounded[i]!)).toBeLessThan(0.01));
  half.dispose();
  const vector = await model.embed(prompt);
  expect(Math.hypot(...vector)).toBeCloseTo(1, 5);

  const settled = async (): Promise<number> => {
    await tokensOf(prompt, {
      ignoreEnd: true,
      maxTokens: 50,
      seed: 1,
      temperature: 1,
      frequencyPenalty: 0.1,
    });
    return heldBytes();
  };
  await settled();
  const before = await settled();
  expect(await settled()).toBe(before);
});
