// Weights that are larger than a kernel can bind come in parts of rows: a model of parts is the model of the whole, and
// the embedding and the head of a large vocabulary fit a device that binds 128 MiB.

import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { compileGraph } from '../../src/compile.ts';
import * as sn from '../../src/index.ts';
import { openGguf } from '../../src/io/index.ts';
import { configFromGguf } from '../../src/llm/config/gguf.ts';
import { emptyCache } from '../../src/llm/decoder/cache.ts';
import { Decoder, turnsOf } from '../../src/llm/decoder/decoder.ts';
import { lookUp, product } from '../../src/llm/decoder/linear.ts';
import {
  heldOf,
  loadWeights,
  type DecoderWeights,
  type LinearWeights,
} from '../../src/llm/decoder/weights.ts';
import { ggufSource } from '../../src/llm/sources/gguf.ts';
import { QuantizedTensor } from '../../src/quant/index.ts';
import { rowWords } from '../../src/ir/blocks/sizes.ts';
import { checkLimits } from '../../src/runtime/limits.ts';
import { gpuTarget } from '../../src/schedule/target.ts';
import { traceFunction } from '../../src/tensor/derivative/transform.ts';
import { everyDevice } from '../support/devices.ts';
import { fileSpecs, ggufBytes } from '../support/llm/gguf-model.ts';

afterAll(() => sn.setDevice(undefined));

const prompt = Int32Array.of(1, 5, 90, 17, 262, 200, 3);

interface Loaded {
  readonly weights: DecoderWeights;
  readonly scores: readonly number[];
}

/** A file's model with weights of at most so many bytes, and its scores behind every token of a prompt. */
async function loaded(name: string, most?: number): Promise<Loaded> {
  const file = await openGguf(await ggufBytes(fileSpecs.find((spec) => spec.name === name)!));
  const config = configFromGguf(file);
  const names: string[] = [];
  const source = (await ggufSource(file)).weights;
  const weights = await loadWeights(source, config, { most, loaded: (each) => names.push(each) });
  // Each is told of once, however many parts it has.
  expect(new Set(names).size).toBe(names.length);
  await file.close();
  const decoder = new Decoder(config, weights, turnsOf(config, 16, 16));
  const { hidden } = decoder.run(
    sn.tensor(prompt),
    sn.tensor(0, { dtype: 'i32' }),
    emptyCache(config, 16, 'f32'),
  );
  const scores = [...(await decoder.scores(hidden).data())].map(Number);
  for (const each of heldOf(weights)) each.dispose?.();
  return { weights, scores };
}

const partsOf = ({ parts }: LinearWeights): number => parts.length;

async function isWhole(name: string, most: number): Promise<void> {
  const whole = await loaded(name);
  const cut = await loaded(name, most);
  expect(partsOf(whole.weights.head)).toBe(1);
  expect(partsOf(cut.weights.embedding)).toBeGreaterThan(2);
  expect(partsOf(cut.weights.head)).toBeGreaterThan(2);
  const [layer] = cut.weights.layers;
  expect(partsOf(layer!.attention.qkv)).toBeGreaterThan(1);
  cut.scores.forEach((score, i) => expect(Math.abs(score - whole.scores[i]!)).toBeLessThan(1e-4));
}

describe('a model whose weights came in parts is the whole one', () => {
  beforeAll(() => sn.setDevice('wasm'));

  // Blocks whose rows take other bytes than in the file, a tied embedding, products that a file has joined.
  test.each(['llama f16', 'llama q8_0', 'llama q4_k', 'gemma2', 'phi3'])('%s', (name) => isWhole(name, 6000));
});

describe.each(everyDevice.filter((name) => name !== 'wasm'))('on %s', (device) => {
  beforeAll(() => sn.setDevice(device));

  test('llama q8_0', () => isWhole('llama q8_0', 6000));
});

test('a part has one row at least', async () => {
  sn.setDevice('wasm');
  const { weights } = await loaded('llama f32', 1);
  expect(partsOf(weights.head)).toBe(264);
});

describe('a vocabulary of 128,256 words of 2,048 values in q8_0', () => {
  const [words, width] = [128_256, 2048];
  const table = (rows: readonly number[]): LinearWeights => ({
    parts: rows.map((count) => {
      const blocks = sn.zeros([count, rowWords('q8_0', width)], { dtype: 'u32' });
      return new QuantizedTensor(blocks, 'q8_0', width);
    }),
  });
  /** Throws where the program that looks a word up and scores all of them does not fit 128 MiB a binding. */
  const mustFit = (rows: readonly number[]): void => {
    const step = (token: sn.Tensor, weights: LinearWeights): sn.Tensor =>
      product(lookUp(token, weights), weights, words).argmax(-1);
    const { graph } = traceFunction(step, [sn.zeros([1], { dtype: 'i32' }), table(rows)]);
    const { program } = compileGraph(graph, gpuTarget);
    checkLimits(program, { limits: gpuTarget.limits, name: 'phone', combining: 'nobody' });
  };

  test('fits a device of 128 MiB in parts, and not as a whole', () => {
    expect(() => mustFit([words])).toThrow(/E_LIMIT|exceeds the limit/);
    mustFit([42_752, 42_752, 42_752]);
  });
});
