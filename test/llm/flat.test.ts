// What loading a model and writing with it hold: memory that stays flat however long a text is, one run a token, and
// weights that are on the device alone.

import { afterAll, describe, expect, test } from 'vitest';
import * as sn from '../../src/index.ts';
import { openGguf, type ByteSource } from '../../src/io/index.ts';
import { configFromGguf } from '../../src/llm/config/gguf.ts';
import { heldOf, loadWeights } from '../../src/llm/decoder/weights.ts';
import { loadModel, type LanguageModel } from '../../src/llm/index.ts';
import { ggufSource } from '../../src/llm/sources/gguf.ts';
import { device } from '../../src/tensor/device.ts';
import { treeLeaves } from '../../src/tensor/tree.ts';
import { hostBytesOf } from '../../src/tensor/values.ts';
import { onStandIn } from '../cuda/standin/on-standin.ts';
import { fileSpecs, ggufBytes } from '../support/llm/gguf-model.ts';
import { heldBytes } from '../support/llm/held.ts';
import { smallModel, sourceOf } from '../support/llm/small.ts';

afterAll(() => sn.setDevice(undefined));

async function open(name: string, contextLength: number): Promise<LanguageModel> {
  const { config, weights } = smallModel('llama');
  const long = { ...config, contextLength: 2048 };
  return loadModel(sourceOf({ config: long, weights }), { device: name, contextLength });
}

interface Held {
  readonly live: number;
  readonly pooled: number;
  readonly buffers: number;
}

/** What the device holds, and how many programs were run, after some of the tokens of a text. */
async function following(
  model: LanguageModel,
  tokens: number,
  every: number,
): Promise<{ held: Held[]; runs: number[] }> {
  const own = await device();
  const options = { temperature: 0.7, seed: 3, maxTokens: tokens, ignoreEnd: true };
  const generation = model.generate([1, 2, 3], options);
  const found = { held: [] as Held[], runs: [] as number[] };
  for await (const _ of generation.pieces()) {
    if (generation.tokens.length % every !== 0) continue;
    const { live, pooled, buffers } = own.memory();
    found.held.push({ live, pooled, buffers });
    found.runs.push(sn.stats().runs);
  }
  return found;
}

/** Writes a text twice: what is there once the first is written is all that the second takes. */
async function mustStayFlat(name: string, tokens: number, every: number): Promise<void> {
  const model = await open(name, tokens + 8);
  try {
    await following(model, tokens, every);
    await heldBytes(); // Nothing that another file left is freed on the way.
    const { held, runs } = await following(model, tokens, every);
    const points = Math.floor(tokens / every);
    expect(held).toHaveLength(points);
    // The last tokens are not followed by one that is asked for ahead.
    const steady = held.slice(0, -1);
    expect(new Set(steady.map((each) => JSON.stringify(each))).size, JSON.stringify(steady)).toBe(1);
    for (let i = 1; i < points - 1; i++) expect(runs[i]! - runs[i - 1]!).toBe(every);
  } finally {
    model.dispose();
  }
}

describe('each token is one run, and leaves nothing on the device', () => {
  test('a thousand on wasm', () => mustStayFlat('wasm', 1000, 100));
  test('on webgpu:software', () => mustStayFlat('webgpu:software', 60, 10));
});

onStandIn('each token is one run, and leaves nothing on the device', () => {
  test('on CUDA', () => mustStayFlat('cuda', 30, 5));
});

test('an abort frees what the text held', async () => {
  const model = await open('wasm', 64);
  const aborted = async (): Promise<void> => {
    const stop = new AbortController();
    const options = { temperature: 0, maxTokens: 40, ignoreEnd: true, signal: stop.signal };
    const generation = model.generate([1, 2, 3], { ...options, frequencyPenalty: 0.1 });
    const reading = (async (): Promise<void> => {
      for await (const _ of generation.pieces())
        if (generation.tokens.length === 5) stop.abort(new Error('enough'));
    })();
    await expect(reading).rejects.toThrow('enough');
    expect(generation.tokens).toHaveLength(5);
  };
  await aborted();
  const before = await heldBytes();
  for (let i = 0; i < 3; i++) await aborted();
  expect(await heldBytes()).toBe(before);
  model.dispose();
  expect(await heldBytes()).toBeLessThan(before);
});

describe('weights of a file', () => {
  const spec = { ...fileSpecs.find(({ name }) => name === 'llama f32')!, width: 256, hidden: 1024 };

  test('go to the device one after the other, and the host keeps none', async () => {
    sn.setDevice('wasm');
    const bytes = await ggufBytes(spec);
    expect(bytes.length).toBeGreaterThan(6 * 2 ** 20);
    const own = await device();
    const before = own.memory().live;
    let read = 0;
    let most = 0;
    const source: ByteSource = {
      name: 'model.gguf',
      size: bytes.length,
      read: (from, to) => {
        read += to - from;
        most = Math.max(most, read - (own.memory().live - before));
        return Promise.resolve(bytes.slice(from, to));
      },
      close: () => Promise.resolve(),
    };
    const file = await openGguf(source);
    const tree = await loadWeights((await ggufSource(file)).weights, configFromGguf(file));
    // Its largest weight takes 1 MiB; the head of the file, with the tokens, less than a half.
    expect(most).toBeLessThan(1.75 * 2 ** 20);
    expect(read).toBeGreaterThan(bytes.length - 2 ** 18);
    const weights = treeLeaves(tree);
    const size = weights.reduce((sum, each) => sum + 4 * each.size, 0);
    expect(size).toBeGreaterThan(6 * 2 ** 20);
    expect(own.memory().live - before).toBeGreaterThanOrEqual(size);
    expect(weights.filter((each) => hostBytesOf(each) !== undefined)).toEqual([]);
    for (const each of heldOf(tree)) each.dispose?.();
    await file.close();
  });
});
