// Speculative decoding: whatever guesses, and however well, a text is the one that is written without drafts.

import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import * as sn from '../../src/index.ts';
import { loadModel, type GenerateOptions, type LanguageModel } from '../../src/llm/index.ts';
import { heldBytes } from '../support/llm/held.ts';
import { letters } from '../support/llm/letters.ts';
import { smallModel, sourceOf } from '../support/llm/small.ts';

const contextLength = 64;
let model: LanguageModel;
/** The same weights: it guesses what the model writes. */
let twin: LanguageModel;
/** Another family: its guesses are mostly wrong. */
let stranger: LanguageModel;

const open = (family: string): Promise<LanguageModel> =>
  loadModel({ ...sourceOf(smallModel(family)), codec: letters }, { contextLength });

beforeAll(async () => {
  sn.setDevice('wasm');
  [model, twin, stranger] = [await open('llama'), await open('llama'), await open('qwen2')];
});
afterAll(() => [model, twin, stranger].forEach((each) => each.dispose()));

const prompt = [3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 1, 4, 1];

async function written(options: GenerateOptions): Promise<ReturnType<LanguageModel['generate']>> {
  const generation = model.generate(prompt, { maxTokens: 30, ignoreEnd: true, ...options });
  for await (const _ of generation.pieces());
  return generation;
}

const samplings: readonly (readonly [string, GenerateOptions])[] = [
  ['the likeliest', { temperature: 0 }],
  ['draws', { seed: 5 }],
  ['draws of few', { seed: 6, topK: 8, topP: 0.9 }],
  ['penalties', { seed: 7, temperature: 0.5, frequencyPenalty: 0.4, repetitionPenalty: 1.2 }],
  ['penalties of the likeliest', { temperature: 0, presencePenalty: 0.7 }],
  ['a text that repeats itself', { seed: 8, frequencyPenalty: -1 }],
];

describe.each(samplings)('%s', (_, sampling) => {
  test('are the same whoever drafts', async () => {
    const { tokens } = await written(sampling);
    for (const draft of [twin, stranger, 'lookup'] as const)
      expect((await written({ ...sampling, draft })).tokens).toEqual(tokens);
    for (const draftTokens of [1, 7])
      expect((await written({ ...sampling, draft: twin, draftTokens })).tokens).toEqual(tokens);
  });
});

describe('how many drafts stand', () => {
  test.each(samplings.slice(0, 3))('of a model with the same weights all do: %s', async (_, sampling) => {
    const { drafts, tokens } = await written({ ...sampling, draft: twin });
    expect(tokens.length).toBe(30);
    // It costs as much as the model, which does not pay: each round is followed by tokens without drafts.
    expect(drafts).toEqual({ tried: 8, kept: 8 });
  });

  test('of what the text repeats most do', async () => {
    // What was written already becomes likelier: the same token comes again and again.
    const { drafts } = await written({
      temperature: 0,
      frequencyPenalty: -5,
      draft: 'lookup',
      maxTokens: 50,
    });
    expect(drafts.tried).toBeGreaterThan(30);
    expect(drafts.kept).toBe(drafts.tried);
  });

  test('drafts that never stand are soon not asked for', async () => {
    const { drafts } = await written({ temperature: 3, seed: 1, draft: stranger, maxTokens: 40 });
    expect(drafts.tried).toBeLessThan(20 * 4);
    expect(drafts.kept).toBeLessThan(drafts.tried / 2);
  });

  test('without drafts none were tried', async () => {
    expect((await written({ temperature: 0 })).drafts).toEqual({ tried: 0, kept: 0 });
  });
});

describe('on webgpu:software', () => {
  afterAll(() => sn.setDevice('wasm'));

  test('drafts of the text itself', async () => {
    const here = await loadModel(sourceOf(smallModel('llama')), {
      contextLength: 32,
      device: 'webgpu:software',
    });
    const texts: number[][] = [];
    for (const draft of [undefined, 'lookup'] as const) {
      const options = { temperature: 0, frequencyPenalty: -5, maxTokens: 12, draftTokens: 2 };
      const generation = here.generate(prompt, { ...options, ...(draft && { draft }) });
      for await (const _ of generation.pieces());
      expect(generation.drafts.kept).toBe(draft === undefined ? 0 : generation.drafts.tried);
      texts.push(generation.tokens);
    }
    expect(texts[1]).toEqual(texts[0]);
    here.dispose();
  });
});

test('a text is written up to the last place there is, and may be continued', async () => {
  const whole = await written({ temperature: 0, maxTokens: 100 });
  const drafted = await written({ temperature: 0, maxTokens: 100, draft: twin });
  expect(drafted.tokens).toEqual(whole.tokens);
  expect(drafted.tokens.length).toBe(contextLength - prompt.length);
  const further = async (draft?: LanguageModel): Promise<number[]> => {
    const longer = [...prompt, ...whole.tokens.slice(0, 9), 7];
    const more = model.generate(longer, { temperature: 0, maxTokens: 6, ...(draft && { draft }) });
    for await (const _ of more.pieces());
    return more.tokens;
  };
  expect(await further(twin)).toEqual(await further());
});

test('several texts share one draft model, or go without', async () => {
  const [one, other] = [await written({ seed: 1 }), await written({ seed: 2 })];
  const both = await Promise.all([written({ seed: 1, draft: twin }), written({ seed: 2, draft: twin })]);
  expect(both.map(({ tokens }) => tokens)).toEqual([one.tokens, other.tokens]);
});

test('a draft model that is busy at first is asked again', async () => {
  const { tokens } = await written({ temperature: 0, maxTokens: 48 });
  const other = twin.generate(prompt, { maxTokens: 40, ignoreEnd: true }).pieces();
  // From its first token to its end it holds the only sequence of the draft model.
  await other.next();
  const generation = model.generate(prompt, { temperature: 0, maxTokens: 48, ignoreEnd: true, draft: twin });
  const found: number[] = [];
  for await (const { token } of generation.pieces()) {
    found.push(token);
    if (found.length < 5) expect(generation.drafts.tried).toBe(0);
    if (found.length === 5) await other.return();
  }
  expect(found).toEqual(tokens);
  expect(generation.drafts.tried).toBeGreaterThan(0);
  // It was given back.
  expect((await written({ temperature: 0, draft: twin })).drafts.tried).toBeGreaterThan(0);
});

test('a constraint is obeyed, and drafts are not asked for', async () => {
  const constraint = {
    allowed: () => Uint8Array.from({ length: 50 }, (_, token) => token % 2),
    accept: () => undefined,
  };
  const { tokens, drafts } = await written({ temperature: 0, draft: twin, constraint });
  expect(tokens.every((token) => token % 2 === 1)).toBe(true);
  expect(drafts.tried).toBe(0);
});

test('an abort ends both, and both can be used again', async () => {
  const stop = new AbortController();
  const reading = async (): Promise<void> => {
    const options = { temperature: 0, ignoreEnd: true, draft: twin, signal: stop.signal };
    let count = 0;
    for await (const _ of model.generate(prompt, options).pieces())
      if (++count === 3) stop.abort(new Error('enough'));
  };
  await expect(reading()).rejects.toThrow('enough');
  expect((await written({ temperature: 0, draft: twin })).tokens).toEqual(
    (await written({ temperature: 0 })).tokens,
  );
});

test('what cannot draft is refused by name', async () => {
  expect(() => model.generate(prompt, { draft: 'guess' as never })).toThrow('draft');
  expect(() => model.generate(prompt, { draft: model })).toThrow('the model itself');
  expect(() => model.generate(prompt, { draft: twin, draftTokens: 17 })).toThrow('draftTokens');
  const codec = { ...letters, decode: (tokens: readonly number[]) => letters.decode(tokens).toUpperCase() };
  const loud = await loadModel({ ...sourceOf(smallModel('llama')), codec }, { contextLength });
  expect(() => model.generate(prompt, { draft: loud })).toThrow('the same tokenizer');
  loud.dispose();
});

test('drafts leave no memory behind', async () => {
  const settled = async (): Promise<number> => {
    for (const draft of [twin, stranger, 'lookup'] as const)
      await written({ seed: 1, frequencyPenalty: 0.1, draft });
    return heldBytes();
  };
  await settled();
  const before = await settled();
  expect(await settled()).toBe(before);
});
