// The choice of a token on the device: what filters leave, what penalties take off, and that draws
// follow the probabilities and the seed.

import { beforeAll, describe, expect, test } from 'vitest';
import * as sn from '../../src/index.ts';
import { samplingOf, type SamplingNumbers, type SamplingOptions } from '../../src/llm/sampling/options.ts';
import { chooseToken } from '../../src/llm/sampling/sample.ts';
import { StopWatch } from '../../src/llm/sampling/stop.ts';
import { everyDevice } from '../support/devices.ts';

const chances = [0.4, 0.25, 0.15, 0.1, 0.06, 0.04];
const order = [3, 0, 5, 1, 4, 2];
/** Scores of six tokens whose probabilities are `chances`, mixed up: token `order[i]` has the i-th. */
const scores = order.reduce(
  (all, token, i) => all.with(token, Math.log(chances[i]!)),
  chances.map(() => 0),
);

interface More {
  readonly given?: readonly number[];
  readonly written?: readonly number[];
  readonly allowed?: readonly boolean[];
}

/** The tokens that so many positions choose. */
async function draws(options: SamplingOptions, count: number, more: More = {}): Promise<number[]> {
  const { numbers, seed } = samplingOf('test', options);
  const zeros = scores.map(() => 0);
  const counts = {
    given: sn.tensor(Float32Array.from(more.given ?? zeros)),
    written: sn.tensor(Float32Array.from(more.written ?? zeros)),
  };
  const allowed = more.allowed && sn.tensor([...more.allowed]);
  const choose = sn.compile(
    (x: sn.Tensor, position: sn.Tensor, key: sn.Tensor, n: SamplingNumbers<sn.Tensor>) =>
      chooseToken(x, n, { key, position, counts, allowed }),
  );
  const key = sn.key(seed);
  const all: number[] = [];
  for (let i = 0; i < count; i++) {
    const at = sn.tensor(Int32Array.of(i), { shape: [] });
    all.push(Number((await choose(sn.tensor(Float32Array.from(scores)), at, key, numbers).data())[0]));
  }
  return all;
}

describe.each(everyDevice)('on %s', (device) => {
  beforeAll(() => sn.setDevice(device));

  test('the likeliest, and the likeliest of those that may come', async () => {
    expect(await draws({ temperature: 0 }, 1)).toEqual([3]);
    const allowed = scores.map((_, token) => token !== 3 && token !== 0);
    expect(await draws({ temperature: 0 }, 1, { allowed })).toEqual([5]);
    expect(new Set(await draws({ seed: 1, topK: 2 }, 12, { allowed }))).toEqual(new Set([5, 1]));
  });

  test('filters leave the likeliest tokens, and those are drawn', async () => {
    expect(new Set(await draws({ seed: 2, topK: 2 }, 16))).toEqual(new Set([3, 0]));
    // 0.4 and 0.25 are less than 0.7 together: the third one makes it.
    expect(new Set(await draws({ seed: 3, topP: 0.7 }, 24))).toEqual(new Set([3, 0, 5]));
    // 0.6 · 0.4 is 0.24.
    expect(new Set(await draws({ seed: 4, minP: 0.6 }, 16))).toEqual(new Set([3, 0]));
    expect(await draws({ seed: 5, topP: 1e-9 }, 2)).toEqual([3, 3]);
  });

  test('what may not come is never drawn, whatever the noise', async () => {
    // At this position the draw of token 3 is the largest number below 1.
    const position = sn.tensor(Int32Array.of(4_484_553), { shape: [] });
    const allowed = sn.tensor(scores.map((_, token) => token === 1));
    const chosen = chooseToken(
      sn.tensor(Float32Array.from(scores)),
      { draw: { temperature: sn.tensor(1) } },
      {
        key: sn.key(5),
        position,
        allowed,
      },
    );
    expect(await chosen.array()).toEqual([1]);
  });

  test('penalties take off scores', async () => {
    const written = [0, 0, 0, 2, 0, 0];
    expect(await draws({ temperature: 0, frequencyPenalty: 0.3 }, 1, { written })).toEqual([0]);
    expect(await draws({ temperature: 0, presencePenalty: 0.3 }, 1, { written })).toEqual([3]);
    expect(await draws({ temperature: 0, presencePenalty: 0.6 }, 1, { written })).toEqual([0]);
    // Scores below 0 are multiplied: ln 0.4 · 2 is less than ln 0.25.
    const given = [0, 0, 0, 1, 0, 0];
    expect(await draws({ temperature: 0, repetitionPenalty: 2 }, 1, { given })).toEqual([0]);
  });
});

describe('draws', () => {
  beforeAll(() => sn.setDevice('wasm'));

  test.each([
    ['by noise', {}],
    ['in order', { topK: 6 }],
  ] as const)('follow the probabilities, %s', async (_, options) => {
    const count = 2000;
    const found = await draws({ seed: 7, temperature: 2, ...options }, count);
    const heated = scores.map((score) => Math.exp(score / 2));
    const sum = heated.reduce((a, b) => a + b, 0);
    heated.forEach((weight, token) => {
      const share = weight / sum;
      const seen = found.filter((one) => one === token).length / count;
      // Five standard deviations.
      expect(Math.abs(seen - share)).toBeLessThan(5 * Math.sqrt((share * (1 - share)) / count));
    });
  });

  test('are the same for the same seed alone', async () => {
    const [one, same, other] = [
      await draws({ seed: 1 }, 24),
      await draws({ seed: 1 }, 24),
      await draws({ seed: 2 }, 24),
    ];
    expect(same).toEqual(one);
    expect(other).not.toEqual(one);
  });
});

test('options out of their range are refused by name', () => {
  const wrong: readonly (readonly [SamplingOptions, string])[] = [
    [{ temperature: -1 }, 'temperature'],
    [{ topK: 1.5 }, 'topK'],
    [{ topP: 0 }, 'topP'],
    [{ minP: 2 }, 'minP'],
    [{ repetitionPenalty: Number.NaN }, 'repetitionPenalty'],
    [{ seed: 0.5 }, 'seed'],
    [{ frequencyPenalty: '1' as never }, 'frequencyPenalty'],
  ];
  for (const [options, name] of wrong) expect(() => samplingOf('generate', options)).toThrow(name);
});

describe('texts that end a generation', () => {
  test('are found across pieces, and what may begin one is held back', () => {
    const watch = new StopWatch(['END', 'EXIT']);
    expect(watch.push('go on E')).toEqual({ text: 'go on ', ended: false });
    expect(watch.push('N')).toEqual({ text: '', ended: false });
    expect(watch.push('ough E')).toEqual({ text: 'ENough ', ended: false });
    expect(watch.push('XIT and more')).toEqual({ text: '', ended: true });
  });

  test('the first one counts, and what was held back comes at the end', () => {
    expect(new StopWatch(['b', 'ab']).push('xaby')).toEqual({ text: 'x', ended: true });
    const watch = new StopWatch(['stop']);
    expect(watch.push('st')).toEqual({ text: '', ended: false });
    expect(watch.rest()).toBe('st');
  });
});
