// Formulas that carry a derivative of their own: first and second derivatives against differences in f64, at ordinary points and at
// those where the plain formula broke; the tail of erfc; and the running log-sum, which takes linear work.

import { afterAll, beforeAll, describe, expect, test } from 'vitest';

import { explain } from '../../src/explain/explain.ts';
import * as sn from '../../src/index.ts';

const { NaN: nan, POSITIVE_INFINITY: inf } = Number;
type Fn = (x: sn.Tensor) => sn.Tensor;

const y = sn.tensor([2, -1.5, 0.7, 1], { dtype: 'f64' });
/** Functions and points where they are smooth. */
const rules: Readonly<Record<string, readonly [Fn, readonly number[]]>> = {
  acosh: [sn.acosh, [1.2, 3, 8, 1.05]],
  erfc: [sn.erfc, [-1, 0.3, 2, 5]],
  silu: [sn.silu, [-3, 0, 0.5, 4]],
  mish: [sn.mish, [-3, 0, 0.5, 4]],
  'softplus with a threshold': [(x) => sn.softplus(x, { beta: 3, threshold: 4 }), [-2, 0, 1.2, 4]],
  'softplus of another sharpness': [(x) => sn.softplus(x, { beta: 3 }), [-2, 0, 0.2, 4]],
  'remainder by x': [(x) => sn.remainder(y, x), [0.6, 0.4, -0.5, 2.3]],
  'remainder of x': [(x) => sn.remainder(x, y), [0.6, 0.4, -0.5, 2.3]],
  'clamp to x': [(x) => sn.clamp(x.mul(2), x, 3), [1, 2, -1, 0.5]],
  variance: [(x) => sn.varMean(x, 0)[0], [1, 2, 4, 8]],
  'variance of equals': [(x) => sn.varMean(x, 0)[0], [3, 3, 3, 3]],
  'standard deviation': [(x) => sn.std(x, 0), [1, 2, 4, 8]],
  'norm of order 3': [(x) => sn.norm(x, 3), [1, -2, 0.5, 3]],
  'norm of order ½': [(x) => sn.norm(x, 0.5), [1, -2, 0.5, 3]],
  'norm of order ∞': [(x) => sn.norm(x.square(), inf), [1, -2, 0.5, 3]],
  'log-sums': [(x) => sn.logcumsumexp(x, 0), [1, 1, -2, 30]],
  'log-sums of many': [(x) => sn.logcumsumexp(sn.cat(Array<sn.Tensor>(20).fill(x)), 0), [1, 1, -2, 2]],
  bceLoss: [(x) => sn.bceLoss(x, sn.sigmoid(y)), [0.2, 0.5, 0.9, 0.01]],
  bceWithLogits: [(x) => sn.bceWithLogits(x, sn.sigmoid(y), { posWeight: 3 }), [-2, 0.1, 3, -0.4]],
};

describe('derivatives given by rules', () => {
  beforeAll(() => sn.setDevice('interpreter'));
  afterAll(() => sn.setDevice(undefined));

  const values = async (x: sn.Tensor): Promise<number[]> => Array.from(await x.data(), Number);
  const at = (xs: readonly number[]): sn.Tensor => sn.tensor([...xs], { dtype: 'f64' });

  /** Central differences of a function of several numbers that gives one. */
  async function differences(f: Fn, xs: readonly number[]): Promise<number[]> {
    const step = 1e-5;
    const moved = (i: number, by: number): Promise<number | bigint> =>
      f(at(xs.map((x, k) => (k === i ? x + by : x)))).item() as Promise<number>;
    return Promise.all(
      xs.map(async (_, i) => (Number(await moved(i, step)) - Number(await moved(i, -step))) / (2 * step)),
    );
  }

  for (const [name, [f, xs]] of Object.entries(rules)) {
    test(`${name}: first and second derivatives are those of differences`, async () => {
      // Weights that tell the results apart.
      const once: Fn = (x) => {
        const out = f(x);
        return out.mul(sn.arange(out.size).cast('f64').reshape(out.shape).mul(0.3).add(1)).sum();
      };
      const slope: Fn = (x) => sn.grad(once)(x).mul(y).sum();
      for (const [g, what] of [
        [once, 'first'],
        [slope, 'second'],
      ] as const) {
        const found = await values(sn.grad(g)(at(xs)));
        (await differences(g, xs)).forEach((want, i) => {
          expect(Math.abs(found[i]! - want), `${what} [${i}]: ${found[i]} for ${want}`).toBeLessThan(
            1e-5 * Math.max(1, Math.abs(want)),
          );
        });
      }
    });
  }

  test.each([
    ['expm1', sn.expm1, 1, 1],
    ['elu', sn.elu, 1, 1],
    ['celu', (x: sn.Tensor) => sn.celu(x, 0.5), 1, 0.5],
    ['selu', sn.selu, 1.0507009873554805 * 1.6732632423543772, 1],
  ] as const)(
    '%s has slopes of all digits of f32 where it is next to its limit',
    async (_, f, scale, width) => {
      const xs = [-1, -7.5, -10, -17, -40];
      const found = await values(sn.grad((x: sn.Tensor) => f(x).sum())(sn.tensor(xs)));
      found.forEach((slope, i) => {
        expect(slope / (scale * Math.exp(xs[i]! / width))).toBeCloseTo(1, 5);
      });
    },
  );

  test('celu of what divided by alpha leaves the range is x above 0', async () => {
    expect(await values(sn.celu(sn.tensor([2 ** 127, -(2 ** 127)]), 0.5))).toEqual([2 ** 127, -0.5]);
    // As in PyTorch, the sign of x tells the sides apart.
    const [above, below] = await values(sn.celu(sn.tensor([2, -2]), -0.5));
    expect(above).toBe(2);
    expect(below).toBeCloseTo(-0.5 * Math.expm1(4), 4);
  });

  test('zeta next to its poles at 0 and below has all digits', async () => {
    const q = sn.tensor([-1e-10, -1e-5, -1 - 2 ** -20, -3 - 2 ** -16]);
    const far = (await values(q)).map((x) => x - Math.round(x));
    const found = await values(sn.special.zeta(2, q));
    found.forEach((x, i) => expect(x * far[i]! ** 2).toBeCloseTo(1, 5));
  });

  test('where PyTorch has a derivative, formulas that break do not take it away', async () => {
    const gradient = async (f: Fn, xs: number[]): Promise<number[]> => values(sn.grad(f)(sn.tensor(xs)));
    expect(await gradient((x) => sn.std(x, 0), [1, 1, 1])).toEqual([0, 0, 0]);
    expect(await gradient((x) => sn.norm(x, 3, 0), [0, 0, 0])).toEqual([0, 0, 0]);
    expect(await gradient((x) => sn.amax(x, 0), [nan, 1, 2])).toEqual([nan, nan, nan]);
    expect(await gradient((x) => sn.amin(x, 0), [1, 1, 2])).toEqual([0.5, 0.5, 0]);
    expect((await gradient((x) => sn.huberLoss(x, sn.tensor([0, 0])), [nan, 1]))[0]).toBeNaN();
    expect(await sn.bceWithLogits(sn.tensor([inf]), sn.tensor([0])).item()).toBe(inf);
    expect(await gradient((x) => sn.logsumexp(x, 0), [inf, 100, 0])).toEqual([nan, 0, 0]);
    expect(await gradient((x) => sn.mean(x), [])).toEqual([]);
  });

  test('quotients rounded to whole numbers are flat, by 0 and of ∞ too', async () => {
    const slope = async (f: Fn, x: number): Promise<number[]> => values(sn.grad(f)(at([x])));
    expect(await slope((x) => sn.floorDivide(x, 2).mul(x).sum(), -5)).toEqual([-3]);
    // jax.grad(jnp.floor_divide, (0, 1))(1., 0.) and (jnp.inf, 2.)
    for (const [a, b] of [
      [1, 0],
      [inf, 2],
    ] as const)
      for (const rounding of ['floor', 'trunc'] as const) {
        expect(await slope((x) => sn.div(x, b, { rounding }).sum(), a)).toEqual([0]);
        expect(await slope((x) => sn.div(a, x, { rounding }).sum(), b)).toEqual([0]);
      }
  });

  test('integers by the number 0 are refused; by a 0 in a tensor they stay what they are', async () => {
    const x = sn.tensor([7, -7], { dtype: 'i32' });
    for (const op of [sn.floorDivide, sn.remainder, sn.fmod])
      expect(() => op(x, 0)).toThrow(/integers cannot be divided by 0: i32\[2\], 0/);
    expect(() => sn.div(x, 0, { rounding: 'trunc' })).toThrow(/integers cannot be divided/);
    expect(await values(sn.div(x, 0))).toEqual([inf, -inf]);
    expect(await values(sn.remainder(sn.tensor([7]), 0))).toEqual([nan]);
    const zero = sn.tensor([0, 0], { dtype: 'i32' });
    expect(await values(sn.floorDivide(x, zero))).toEqual([7, -7]);
    expect(await values(sn.remainder(x, zero))).toEqual([0, 0]);
  });
});

describe.each(['interpreter', 'wasm', 'webgpu:software'])('on %s', (device) => {
  beforeAll(() => sn.setDevice(device));
  afterAll(() => sn.setDevice(undefined));

  test('erfc keeps its digits down to the smallest normal number', async () => {
    // PyTorch in f64, at arguments that f32 holds.
    const tail: readonly (readonly [number, number])[] = [
      [-3, 1.9999779095030015],
      [0.25, 0.7236736098317631],
      [0.5, 0.4795001221869535],
      [1, 0.15729920705028513],
      [2, 0.004677734981047265],
      [4, 1.541725790028002e-8],
      [5, 1.537459794428035e-12],
      [6.5, 3.8421483271206475e-20],
      [8, 1.1224297172982926e-29],
      [9, 4.13703174651381e-37],
    ];
    const found = await sn.erfc(sn.tensor(tail.map(([x]) => x))).data();
    tail.forEach(([x, want], i) =>
      expect(Math.abs(Number(found[i]) / want - 1), `erfc(${x}) = ${found[i]}`).toBeLessThan(3e-6),
    );
    expect(await sn.erfc(sn.tensor([inf, -inf, nan, 30])).array()).toEqual([0, 2, nan, 0]);
  });

  test('log-sums of long axes are those of a loop, beside infinities too', async () => {
    const rows = 3;
    const length = 200;
    const data = Float32Array.from({ length: rows * length }, (_, i) => 30 * Math.sin(i * 12.9898) - i / 4);
    data.fill(-inf, 0, 40);
    data[length + 70] = inf;
    data[2 * length + 150] = nan;
    const found = await sn.logcumsumexp(sn.tensor(data, { shape: [rows, length] }), 1).data();
    for (let row = 0; row < rows; row++) {
      let [most, sum] = [-inf, 0];
      for (let i = row * length; i < (row + 1) * length; i++) {
        const x = data[i]!;
        const next = Number.isNaN(x) || Number.isNaN(most) ? nan : Math.max(most, x);
        if (Number.isFinite(next)) sum = sum * Math.exp(most - next) + Math.exp(x - next);
        most = next;
        const want = Number.isFinite(most) ? most + Math.log(sum) : most;
        if (Number.isFinite(want)) expect(Math.abs(Number(found[i]) - want)).toBeLessThan(1e-4);
        else expect(Number(found[i])).toBe(want);
      }
    }
  });
});

test('log-sums of n elements take work in proportion to n', () => {
  const flops = (n: number): number =>
    explain((x: sn.Tensor) => sn.logcumsumexp(x, 0), sn.zeros([n])).totals.flops;
  expect(flops(65536) / 65536).toBeLessThan(2 * (flops(1024) / 1024));
});
