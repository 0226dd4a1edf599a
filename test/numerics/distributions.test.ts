// Distributions: log-probabilities beside PyTorch's, and samples beside the densities they are drawn from.

import { readFileSync } from 'node:fs';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import * as sn from '../../src/index.ts';

interface Figures {
  readonly parameters: readonly (number | number[])[];
  readonly x: readonly number[];
  readonly logProb: readonly (number | '-inf')[];
  readonly mean: number | null;
  readonly variance: number | null;
}

const figures = JSON.parse(
  readFileSync(new URL('../fixtures/distributions.json', import.meta.url), 'utf8'),
) as Readonly<Record<string, Figures>>;
type Make = (...parameters: readonly (number | sn.Tensor)[]) => sn.distributions.Distribution;
const makers = sn.distributions as unknown as Readonly<Record<string, Make>>;
const values = async (x: sn.Tensor): Promise<number[]> => Array.from(await x.data(), Number);

beforeAll(() => sn.setDevice('wasm'));
afterAll(() => sn.setDevice(undefined));

test.each(Object.entries(figures))('%s has the log-probabilities of PyTorch', async (name, row) => {
  const made = makers[name]!(...row.parameters.map((p) => sn.tensor(p, { dtype: 'f64' })));
  const dtype = name === 'categorical' ? 'i32' : 'f64';
  const found = await values(made.logProb(sn.tensor([...row.x], { dtype })));
  row.logProb.forEach((want, i) => {
    if (want === '-inf') expect(found[i]).toBe(-Infinity);
    else
      expect(Math.abs(found[i]! - want), `at ${row.x[i]}`).toBeLessThan(1e-11 * Math.max(1, Math.abs(want)));
  });
  if (row.mean !== null) expect(await made.mean.item()).toBeCloseTo(row.mean, 10);
  if (row.variance !== null) expect(await made.variance.item()).toBeCloseTo(row.variance, 8);
});

/** Points where no sample can be, which a formula may take for others. */
const outsides: readonly (readonly [
  name: string,
  parameters: readonly number[],
  points: readonly number[],
])[] = [
  ['logNormal', [0.5, 2], [-1, 0, Infinity]],
  ['uniform', [-1, 2], [-1.5, 2, Infinity]],
  ['exponential', [1.5], [-0.5, -Infinity]],
  ['gamma', [2.5, 0.7], [-1, -Infinity, Infinity]],
  ['chi2', [3], [-0.25]],
  ['beta', [2.5, 0.7], [-0.5, 1.5]],
  ['bernoulli', [0.1], [-1.5, 0.25, 2, Infinity]],
  ['geometric', [0.6], [-1, 0.5, Infinity]],
  ['poisson', [1.9], [-2, 0.5, Infinity]],
];

test.each(outsides)(
  '%s has a density of 0 outside its support, and none at NaN',
  async (name, at, points) => {
    for (const dtype of ['f32', 'f64'] as const) {
      const made = makers[name]!(...at.map((p) => sn.tensor(p, { dtype })));
      const x = sn.tensor([...points, NaN], { dtype }).requiresGrad_();
      const found = made.logProb(x);
      expect(found.dtype).toBe(dtype);
      expect(await values(found)).toEqual([...points.map(() => -Infinity), NaN]);
      // The density of the uniform distribution is no function of x.
      found.add(x.mul(0)).sum().backward();
      expect(await values(x.grad!)).toEqual([...points, NaN].map(() => 0));
    }
  },
);

/** Parameters and a point whose terms are large in 16 bits and cancel. */
const cancelling: readonly (readonly [name: string, parameters: readonly number[], x: number])[] = [
  ['normal', [0, 1], 300],
  ['normal', [-3, 200], -60_000],
  ['laplace', [1, 0.5], 300],
  ['gumbel', [1, 0.5], -3],
  ['logistic', [1, 0.25], 300],
  ['cauchy', [0, 1], 300],
  ['logNormal', [1, 0.125], 3],
  ['exponential', [0.015625], 20],
  ['gamma', [300, 2], 150],
  ['chi2', [300], 300],
  ['beta', [300, 200], 0.5],
  ['studentT', [300], 0],
  ['studentT', [1], 300],
  ['geometric', [0.0078125], 100],
  ['poisson', [300], 300],
];

test.each(cancelling)('%s(%s) has in 16 bits the density at %s, rounded', async (name, at, x) => {
  for (const [dtype, digits] of [
    ['f16', 2 ** -10],
    ['bf16', 2 ** -7],
  ] as const) {
    const made = makers[name]!(...at.map((p) => sn.tensor([p], { dtype })));
    const point = sn.tensor([x], { dtype });
    const found = made.logProb(point);
    const exact = makers[name]!(...at.map((p) => sn.tensor([p], { dtype }).cast('f64')));
    const want = Number(await exact.logProb(point.cast('f64')).item());
    expect([found.dtype, made.mean.dtype, made.variance.dtype]).toEqual([dtype, dtype, dtype]);
    expect(made.sample([2]).dtype).toBe(dtype);
    expect(Math.abs(Number(await found.item()) - want)).toBeLessThanOrEqual(digits * Math.abs(want));
  }
});

const large: readonly (readonly [name: string, parameters: readonly number[], points: readonly number[]])[] =
  [
    ['gamma', [20_000, 1000], [0, 18, 20, 22.5]],
    ['gamma', [9.5, 0.25], [0.5, 40, 200]],
    ['chi2', [300], [200, 300, 450]],
    ['beta', [300, 200], [0, 0.25, 0.5, 0.625, 1]],
    ['studentT', [50_000], [-3, 0, 0.5, 100]],
    ['studentT', [300], [-1, 0, 2]],
    ['poisson', [30_000], [0, 7, 29_000, 30_000]],
    ['poisson', [0.5], [0, 8, 40]],
  ];

test.each(large)('%s(%s) has all digits of f32 where logarithms of Γ are large', async (name, at, points) => {
  const of = async (dtype: 'f32' | 'f64'): Promise<readonly number[][]> => {
    const parameters = at.map((p) => sn.tensor(p, { dtype }));
    const density = (...given: sn.Tensor[]): sn.Tensor =>
      makers[name]!(...given).logProb(sn.tensor([...points], { dtype }));
    const inner = points.map((p) => (p === 0 && name !== 'studentT' ? 0 : 1));
    const weigh = (...given: sn.Tensor[]): sn.Tensor =>
      sn.where(sn.tensor(inner).gt(0), density(...given), 0).sum();
    const slopes = sn.grad(weigh, { argnums: at.map((_, i) => i) })(...parameters) as sn.Tensor[];
    return Promise.all([density(...parameters), ...slopes].map(values));
  };
  const [found, want] = [await of('f32'), await of('f64')];
  want.forEach((row, k) => {
    const size = Math.max(...row.filter(Number.isFinite).map(Math.abs));
    row.forEach((x, i) => {
      if (!Number.isFinite(x)) expect(found[k]![i]).toBe(x);
      else
        expect(Math.abs(found[k]![i]! - x)).toBeLessThan(
          3e-6 * Math.max(Math.abs(x), k === 0 ? 0.3 : size) + 2e-6,
        );
    });
  });
});

test.each([
  ['cauchy', []],
  ['studentT', [1]],
] as const)('%s has a density and its slopes far out, where squares overflow', async (name, at) => {
  const density = (x: sn.Tensor): sn.Tensor => makers[name]!(...at).logProb(x);
  const x = sn.tensor([-1e30, -2, 0, 0.5, 1e30]);
  const exact = await values(density(x.cast('f64')));
  const found = await values(density(x));
  found.forEach((value, i) => expect(value / exact[i]!).toBeCloseTo(1, 6));
  const slopes = await values(sn.grad((p: sn.Tensor) => density(p).sum())(x));
  const want = [2e-30, 0.8, 0, -0.8, -2e-30];
  slopes.forEach((slope, i) =>
    expect(Math.abs(slope - want[i]!)).toBeLessThanOrEqual(1e-6 * Math.abs(want[i]!)),
  );
  expect(await values(density(sn.tensor([Infinity, -Infinity, NaN])))).toEqual([-Infinity, -Infinity, NaN]);
});

test('a categorical distribution in 16 bits has probabilities of all digits, and draws whole numbers', async () => {
  const made = sn.distributions.categorical(sn.tensor([100, 101, 99], { dtype: 'bf16' }));
  const found = made.logProb(sn.tensor([0, 1, 2], { dtype: 'i32' }));
  expect([found.dtype, made.sample([2]).dtype]).toEqual(['bf16', 'i32']);
  const want = [100, 101, 99].map((x) => x - 101 - Math.log(1 + Math.exp(-1) + Math.exp(-2)));
  (await values(found)).forEach((x, i) => expect(Math.abs(x / want[i]! - 1)).toBeLessThan(2 ** -8));
});

test('the variance of a categorical distribution over many classes keeps its digits', async () => {
  // The last two of 30,000 classes, of probabilities 1/4 and 3/4: 3/16.
  const places = sn.arange(30_000);
  const probs = sn.where(places.eq(29_999), 0.75, sn.where(places.eq(29_998), 0.25, 0));
  const made = sn.distributions.categorical(probs, { probs: true });
  expect((await values(made.variance))[0]).toBeCloseTo(0.1875, 2);
});

test('a categorical distribution gives a class that it has not the probability of 0', async () => {
  const made = sn.distributions.categorical(sn.tensor([0.3, -1, 2]));
  const found = await values(made.logProb(sn.tensor([0, 3, -1], { dtype: 'i32' })));
  expect(found[0]).toBeLessThan(0);
  expect(found.slice(1)).toEqual([-Infinity, -Infinity]);
});

const COUNT = 40_000;

/** Whether a share of so many draws is what chance makes of a probability: five deviations off at most. */
function expectShare(share: number, probability: number, what: string): void {
  const deviation = Math.sqrt((Math.max(probability, 1e-4) * (1 - Math.min(probability, 0.9999))) / COUNT);
  expect(Math.abs(share - probability), what).toBeLessThan(5 * deviation);
}

const continuous: readonly (readonly [name: string, parameters: readonly number[]])[] = [
  ['normal', [0.5, 2]],
  ['laplace', [0.5, 2]],
  ['gumbel', [0.5, 2]],
  ['logistic', [0.5, 2]],
  ['cauchy', [0.5, 2]],
  ['logNormal', [0.5, 0.8]],
  ['uniform', [0.2, 0.8]],
  ['exponential', [1.5]],
  ['gamma', [2.5, 0.7]],
  ['gamma', [0.3, 2]],
  ['gamma', [200, 1]],
  ['chi2', [3]],
  ['beta', [2.5, 0.7]],
  ['studentT', [4.5]],
];

test.each(continuous)('samples of %s(%s) follow the density', async (name, parameters) => {
  sn.manualSeed(7);
  const made = makers[name]!(...parameters);
  const drawn = (await values(made.sample([COUNT]))).toSorted((a, b) => a - b);
  expect(drawn.every(Number.isFinite)).toBe(true);
  // Ten bins between two samples each; what the density gives them is integrated by Simpson's rule.
  const edges = [...Array(11).keys()].map((i) => drawn[Math.round((COUNT - 1) * (0.03 + 0.094 * i))]!);
  const steps = 64;
  for (let i = 0; i < 10; i++) {
    const [low, high] = [edges[i]!, edges[i + 1]!];
    const at = [...Array(steps + 1).keys()].map((k) => low + ((high - low) * k) / steps);
    const density = await values(made.logProb(sn.tensor(at, { dtype: 'f64' })).exp());
    const sum = density.reduce(
      (all, d, k) => all + d * (k === 0 || k === steps ? 1 : k % 2 === 1 ? 4 : 2),
      0,
    );
    expectShare(0.094, ((high - low) * sum) / (3 * steps), `${name} in [${low}, ${high}]`);
  }
});

test.each(['f32', 'f16', 'bf16'] as const)('samples in %s are within the support', async (dtype) => {
  sn.manualSeed(7);
  const of = (value: number): sn.Tensor => sn.full([COUNT], value, { dtype });
  expect(await values(sn.distributions.bernoulli(of(1)).sample().cast('f32').sum())).toEqual([COUNT]);
  for (const [low, high] of [
    [0, 1],
    [2, 3],
  ] as const) {
    const made = sn.distributions.uniform(of(low), of(high));
    expect((await values(made.logProb(made.sample()))).every(Number.isFinite)).toBe(true);
    const drawn = await values(sn.uniform([COUNT], { low, high, dtype }));
    expect([Math.min(...drawn) >= low, Math.max(...drawn) < high]).toEqual([true, true]);
  }
  // Of classes alike the first ones are not likelier: noise is not rounded to 16 bits.
  const places = (of: typeof dtype): Promise<number[]> =>
    values(
      sn.withKey(sn.key(1), () => sn.distributions.categorical(sn.zeros([256, 64], { dtype: of })).sample()),
    );
  expect(await places(dtype)).toEqual(await places('f32'));
});

test('no sum of probabilities is passed at the end, where rounding leaves it below 1', async () => {
  // The last of the first four words of this key gives the largest number below 1.
  for (const rate of [0.01, 0.1, 0.7, 2, 5, 9]) {
    const often = sn.full([4], rate);
    const drawn = await values(sn.withKey(sn.key(39_075), () => sn.distributions.poisson(often).sample()));
    expect(drawn[3], `at a rate of ${rate}`).toBeLessThan(rate + 8 * Math.sqrt(rate) + 6);
  }
});

const discrete: readonly (readonly [name: string, parameter: number | number[]])[] = [
  ['bernoulli', 0.3],
  ['geometric', 0.3],
  ['poisson', 0.4],
  ['poisson', 9.5],
  ['poisson', 14],
  ['poisson', 300],
  ['categorical', [0.3, -1, 2]],
];

test.each(discrete)('samples of %s(%s) are as frequent as they are probable', async (name, parameter) => {
  sn.manualSeed(7);
  const made = makers[name]!(typeof parameter === 'number' ? parameter : sn.tensor(parameter));
  const drawn = await values(made.sample([COUNT]));
  const counts = new Map<number, number>();
  for (const x of drawn) counts.set(x, (counts.get(x) ?? 0) + 1);
  const seen = [...counts.keys()];
  expect(seen.every((x) => Number.isInteger(x) && x >= 0)).toBe(true);
  const dtype = name === 'categorical' ? 'i32' : 'f32';
  const expected = await values(made.logProb(sn.tensor(seen, { dtype })).exp());
  seen.forEach((x, i) => expectShare(counts.get(x)! / COUNT, expected[i]!, `${name}: ${x}`));
  expect(expected.reduce((sum, p) => sum + p, 0)).toBeGreaterThan(0.999);
});

describe('samples', () => {
  test('have the shape asked for in front of that of the parameters', async () => {
    const made = sn.distributions.gamma(sn.tensor([1, 2, 3]), sn.ones([2, 1]));
    expect(made.shape).toEqual([2, 3]);
    expect(made.sample().shape).toEqual([2, 3]);
    expect(made.sample([4, 5]).shape).toEqual([4, 5, 2, 3]);
    expect(made.logProb(sn.ones([7, 2, 3])).shape).toEqual([7, 2, 3]);
    expect(sn.distributions.categorical(sn.zeros([4, 3])).sample([2]).shape).toEqual([2, 4]);
  });

  test('are those of the seed', async () => {
    const draw = async (): Promise<number[]> => {
      sn.manualSeed(3);
      return values(sn.distributions.beta(2, 3).sample([6]));
    };
    expect(await draw()).toEqual(await draw());
  });

  test('are differentiable where they are functions of noise, and only from rsample', async () => {
    const slope = (by: 'sample' | 'rsample'): sn.Tensor =>
      sn.grad((mean: sn.Tensor) => sn.distributions.normal(mean, 2)[by]([3]).sum())(sn.tensor(1));
    expect(await values(slope('rsample'))).toEqual([3]);
    expect(await values(slope('sample'))).toEqual([0]);
    expect(() => sn.distributions.gamma(2, 3).rsample()).toThrow(
      /gamma\.rsample: samples are not differentiable/,
    );
  });

  test('of a Poisson rate of 0 are 0, and of no rate NaN', async () => {
    expect(await values(sn.distributions.poisson(sn.tensor([0, -1])).sample())).toEqual([0, NaN]);
  });

  test('of a geometric distribution whose success is sure are 0', async () => {
    expect(await values(sn.distributions.geometric(1).sample([3]))).toEqual([0, 0, 0]);
  });
});
