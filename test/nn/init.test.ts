// Initial values: what each promises of its numbers.

import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import * as sn from '../../src/index.ts';
import * as nn from '../../src/nn/index.ts';

beforeAll(() => sn.setDevice('wasm'));
afterAll(() => sn.setDevice(undefined));

const values = async (x: sn.Tensor): Promise<number[]> => Array.from(await x.data(), Number);

async function deviation(x: sn.Tensor): Promise<number> {
  const list = await values(x);
  return Math.sqrt(list.reduce((sum, v) => sum + v * v, 0) / list.length);
}

describe('truncNormal', () => {
  test('stays inside, and is normal there', async () => {
    sn.manualSeed(1);
    const drawn = await values(nn.truncNormal([200, 200], { mean: 0.5, std: 2, low: -1, high: 4 }));
    expect(Math.min(...drawn)).toBeGreaterThanOrEqual(-1);
    expect(Math.max(...drawn)).toBeLessThanOrEqual(4);
    // Φ(0) − Φ(−¾) of Φ(1.75) − Φ(−¾) lies below the mean.
    const share = drawn.filter((v) => v < 0.5).length / drawn.length;
    expect(share).toBeCloseTo((0.5 - 0.22662735) / (0.95994084 - 0.22662735), 2);
  });

  test('is refused where nothing lies inside', () => {
    expect(() => nn.truncNormal([2, 2], { low: 1, high: 0 })).toThrow(/low 1 must be below high 0/);
    expect(() => nn.truncNormal([2, 2], { low: 20, high: 30 })).toThrow(/too far from the mean 0/);
  });
});

test.each([
  ['fanIn', 'normal', 40],
  ['fanOut', 'uniform', 60],
  ['fanAvg', 'truncatedNormal', 50],
] as const)('varianceScaling by %s, %s, has variance scale/%s', async (mode, distribution, fan) => {
  sn.manualSeed(2);
  const weight = nn.varianceScaling([60, 40], { scale: 3, mode, distribution });
  expect((await deviation(weight)) / Math.sqrt(3 / fan)).toBeCloseTo(1, 1);
});

test.each([[[6, 4]], [[4, 6]], [[3, 2, 2]]])(
  'orthogonal %j has orthonormal rows or columns',
  async (shape) => {
    sn.manualSeed(3);
    const weight = nn.orthogonal(shape, { gain: 2 });
    expect(weight.shape).toEqual(shape);
    const flat = weight.reshape([shape[0]!, weight.size / shape[0]!]);
    const square = flat.shape[0]! > flat.shape[1]! ? flat.T.matmul(flat) : flat.matmul(flat.T);
    const wanted = await values(sn.eye(square.shape[0]!).mul(4));
    (await values(square)).forEach((v, i) => expect(v).toBeCloseTo(wanted[i]!, 4));
  },
);

test('dirac passes channels on, each group its own', async () => {
  const x = sn.randn([1, 2, 5]);
  const same = sn.conv1d(x, nn.dirac([2, 2, 3]), undefined, { padding: 1 });
  expect(await values(same)).toEqual(await values(x));
  const weight = nn.dirac([4, 1, 3], { groups: 4 });
  expect(await values(sn.conv1d(sn.cat([x, x], 1), weight, undefined, { padding: 1, groups: 4 }))).toEqual(
    await values(sn.cat([x, x], 1)),
  );
  expect(() => nn.dirac([3, 2])).toThrow(/dirac: expects \[out, in, …window\]/);
});

test('sparse has as many zeros in each column', async () => {
  sn.manualSeed(4);
  const zeros = await values(nn.sparse([10, 6], 0.25, { std: 1 }).eq(0).cast('f32').sum(0));
  expect(zeros).toEqual(new Array(6).fill(3));
});

test('constant is one value', async () => {
  expect(await values(nn.constant([2, 2], 0.5))).toEqual([0.5, 0.5, 0.5, 0.5]);
});
