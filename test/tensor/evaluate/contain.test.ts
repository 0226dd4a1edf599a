// One value that cannot be computed fails alone: what was recorded beside it, weights above all, is what it would have been.

import * as fc from 'fast-check';
import { afterAll, describe, expect, test } from 'vitest';
import { compile, ones, setDevice, tensor, type Tensor } from '../../../src/index.ts';
import { SGD } from '../../../src/optim/index.ts';
import { checkLawAsync } from '../../support/property.ts';

afterAll(() => setDevice(undefined));

/** 2³⁵ elements of its own. */
const tooLarge = (x: Tensor): Tensor =>
  x
    .reshape([1, -1])
    .expand([2 ** 33, x.size])
    .mul(2);

const code = (value: Tensor): Promise<unknown> =>
  value.data().then(
    () => 'computed',
    (error: unknown) => (error as { code?: unknown }).code,
  );

describe.for(['wasm:1', 'interpreter'])('on %s', (device) => {
  test('weights are trained beside a value that is too large', async () => {
    setDevice(device);
    const w = ones([4]).requiresGrad_();
    const x = tensor([1, 2, 3, 4]);
    const optimizer = new SGD([w], { lr: 0.1 });
    for (let i = 0; i < 3; i++) {
      const debug = tooLarge(w.mul(x));
      const loss = w.mul(x).sum();
      loss.backward();
      optimizer.step();
      optimizer.zeroGrad();
      expect(await loss.item()).toBeCloseTo(10 - 3 * i, 4);
      expect(['E_LIMIT', 'E_OOM', 'E_SHAPE']).toContain(await code(debug));
    }
    expect(await w.array()).toEqual([0.7, 0.4, 0.1, -0.2].map((value) => expect.closeTo(value, 5)));
  });

  test('what a compiled function assigns and returns besides is there', async () => {
    setDevice(device);
    const count = tensor([0]);
    const step = compile((x: Tensor) => {
      count.assign(count.add(1));
      return { large: tooLarge(x), sum: x.sum(), twice: x.mul(2) };
    });
    for (let i = 1; i <= 2; i++) {
      const { large, sum, twice } = step(tensor([i, 2]));
      expect(await code(large)).not.toBe('computed');
      expect(await sum.item()).toBe(i + 2);
      expect(await twice.array()).toEqual([2 * i, 4]);
      expect(await count.array()).toEqual([i]);
    }
  });

  test('only what reads a failed value fails after it', async () => {
    setDevice(device);
    const x = tensor([1, 2]);
    const large = tooLarge(x);
    expect(await code(large)).not.toBe('computed');
    const shared = x.mul(3);
    const after = large.sum(0).add(shared);
    const beside = shared.add(1);
    expect(await beside.array()).toEqual([4, 7]);
    expect(await code(after)).toBe(await code(large));
  });

  test('wherever it stands among how many others', () => {
    setDevice(device);
    const plans = fc.array(fc.boolean(), { minLength: 1, maxLength: 9 });
    return checkLawAsync(8, plans, async (isLarge) => {
      const shared = tensor([1, 2]).add(1);
      const values = isLarge.map((large, i) => (large ? tooLarge(shared) : shared.mul(i)));
      const outcomes = await Promise.all(values.map(code));
      expect(outcomes.map((outcome) => outcome !== 'computed')).toEqual(isLarge);
      for (const [i, value] of values.entries())
        if (!isLarge[i]) expect(await value.array()).toEqual([2 * i, 3 * i]);
    });
  });
});
