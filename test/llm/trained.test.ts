// A model that was trained here runs here: the decoder learns a text, its weights become a GGUF file, and what is
// loaded from that is what was trained. Of such a file in test/fixtures (scripts/llm/train-essay.ts), llama.cpp says
// the same (scripts/llm/peer.ts).

import { readFileSync } from 'node:fs';
import { beforeAll, describe, expect, test } from 'vitest';
import * as sn from '../../src/index.ts';
import { emptyCache } from '../../src/llm/decoder/cache.ts';
import { Decoder, turnsOf } from '../../src/llm/decoder/decoder.ts';
import { loadModel } from '../../src/llm/index.ts';
import { essayPrompt, inBlocks, trainedFile, trainEssay } from '../support/llm/trained.ts';

const read = (name: string): Uint8Array => readFileSync(new URL(`../fixtures/llm/${name}`, import.meta.url));

interface Said {
  readonly top: readonly (readonly [token: number, probability: number])[];
  readonly tokens: readonly number[];
}
const said = JSON.parse(new TextDecoder().decode(read('llama-cpp.json'))) as Readonly<Record<string, Said>>;

beforeAll(() => sn.setDevice('wasm'));

const largest = (values: Float32Array): number => values.indexOf(Math.max(...values));

test('a decoder that learned a text is the one that is loaded from its file', async () => {
  const { config, weights, losses } = await trainEssay(150);
  // Of 264 tokens, none of which is likelier than another.
  expect(losses[0]).toBeGreaterThan(5);
  expect(Math.min(...losses.slice(-10))).toBeLessThan(2.4);

  const decoder = new Decoder(config, weights, turnsOf(config, 64, 64));
  const run = sn.compile((tokens: sn.Tensor) =>
    decoder.scores(decoder.run(tokens, sn.tensor(0, { dtype: 'i32' }), emptyCache(config, 64, 'f32')).hidden),
  );
  const scores = (await run(sn.tensor(Int32Array.from(essayPrompt)))
    .narrow(0, -1, 1)
    .data()) as Float32Array;
  for (const [type, tolerance] of [
    ['f16', 0.02],
    ['q8_0', 0.2],
  ] as const) {
    const model = await loadModel(await trainedFile(weights, type), { contextLength: 64 });
    const found = await model.logits('People ');
    expect(Math.max(...found.map((value, i) => Math.abs(value - scores[i]!)))).toBeLessThan(tolerance);
    const options = { temperature: 0, maxTokens: 8, ignoreEnd: true } as const;
    const generation = model.generate('People ', options);
    const text = await generation.text();
    expect(generation.tokens[0]).toBe(largest(found));
    expect(text).toMatch(/^[a-z ,.\n]{8,}$/);
    model.dispose();
  }
});

describe('what llama.cpp says of a model that was trained here', () => {
  const file = read('essay.gguf');
  const forms: readonly (readonly [name: string, tolerance: number, bytes: () => Promise<Uint8Array>])[] = [
    ['essay f16', 2e-3, async () => file],
    // llama.cpp rounds activations to 8 bits, which moves these by 2 %; the decoded values, multiplied exactly, give what
    // WebAssembly gives within 0.02 %.
    ['essay q8_0', 0.04, () => inBlocks(file)],
  ];

  test.each(forms)('%s', async (name, tolerance, bytes) => {
    const { top, tokens } = said[name]!;
    const model = await loadModel(await bytes(), { contextLength: 64 });
    const scores = Array.from(await model.logits('People '), Math.exp);
    const sum = scores.reduce((all, score) => all + score, 0);
    for (const [token, share] of top)
      expect(Math.abs(scores[token]! / sum / share - 1)).toBeLessThan(tolerance);
    const options = { temperature: 0, maxTokens: tokens.length, ignoreEnd: true } as const;
    const generation = model.generate('People ', options);
    expect(await generation.text()).toBe('the same way to the samt is the ');
    expect(generation.tokens).toEqual(tokens);
    model.dispose();
  });
});
