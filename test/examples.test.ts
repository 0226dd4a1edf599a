// Every example runs, at a small setting, and does what its first lines say.

import { existsSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { beforeEach, describe, expect, test } from 'vitest';
import { idea } from '../examples/00-idea.ts';
import { charTransformer } from '../examples/char-transformer.ts';
import { mnist, type MnistSettings } from '../examples/mnist-mlp.ts';
import { notation } from '../examples/notation.ts';
import { setDevice } from '../src/index.ts';

const essay = readFileSync(new URL('../examples/essay.txt', import.meta.url), 'utf8');

const said: string[] = [];
const say = (text: string): void => void said.push(text);

beforeEach(() => {
  said.length = 0;
  setDevice('webgpu:software');
});

test('the idea: a line is found, and its step is explained before it runs', async () => {
  setDevice('interpreter');
  const [before, after] = await idea(60, say);
  expect(before).toBeGreaterThan(1);
  expect(after).toBeLessThan(0.02);
  expect(said[0]).toMatch(/^graph \{/);
  expect(said[0]).toMatch(/\d kernels for wgsl/);
});

test('kernels in index notation give what the operations give', async () => {
  const differences = await notation(say);
  for (const difference of differences) expect(difference).toBeLessThan(1e-4);
  expect(said).toHaveLength(3);
});

test('the character transformer learns, and writes in its alphabet', async () => {
  const { losses, written } = await charTransformer({
    text: essay,
    layers: 2,
    width: 32,
    heads: 2,
    context: 16,
    batch: 8,
    steps: 60,
    rate: 1e-2,
    seed: 1,
    length: 8,
    say,
  });
  expect(losses).toHaveLength(60);
  expect(losses[0]).toBeGreaterThan(0.9 * Math.log(new Set(essay).size));
  const last = losses.slice(-10).reduce((sum, loss) => sum + loss / 10, 0);
  expect(last).toBeLessThan(0.72 * losses[0]!);
  expect(written).toHaveLength(8);
  expect([...written].every((character) => essay.includes(character))).toBe(true);
});

describe('the MNIST perceptron', () => {
  const folder = fileURLToPath(new URL('../../shared/data/mnist', import.meta.url));
  const there = existsSync(folder);
  const settings: MnistSettings = { folder, epochs: 1, batch: 64, seed: 7, held: 500, train: 640, say };
  if (!there) console.warn(`skipped: the MNIST files are not at ${folder}`);

  test.skipIf(!there)('tells 94 % of the held images right after five epochs', async () => {
    const { accuracy, losses } = await mnist({
      ...settings,
      epochs: 5,
      seed: 1,
      held: 2000,
      train: 8000,
    });
    expect(accuracy).toBeGreaterThanOrEqual(0.94);
    expect(losses.at(-1)!).toBeLessThan(losses[0]! / 3);
  });

  test.skipIf(!there)('gives the same bits for the same seed, others for another', async () => {
    const [first, second] = [await mnist(settings), await mnist(settings)];
    expect(second.losses).toEqual(first.losses);
    expect(second.weights).toEqual(first.weights);
    const other = await mnist({ ...settings, seed: 8 });
    expect(other.weights).not.toEqual(first.weights);
  });
});

test('a folder without the files says so', async () => {
  const folder = fileURLToPath(new URL('.', import.meta.url));
  const settings: MnistSettings = { folder, epochs: 1, batch: 64, seed: 1, held: 1, say };
  await expect(mnist(settings)).rejects.toThrow('has no file *images-idx3*');
});
