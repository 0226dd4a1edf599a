// GGUF files of every type and architecture against what llama.cpp says of them
// (test/fixtures/llm/llama-cpp.json, by scripts/llm/peer.ts): probabilities behind a prompt, and greedy
// tokens.

import { readFileSync } from 'node:fs';
import { beforeAll, describe, expect, test } from 'vitest';
import * as sn from '../../src/index.ts';
import { loadModel } from '../../src/llm/index.ts';
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

async function agrees(spec: FileSpec, count: number): Promise<void> {
  const { top, tokens } = said[spec.name]!;
  const tolerance = tolerances[spec.type] ?? 1e-3;
  const model = await loadModel(await ggufBytes(spec), { contextLength: 64 });
  const likely = shares(await model.logits(prompt));
  for (const [token, share] of top) expect(Math.abs(likely[token]! / share - 1)).toBeLessThan(tolerance);
  const generation = model.generate(prompt, { temperature: 0, maxTokens: count, ignoreEnd: true });
  for await (const _ of generation.pieces());
  expect(generation.tokens).toEqual(tokens.slice(0, count));
  model.dispose();
}

describe('what llama.cpp says', () => {
  beforeAll(() => sn.setDevice('wasm'));

  // Greedy tokens too, where no near thing decides.
  const greedy = ['llama f32', 'gemma2', 'mixtral'];
  test.each(fileSpecs)('$name', (spec) => agrees(spec, greedy.includes(spec.name) ? 32 : 0));
});
