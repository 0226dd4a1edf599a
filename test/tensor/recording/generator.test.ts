import { describe, expect, test } from 'vitest';
import type { Node } from '../../../src/ir/graph.ts';
import { randomWords } from '../../../src/ir/interpret/random.ts';
import { clearCache } from '../../../src/tensor/evaluate/cache.ts';
import { compileCount } from '../../../src/tensor/evaluate/executable.ts';
import { drawCounter, manualSeed, restoreRngState, saveRngState } from '../../../src/tensor/generator.ts';
import { record } from '../../../src/tensor/record.ts';
import type { Tensor } from '../../../src/tensor/tensor.ts';
import { spyDevice } from '../support.ts';

function draw(n: number): Tensor {
  return record([], (b) => b.add('randomBits', drawCounter(n), { shape: [n] }) as Node);
}

test('equal seeds give equal numbers, in the order of recording', async () => {
  spyDevice();
  manualSeed(42);
  const [a, b] = [draw(6), draw(6)];
  const [later, sooner] = [await b.array(), await a.array()];
  manualSeed(42);
  expect(await draw(6).array()).toEqual(sooner);
  expect(await draw(6).array()).toEqual(later);
  expect(sooner).not.toEqual(later);
});

test('a draw of n elements takes ⌈n/4⌋ counts, computed or not', async () => {
  spyDevice();
  manualSeed(1);
  draw(9);
  expect(saveRngState()).toEqual({ seed: '1', counter: '3' });
  const words = await draw(4).data();
  expect([...words]).toEqual([...randomWords([1, 0], [3, 0], 4)]);
});

test('a state survives JSON and brings the numbers back', async () => {
  spyDevice();
  manualSeed(2n ** 63n + 5n);
  draw(3);
  const state = JSON.parse(JSON.stringify(saveRngState()));
  const before = await draw(8).array();
  await draw(8).array();
  restoreRngState(state);
  expect(await draw(8).array()).toEqual(before);
});

test('negative seeds are taken modulo 2⁶⁴', () => {
  manualSeed(-1);
  expect(saveRngState().seed).toBe(String(2n ** 64n - 1n));
});

describe('what is no state is refused', () => {
  test.each([
    [{ seed: '1' }, 'counter'],
    [{ seed: '-1', counter: '0' }, 'seed'],
    [{ seed: '1', counter: String(2n ** 64n) }, 'counter'],
    [undefined, 'seed'],
  ])('%j', (state, word) => {
    expect(() => restoreRngState(state as never)).toThrow(
      `restoreRngState: ${word} is no 64-bit unsigned integer`,
    );
  });

  test('a seed is an integer', () => {
    expect(() => manualSeed(0.5)).toThrow('manualSeed: expects an integer, got 0.5');
  });
});

test('a loop that draws compiles one program', async () => {
  clearCache();
  spyDevice();
  manualSeed(3);
  const before = compileCount();
  for (let i = 0; i < 6; i++) await draw(100).data();
  expect(compileCount() - before).toBe(1);
});
