// Special functions beside figures of high precision (mpmath): units in the last place over the range of each function, on every
// device that needs no hardware; poles, ends and infinities; derivatives of first and second order beside differences.

import { readFileSync } from 'node:fs';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import * as sn from '../../src/index.ts';
import { everyDevice } from '../support/devices.ts';
import { boundOf, figures, worstOf } from '../support/special-figures.ts';

const { NaN: nan, POSITIVE_INFINITY: inf } = Number;
const names = Object.keys(figures);

test('the bound is 4 units but for these', () => {
  const wider = Object.fromEntries(
    names.filter((name) => boundOf(name) !== 4).map((name) => [name, boundOf(name)]),
  );
  // The first: of the value times the greater of 1 and its logarithm. The last: of negative arguments.
  expect(wider).toEqual({ igamma: 6, igammac: 6, 'polygamma(3)': 8 });
});

test('the table of errors has a row for each', () => {
  const table = readFileSync(new URL('../../docs/functions/special.md', import.meta.url), 'utf8');
  expect([...table.matchAll(/^\| `([^`]+)` /gm)].map(([, name]) => name)).toEqual(names);
});

describe.each(everyDevice)('on %s', (device) => {
  beforeAll(() => sn.setDevice(device));
  afterAll(() => sn.setDevice(undefined));

  // WebGPU may take numbers below the normal ones for 0.
  const least = device.startsWith('webgpu') ? 2 ** -126 : 0;

  test.each(names)('%s in f32 is right to some units of the last place', async (name) => {
    const { units, at } = await worstOf(name, 'f32', least);
    expect(units, at).toBeLessThanOrEqual(boundOf(name));
  });

  test('special values', async () => {
    const [got, wanted]: [string[], string[]] = [[], []];
    for (const [name, rows] of Object.entries(edges)) {
      const call = edgeCall(name);
      const found = await call(sn.tensor(rows.map(([x]) => x))).data();
      got.push(`${name} ${Array.from(found, Number).join(' ')}`);
      wanted.push(`${name} ${rows.map(([, y]) => y).join(' ')}`);
    }
    expect(got).toEqual(wanted);
  });

  test('special values of two arguments', async () => {
    for (const [name, rows] of Object.entries(pairEdges)) {
      const [x, y] = [0, 1].map((i) => sn.tensor(rows.map((row) => row[i]!)));
      const found = await pairCall(name)(x!, y!).data();
      expect(`${name} ${Array.from(found, Number).join(' ')}`).toBe(
        `${name} ${rows.map(([, , z]) => z).join(' ')}`,
      );
    }
  });
});

describe.each(['interpreter', 'wasm'])('on %s', (device) => {
  beforeAll(() => sn.setDevice(device));
  afterAll(() => sn.setDevice(undefined));

  test.each(names)('%s in f64 is right to 1e-12', async (name) => {
    const { relative, at } = await worstOf(name, 'f64');
    expect(relative, at).toBeLessThanOrEqual(1e-12);
  });
});

type Call = (x: sn.Tensor) => sn.Tensor;
type PairCall = (x: sn.Tensor, y: sn.Tensor) => sn.Tensor;
const functions = { ...sn, ...sn.special } as unknown as Readonly<Record<string, Call & PairCall>>;
const pairCall = (name: string): PairCall => functions[name]!;
function edgeCall(name: string): Call {
  const order = /^polygamma (\d)$/.exec(name);
  return order === null ? functions[name]! : (x) => sn.polygamma(Number(order[1]), x);
}

/** Arguments and values, where functions end, and beside that. */
const edges: Readonly<Record<string, readonly (readonly [number, number])[]>> = {
  erfc: [
    [inf, 0],
    [-inf, 2],
    [nan, nan],
    [0, 1],
    [30, 0],
    [1e30, 0],
  ],
  erfcx: [
    [inf, 0],
    [-inf, inf],
    [nan, nan],
    [0, 1],
    [-10, inf],
  ],
  erfinv: [
    [1, inf],
    [-1, -inf],
    [1.5, nan],
    [-inf, nan],
    [nan, nan],
    [0, 0],
  ],
  ndtr: [
    [inf, 1],
    [-inf, 0],
    [nan, nan],
    [0, 0.5],
  ],
  ndtri: [
    [0, -inf],
    [1, inf],
    [-0.5, nan],
    [2, nan],
    [nan, nan],
    [0.5, 0],
  ],
  logNdtr: [
    [inf, 0],
    [-inf, -inf],
    [nan, nan],
  ],
  lgamma: [
    [0, inf],
    [1, 0],
    [2, 0],
    [-1, inf],
    [-20, inf],
    [inf, inf],
    [-inf, inf],
    [nan, nan],
    [4e37, inf],
    [-1e20, inf],
  ],
  digamma: [
    [0, -inf],
    [-1, nan],
    [-7, nan],
    [inf, inf],
    [-inf, nan],
    [nan, nan],
  ],
  'polygamma 1': [
    [0, inf],
    [-1, inf],
    [inf, 0],
    [nan, nan],
  ],
  'polygamma 2': [
    [0, -inf],
    [-1, -inf],
    [inf, 0],
    [nan, nan],
  ],
  entr: [
    [0, 0],
    [-1, -inf],
    [inf, -inf],
    [nan, nan],
    [1, 0],
  ],
  sinc: [
    [0, 1],
    [1, 0],
    [-2, 0],
    [nan, nan],
  ],
  logit: [
    [0, -inf],
    [1, inf],
    [0.5, 0],
    [-1, nan],
    [2, nan],
    [nan, nan],
  ],
  i0: [
    [0, 1],
    [inf, inf],
    [-inf, inf],
    [nan, nan],
    [100, inf],
  ],
  i0e: [
    [0, 1],
    [inf, 0],
    [-inf, 0],
    [nan, nan],
  ],
  i1: [
    [0, 0],
    [inf, inf],
    [-inf, -inf],
    [nan, nan],
  ],
  i1e: [
    [0, 0],
    [inf, 0],
    [nan, nan],
  ],
  modifiedBesselK0: [
    [0, inf],
    [-1, nan],
    [inf, 0],
    [nan, nan],
    [200, 0],
  ],
  modifiedBesselK1: [
    [0, inf],
    [-1, nan],
    [inf, 0],
    [nan, nan],
    [200, 0],
  ],
  scaledModifiedBesselK0: [
    [0, inf],
    [-1, nan],
    [inf, 0],
    [nan, nan],
  ],
  scaledModifiedBesselK1: [
    [0, inf],
    [-1, nan],
    [inf, 0],
    [nan, nan],
  ],
  besselJ0: [
    [0, 1],
    [inf, 0],
    [-inf, 0],
    [nan, nan],
  ],
  besselJ1: [
    [0, 0],
    [nan, nan],
  ],
  besselY0: [
    [0, -inf],
    [-1, nan],
    [inf, 0],
    [nan, nan],
  ],
  besselY1: [
    [0, -inf],
    [-1, nan],
    [inf, 0],
    [nan, nan],
  ],
  sphericalBesselJ0: [
    [0, 1],
    [inf, 0],
    [-inf, 0],
    [nan, nan],
  ],
  airyAi: [
    [inf, nan],
    [-inf, nan],
    [nan, nan],
    [104, 0],
  ],
};

const pairEdges: Readonly<Record<string, readonly (readonly [number, number, number])[]>> = {
  xlogy: [
    [0, 0, 0],
    [0, -1, 0],
    [0, nan, nan],
    [1, 0, -inf],
    [nan, 1, nan],
    [2, 1, 0],
  ],
  xlog1py: [
    [0, -1, 0],
    [0, -2, 0],
    [0, nan, nan],
    [1, -1, -inf],
    [2, 0, 0],
  ],
  zeta: [
    [1, 2, inf],
    [0.5, 2, nan],
    [2, 0, inf],
    [3, -4, inf],
    [2.5, -0.5, nan],
    [nan, 1, nan],
    [2, nan, nan],
    [2, inf, 0],
  ],
  igamma: [
    [1, 0, 0],
    [0, 1, 1],
    [0, 0, nan],
    [-1, 1, nan],
    [1, -1, nan],
    [2, inf, 1],
    [inf, 2, 0],
    [nan, 1, nan],
    [0, nan, nan],
    [nan, 0, nan],
    [nan, inf, nan],
    [inf, nan, nan],
    [inf, inf, nan],
  ],
  igammac: [
    [1, 0, 1],
    [0, 1, 0],
    [0, 0, nan],
    [-1, 1, nan],
    [1, -1, nan],
    [2, inf, 0],
    [inf, 2, 1],
    [1, nan, nan],
    [0, nan, nan],
    [nan, 0, nan],
    [nan, inf, nan],
    [inf, nan, nan],
  ],
};

/** Functions and points at which they are smooth. */
const smooth: Readonly<Record<string, readonly [Call, readonly number[]]>> = {
  ...Object.fromEntries(
    (
      [
        ['erfc', [-1, 0.3, 2, 5]],
        ['erfcx', [-1, 0.3, 6.5, 70]],
        ['erfinv', [-0.9, 0.1, 0.5, 0.99]],
        ['ndtr', [-3, -0.5, 0.2, 2]],
        ['ndtri', [0.02, 0.3, 0.6, 0.97]],
        ['logNdtr', [-8, -1, 0.5, 2]],
        ['lgamma', [-1.4, 0.3, 1.7, 9]],
        ['digamma', [-1.4, 0.3, 1.7, 9]],
        ['entr', [0.2, 1, 3, 7]],
        ['sinc', [-0.05, 0.1, 0.4, 2.3]],
        ['logit', [0.1, 0.3, 0.5, 0.9]],
        ['i0', [-5, -0.3, 1, 13]],
        ['i0e', [-60, -0.3, 1, 13]],
        ['i1', [-5, -0.3, 1, 13]],
        ['i1e', [-60, -0.3, 1, 13]],
        ['modifiedBesselK0', [0.2, 0.9, 2, 5]],
        ['modifiedBesselK1', [0.2, 0.9, 2, 5]],
        ['scaledModifiedBesselK0', [0.2, 0.9, 2, 60]],
        ['scaledModifiedBesselK1', [0.2, 0.9, 2, 60]],
        ['besselJ0', [-3, 0.4, 4, 12]],
        ['besselJ1', [-3, 0.4, 4, 12]],
        ['besselY0', [0.4, 1.5, 4, 12]],
        ['besselY1', [0.4, 1.5, 4, 12]],
        ['sphericalBesselJ0', [-3, 0.2, 1, 12]],
      ] as const
    ).map(([name, points]) => [name, [functions[name]!, points] as const]),
  ),
  'polygamma of order 2': [(x) => sn.polygamma(2, x), [-1.4, 0.4, 1.7, 9]],
  'mvlgamma of dimension 3': [(x) => sn.mvlgamma(x, 3), [1.2, 2, 3.5, 9]],
  'igamma by x': [(x) => sn.igamma(2.5, x), [0.3, 1, 2.5, 6]],
  'igammac by x': [(x) => sn.igammac(0.5, x), [0.3, 1.2, 2.5, 6]],
  'zeta by q': [(x) => sn.special.zeta(2.5, x), [0.3, 1, 4, 15]],
  'xlogy by x': [(x) => sn.xlogy(x, 3), [-1, 0.5, 2, 3]],
  'xlogy by y': [(x) => sn.xlogy(2, x), [0.1, 0.5, 2, 3]],
  'xlog1py by y': [(x) => sn.special.xlog1py(2, x), [-0.5, 0.5, 2, 3]],
  'hermite of order 4': [(x) => sn.special.hermitePolynomialH(x, 4), [-1, 0.2, 1.5, 2]],
  'legendre of order 5': [(x) => sn.special.legendrePolynomialP(x, 5), [-0.9, 0.2, 0.5, 1.2]],
};

describe('derivatives', () => {
  beforeAll(() => sn.setDevice('interpreter'));
  afterAll(() => sn.setDevice(undefined));

  const values = async (x: sn.Tensor): Promise<number[]> => Array.from(await x.data(), Number);
  const at = (xs: readonly number[]): sn.Tensor => sn.tensor([...xs], { dtype: 'f64' });

  test.each(Object.entries(smooth))('of %s are those of differences, twice', async (_, [f, xs]) => {
    const slope: Call = (x) => sn.grad((y: sn.Tensor) => f(y).sum())(x);
    const step = 1e-4;
    for (const [g, derivative] of [
      [f, slope],
      [slope, (x: sn.Tensor) => sn.grad((y: sn.Tensor) => slope(y).sum())(x)],
    ] as const) {
      const found = await values(derivative(at(xs)));
      const sample = (by: number): Promise<number[]> => values(g(at(xs.map((x) => x + by * step))));
      const [a, b, c, d] = await Promise.all([sample(-2), sample(-1), sample(1), sample(2)]);
      xs.forEach((x, i) => {
        const want = (a![i]! - 8 * b![i]! + 8 * c![i]! - d![i]!) / (12 * step);
        expect(Math.abs(found[i]! - want), `at ${x}: ${found[i]} for ${want}`).toBeLessThan(
          1e-7 * Math.max(1, Math.abs(want)),
        );
      });
    }
  });

  test('those of Airy’s function are whole where its formulas meet, and those of i1 infinite where it is', async () => {
    // Ai′(2) and Ai′(−3) by SciPy.
    const slope = sn.grad((x: sn.Tensor) => sn.special.airyAi(x).sum())(sn.tensor([2, -3], { dtype: 'f64' }));
    const found = await values(slope);
    [-0.05309038443365388, 0.3145837692165983].forEach((want, i) => expect(found[i]).toBeCloseTo(want, 10));
    const far = sn.grad((x: sn.Tensor) => sn.special.i1(x).sum())(sn.tensor([200, -200, 1]));
    const [right, left, middle] = await values(far);
    expect([right, left]).toEqual([Infinity, Infinity]);
    expect(middle).toBeCloseTo(1.2660658777520082 - 0.5651591039924851, 5);
  });

  test('those of scaled modified Bessel functions keep their digits where they vanish', async () => {
    const points = [-1e7, -300, -12.5, 11.9, 12.1, 49.9, 50.1, 1e4, 1e7];
    const slopes = async (name: string, xs: readonly number[], dtype: 'f32' | 'f64'): Promise<number[]> =>
      values(sn.grad((x: sn.Tensor) => functions[name]!(x).sum())(sn.tensor([...xs], { dtype })));
    const relative = (got: number, want: number): number => Math.abs(got / want - 1);
    for (const name of ['i0e', 'i1e', 'scaledModifiedBesselK0', 'scaledModifiedBesselK1']) {
      const xs = name.startsWith('scaled') ? points.slice(3) : points;
      const [single, double] = await Promise.all([slopes(name, xs, 'f32'), slopes(name, xs, 'f64')]);
      xs.forEach((x, i) => expect(relative(single[i]!, double[i]!), `${name} at ${x}`).toBeLessThan(1e-5));
    }
    // Four terms of Hankel's expansions.
    const [far] = await slopes('i0e', [1e4], 'f64');
    const u = 1e-4;
    const want = (-u / 2) * Math.sqrt(u / (2 * Math.PI)) * (1 + (3 * u) / 8 + (45 * u * u) / 128);
    expect(relative(far!, want)).toBeLessThan(1e-11);
  });

  test('complex numbers are refused where there is no meaning of theirs', async () => {
    const z = sn.complex(sn.tensor([0, 1]), sn.tensor([0, 0.5]));
    for (const f of [sn.lgamma, sn.i0, sn.special.ndtri, (x: sn.Tensor) => sn.xlogy(x, 2)] as const)
      expect(() => f(z)).toThrow(/has no meaning on complex numbers: c64\[2\]/);
    // sin(π + πi/2)/(π + πi/2) by mpmath.
    const found = Array.from(await sn.viewAsReal(sn.sinc(z)).data(), Number);
    [1, 0, -0.29301048, -0.58602095].forEach((want, i) => expect(found[i]).toBeCloseTo(want, 5));
  });

  test('those that there are none of are refused', () => {
    const x = sn.tensor([2, 3]);
    const from = (f: Call) => () => sn.grad((y: sn.Tensor) => f(y).sum())(x);
    expect(from((y) => sn.igamma(y, 2))).toThrow(/igamma: has no derivative by its first argument/);
    expect(from((y) => sn.igammac(y, 2))).toThrow(/igammac: has no derivative/);
    expect(from((y) => sn.special.zeta(y, 2))).toThrow(/zeta: has no derivative/);
  });
});
