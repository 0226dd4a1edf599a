// GGUF files of every type and architecture against what llama.cpp says of them
// (test/fixtures/llm/llama-cpp.json, by scripts/llm/peer.ts): probabilities behind a prompt, and greedy
// tokens.

import { readFileSync } from 'node:fs';
import { beforeAll, describe, expect, test } from 'vitest';
import * as sn from '../../src/index.ts';
import { loadModel } from '../../src/llm/index.ts';
import { everyDevice } from '../support/devices.ts';
import { fileSpecs, ggufBytes, type FileSpec } from '../support/llm/gguf-model.ts';

interface Said {
  readonly top: readonly (readonly [token: number, probability: number])[];
  readonly tokens: readonly number[];
}

const fixture = new URL('../fixtures/llm/llama-cpp.json', import.meta.url);
const said = JSON.parse(readFileSync(fixture, 'utf8')) as Readonly<Record<string, Said>>;
const prompt = Array.from({ length: 16 }, (_, i) => 33 + ((i * 7919) % 90));

/** llama.cpp multiplies blocks by activations that it rounds to 8 bits. */
const tolerances: Readonly<Partial<Record<string, number>>> = {
  q8_0: 0.02,
  q4_0: 0.02,
  q4_k: 0.04,
  q6_k: 0.04,
};

function shares(scores: Float32Array): number[] {
  const top = scores.reduce((most, score) => Math.max(most, score), -Infinity);
  const powers = Array.from(scores, (score) => Math.exp(score - top));
  const sum = powers.reduce((all, power) => all + power, 0);
  return powers.map((power) => power / sum);
}

/** How far the probabilities of a format may be from llama.cpp's. */
const toleranceOf = ({ type }: FileSpec): number => tolerances[type] ?? 1e-3;

/** The model says the same of the prompt, and goes on from it in the same way. */
async function agrees(spec: FileSpec, count: number): Promise<void> {
  const { top, tokens } = said[spec.name]!;
  const model = await loadModel(await ggufBytes(spec), { contextLength: 64 });
  const likely = shares(await model.logits(prompt));
  for (const [token, share] of top)
    expect(Math.abs(likely[token]! / share - 1)).toBeLessThan(toleranceOf(spec));
  const generation = model.generate(prompt, { temperature: 0, maxTokens: count, ignoreEnd: true });
  for await (const _ of generation.pieces());
  const differs = generation.tokens.findIndex((token, i) => token !== tokens[i]);
  if (differs < 0) expect(generation.tokens.length).toBe(count);
  else {
    // Either may come where the two are closer to each other than the engines are; texts differ from there on.
    const [ours, theirs] = [generation.tokens[differs]!, tokens[differs]!];
    const there = shares(await model.logits([...prompt, ...tokens.slice(0, differs)]));
    expect(there[theirs]! / there[ours]!).toBeGreaterThan(1 - 2 * toleranceOf(spec));
  }
  model.dispose();
}

describe('what llama.cpp says', () => {
  beforeAll(() => sn.setDevice('wasm'));

  test.each(fileSpecs)('$name', (spec) => agrees(spec, 32));
});

describe.each(everyDevice.filter((name) => name !== 'wasm'))('what llama.cpp says, on %s', (device) => {
  beforeAll(() => sn.setDevice(device));

  // A format of each kind, and the parts that families differ in.
  const some = ['llama f16', 'llama q8_0', 'llama q4_k', 'qwen3moe', 'gemma2'];
  const specs = fileSpecs.filter(({ name }) => some.includes(name));
  test.each(specs)('$name', (spec) => agrees(spec, device === 'interpreter' ? 0 : 8));
});

describe('products with blocks', () => {
  const formats = fileSpecs.filter(({ type }) => type.startsWith('q'));
  test.each(formats)('$name: a model gives what its decoded weights give', async (spec) => {
    const likely: number[][] = [];
    for (const device of ['interpreter', 'wasm']) {
      const model = await loadModel(await ggufBytes(spec), { contextLength: 64, device });
      likely.push(shares(await model.logits(prompt)));
      model.dispose();
    }
    const [decoded, ours] = likely as [number[], number[]];
    ours.forEach((share, token) => expect(Math.abs(share / decoded[token]! - 1)).toBeLessThan(1e-4));
  });
});
