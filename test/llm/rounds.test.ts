// Texts that are written at the same time take their steps in one program, and each is the one that it is alone:
// whatever its length, seed and filters are, and whoever joins, leaves or fails beside it.

import { afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import * as sn from '../../src/index.ts';
import { explainFor } from '../../src/explain/explain.ts';
import { emptyCache } from '../../src/llm/decoder/cache.ts';
import { Decoder, turnsOf } from '../../src/llm/decoder/decoder.ts';
import { loadWeights } from '../../src/llm/decoder/weights.ts';
import { programsOf, type Programs } from '../../src/llm/engine/programs.ts';
import { roundSizes } from '../../src/llm/engine/rounds.ts';
import { slotsFor } from '../../src/llm/engine/sequence.ts';
import { LanguageModel, type GenerateOptions } from '../../src/llm/index.ts';
import { cudaTarget, gpuTarget } from '../../src/schedule/target.ts';
import { everyDevice } from '../support/devices.ts';
import { heldBytes } from '../support/llm/held.ts';
import { families, smallModel, sourceOf } from '../support/llm/small.ts';

const room = 64;

/** A program that ran: how many texts took a step in it, or how many tokens of a prompt it had. */
type Ran = readonly ['step' | 'steps' | 'block', number];

interface Watched {
  readonly model: LanguageModel;
  /** What ran, in order. */
  readonly ran: Ran[];
}

interface Setting {
  readonly sequences?: number;
  readonly ahead?: number;
  readonly rowCost?: number;
}

/** A model whose programs are counted. */
async function watched(family: string, setting: Setting = {}): Promise<Watched> {
  const small = smallModel(family);
  const { config } = small;
  const weights = await loadWeights(sourceOf(small).weights, config);
  const decoder = new Decoder(config, weights, turnsOf(config, slotsFor(room), room));
  const real = programsOf(decoder);
  const ran: Ran[] = [];
  const programs: Programs = {
    ...real,
    block: (cache, tokens, ...rest) => {
      ran.push(['block', tokens.size]);
      return real.block(cache, tokens, ...rest);
    },
    step: (...given) => {
      ran.push(['step', 1]);
      return real.step(...given);
    },
    stepEach: (caches, ...rest) => {
      ran.push(['steps', caches.length]);
      return real.stepEach(caches, ...rest);
    },
  };
  const { sequences = 4, ahead = 0, rowCost = 0.1 } = setting;
  const model = new LanguageModel({
    runner: { decoder, programs, room, cacheType: 'f32' },
    codec: undefined,
    sequences,
    ahead,
    rowCost,
    weightBytes: 0,
    free: () => decoder.dispose(),
  });
  return { model, ran };
}

const stepsOf = (ran: readonly Ran[]): Ran[] => ran.filter(([kind]) => kind !== 'block');

async function tokensOf(
  model: LanguageModel,
  prompt: readonly number[],
  options: GenerateOptions,
): Promise<number[]> {
  const generation = model.generate(prompt, options);
  for await (const _ of generation.pieces());
  return generation.tokens;
}

interface Text {
  readonly prompt: readonly number[];
  readonly options: GenerateOptions;
}

const counted = (length: number, from: number): number[] =>
  Array.from({ length }, (_, i) => (i * 17 + from) % 50);

/** Texts of different lengths, seeds and filters. */
const texts: readonly Text[] = [
  { prompt: [1, 2, 3], options: { temperature: 0, maxTokens: 7 } },
  { prompt: counted(33, 5), options: { seed: 3, maxTokens: 10 } },
  { prompt: [9], options: { seed: 4, topK: 9, topP: 0.9, minP: 0.01, maxTokens: 12 } },
  {
    prompt: counted(6, 2),
    options: { seed: 5, temperature: 0.7, repetitionPenalty: 1.3, frequencyPenalty: 0.2, maxTokens: 9 },
  },
];

/** A constraint: even and odd tokens by turns. */
function byTurns(): NonNullable<GenerateOptions['constraint']> {
  let count = 0;
  return {
    allowed: () => Uint8Array.from({ length: 50 }, (_, token) => Number(token % 2 === count % 2)),
    accept: () => void count++,
  };
}

describe.each(everyDevice)('on %s', (name) => {
  beforeAll(() => sn.setDevice(name));

  test('texts that are written at once are those that are written alone', async () => {
    const { model, ran } = await watched('llama');
    const alone: number[][] = [];
    for (const { prompt, options } of texts) alone.push(await tokensOf(model, prompt, options));
    ran.length = 0;
    const both = await Promise.all(texts.map(({ prompt, options }) => tokensOf(model, prompt, options)));
    expect(both).toEqual(alone);
    // Of the tokens of a text the first is chosen by the prompt. The shortest text has 6 steps.
    const all = texts.reduce((sum, { options }) => sum + options.maxTokens! - 1, 0);
    expect(stepsOf(ran).length).toBeLessThan(all / 2);
    expect(stepsOf(ran).filter(([kind, size]) => kind === 'steps' && size === 4).length).toBeGreaterThan(3);
    model.dispose();
  });
});

describe('on wasm', () => {
  let model: LanguageModel;
  let ran: Ran[];
  const open = async (family: string, setting?: Setting): Promise<void> => {
    ({ model, ran } = await watched(family, setting));
  };
  beforeAll(() => sn.setDevice('wasm'));
  beforeEach(() => open('llama'));
  afterEach(() => model.dispose());

  const long: GenerateOptions = { temperature: 0, maxTokens: 20 };

  test.each(Object.keys(families))('a model of the family %s', async (family) => {
    await open(family);
    const alone: number[][] = [];
    for (const { prompt, options } of texts) alone.push(await tokensOf(model, prompt, options));
    const both = await Promise.all(texts.map(({ prompt, options }) => tokensOf(model, prompt, options)));
    expect(both).toEqual(alone);
  });

  test.each([0, 1])('every step is taken together where %i tokens are asked for ahead', async (ahead) => {
    await open('llama', { ahead });
    const prompts = [0, 1, 2, 3].map((i) => counted(4, i));
    const alone: number[][] = [];
    for (const prompt of prompts) alone.push(await tokensOf(model, prompt, long));
    ran.length = 0;
    expect(await Promise.all(prompts.map((prompt) => tokensOf(model, prompt, long)))).toEqual(alone);
    const steps = stepsOf(ran);
    // Prompts are read one after the other, and who is done begins; from then on nobody is left out.
    const behind = steps.slice(ran.findLastIndex(([kind]) => kind === 'block') - 3);
    expect(behind.filter(([, size]) => size === 4).length).toBeGreaterThan(14);
    expect(steps.length).toBeLessThan(19 + 2 * 4);
    // Alone again, a text takes its steps by itself.
    ran.length = 0;
    await tokensOf(model, prompts[0]!, long);
    expect(new Set(stepsOf(ran).map(([kind]) => kind))).toEqual(new Set(['step']));
  });

  test('more texts than sequences, of all kinds, and constraints', async () => {
    const constrained = { prompt: [7, 8], options: { seed: 2, maxTokens: 8 } };
    const many = [...texts, ...texts.map(({ prompt, options }) => ({ prompt: [...prompt, 11], options }))];
    const write = (text: Text): Promise<number[]> => tokensOf(model, text.prompt, text.options);
    const bound = (): Promise<number[]> =>
      write({ ...constrained, options: { ...constrained.options, constraint: byTurns() } });
    const alone: number[][] = [await bound()];
    for (const text of many) alone.push(await write(text));
    expect(alone[0]!.map((token) => token % 2)).toEqual([0, 1, 0, 1, 0, 1, 0, 1]);
    expect(await Promise.all([bound(), ...many.map(write)])).toEqual(alone);
  });

  test('texts join and leave between steps', async () => {
    const prompts = [counted(5, 1), counted(40, 2), counted(3, 3)];
    const lengths = [24, 6, 12];
    const options = (i: number): GenerateOptions => ({ seed: i, maxTokens: lengths[i]! });
    const alone: number[][] = [];
    for (const [i, prompt] of prompts.entries()) alone.push(await tokensOf(model, prompt, options(i)));
    ran.length = 0;
    const first = model.generate(prompts[0]!, options(0));
    const others: Promise<number[]>[] = [];
    let count = 0;
    for await (const _ of first.pieces()) {
      count++;
      if (count === 3) others.push(tokensOf(model, prompts[1]!, options(1)));
      if (count === 6) others.push(tokensOf(model, prompts[2]!, options(2)));
    }
    expect([first.tokens, ...(await Promise.all(others))]).toEqual(alone);
    const sizes = new Set(stepsOf(ran).map(([, size]) => size));
    expect([...sizes].toSorted()).toEqual([1, 2, 4]);
  });

  test('a prompt that is read stops others for no longer than a block', async () => {
    const reading: Promise<number[]>[] = [];
    let count = 0;
    for await (const _ of model.generate([1, 2], { temperature: 0, maxTokens: 40 }).pieces()) {
      if (++count !== 3) continue;
      ran.length = 0;
      for (const from of [3, 4, 5]) reading.push(tokensOf(model, counted(64, from), { maxTokens: 0 }));
    }
    await Promise.all(reading);
    const kinds = ran.map(([kind]) => kind);
    const blocks = kinds.flatMap((kind, i) => (kind === 'block' ? [i] : []));
    expect(blocks.length).toBe(3);
    for (const at of blocks) expect(kinds[at + 1]).toBe('step');
  });

  test('an abort ends a text within a token, frees its place, and others go on', async () => {
    const alone = await tokensOf(model, [5, 6], long);
    const stop = new AbortController();
    const seen: number[] = [];
    const aborted = (async (): Promise<void> => {
      const options = { temperature: 0, signal: stop.signal };
      for await (const { token } of model.generate([1, 2, 3], options).pieces()) {
        seen.push(token);
        if (seen.length === 4) stop.abort(new Error('enough'));
      }
    })();
    const outside = new AbortController();
    let others = 0;
    const later = (async (): Promise<void> => {
      for await (const _ of model.generate([2], { temperature: 0, signal: outside.signal }).pieces())
        others++;
    })();
    const going = tokensOf(model, [5, 6], long);
    await expect(aborted).rejects.toThrow('enough');
    expect(seen.length).toBe(4);
    const before = others;
    outside.abort(new Error('gone'));
    await expect(later).rejects.toThrow('gone');
    expect(others - before).toBeLessThan(2);
    expect(await going).toEqual(alone);
    ran.length = 0;
    const again = [1, 2, 3, 4].map((i) => tokensOf(model, [i, i], long));
    await Promise.all(again);
    expect(stepsOf(ran).some(([, size]) => size === 4)).toBe(true);
    expect(await tokensOf(model, [1, 2, 3], { temperature: 0, maxTokens: 4 })).toEqual(seen);
  });

  test('a text that fails, or that nobody reads on, does not disturb others', async () => {
    const alone = await tokensOf(model, [5, 6], long);
    let asked = 0;
    const failing = tokensOf(model, [1, 2], {
      ...long,
      constraint: {
        allowed: () => {
          if (++asked === 4) throw new Error('no token fits');
          return undefined;
        },
        accept: () => undefined,
      },
    });
    failing.catch(() => undefined);
    const thrown = (async (): Promise<void> => {
      for await (const _ of model.generate([7], long).pieces())
        if (asked === 3) throw new Error('read enough');
    })();
    thrown.catch(() => undefined);
    const held = model.generate([3, 3], long)[Symbol.asyncIterator]();
    await held.next();
    const going = tokensOf(model, [5, 6], long);
    await expect(failing).rejects.toThrow('no token fits');
    await expect(thrown).rejects.toThrow('read enough');
    expect(await going).toEqual(alone);
    await held.return!();
    // All places are free, and no text is waited for.
    const four = await Promise.all([1, 2, 3, 4].map(() => tokensOf(model, [5, 6], long)));
    expect(four).toEqual([alone, alone, alone, alone]);
  });

  test('rows that fill up a program change no other text', async () => {
    // Three texts and one that is read no further: its sequence fills up the program of four.
    const held = model.generate(counted(9, 4), { temperature: 0, maxTokens: 8 });
    const reading = held.pieces();
    await reading.next();
    await reading.next();
    ran.length = 0;
    await Promise.all([1, 2, 3].map((i) => tokensOf(model, [i, 4], long)));
    expect(stepsOf(ran).some(([, size]) => size === 4)).toBe(true);
    for await (const _ of reading);
    expect(held.tokens).toEqual(await tokensOf(model, counted(9, 4), { temperature: 0, maxTokens: 8 }));
  });

  test('where rows cost as much as steps, each text takes its own', async () => {
    await open('llama', { rowCost: 1 });
    await Promise.all([1, 2, 3, 4].map((i) => tokensOf(model, [i], long)));
    expect(stepsOf(ran).every(([kind]) => kind === 'step')).toBe(true);
  });

  test('texts leave no memory behind', async () => {
    const settled = async (): Promise<number> => {
      await Promise.all(texts.map(({ prompt, options }) => tokensOf(model, prompt, options)));
      return heldBytes();
    };
    await settled();
    const before = await settled();
    expect(await settled()).toBe(before);
  });
});

test('programs are as large as it pays', () => {
  const cheap = [1, 2, 3, 4, 5, 6, 8, 9].map((count) => roundSizes(count, 0.1, 16).join('+'));
  expect(cheap).toEqual(['1', '2', '4', '4', '8', '8', '8', '1+8']);
  const cores = [1, 2, 3, 4, 5, 7].map((count) => roundSizes(count, 0.6, 16).join('+'));
  expect(cores).toEqual(['1', '2', '1+2', '4', '1+4', '8']);
  expect(roundSizes(3, 0.1, 3)).toEqual([3]);
  expect(roundSizes(4, 1, 8)).toEqual([1, 1, 1, 1]);
  expect(roundSizes(1, 0.1, 1)).toEqual([1]);
});

test.each([
  ['WebGPU', gpuTarget],
  ['CUDA', cudaTarget],
])('%s runs far fewer kernels than four texts would one after the other', async (_, target) => {
  sn.setDevice('wasm');
  const small = smallModel('llama');
  const weights = await loadWeights(sourceOf(small).weights, small.config);
  const decoder = new Decoder(small.config, weights, turnsOf(small.config, room, room));
  const { step, stepEach, chooseEach } = programsOf(decoder);
  const at = sn.tensor(Int32Array.of(3), { shape: [] });
  const choice = { key: sn.key(1), numbers: {}, given: undefined, allowed: undefined };
  const kernels = (fn: unknown, ...args: unknown[]): number =>
    explainFor(target, fn as never, ...args).kernels.length;
  const cache = (): sn.Tensor[] => emptyCache(small.config, room, 'f32');
  const token = (): sn.Tensor => sn.tensor(Int32Array.of(1));
  const one = kernels(step, cache(), undefined, token(), at, choice);
  for (const count of [4, 8]) {
    const each = <T>(of: () => T): T[] => Array.from({ length: count }, of);
    const places = sn.tensor(new Int32Array(count));
    const together = kernels(stepEach, each(cache), each(token), places, places);
    const choosing = each(() => ({ choice, token: token(), written: undefined }));
    const chosen = kernels(chooseEach, places, places, sn.zeros([count, small.config.vocabulary]), choosing);
    // A text alone has fewer kernels a layer than several, whose norms have kernels where rows are many.
    expect(together + chosen).toBeLessThan(0.6 * count * one);
  }
  decoder.dispose();
});
