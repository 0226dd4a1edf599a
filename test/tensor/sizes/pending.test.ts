// A compiled function whose sizes vary by themselves, called with values that are not computed yet: they cost no program a size
// either, are what they are by themselves, and take the kernels that they took.

import { afterAll, afterEach, beforeEach, describe, expect, test } from 'vitest';
import * as sn from '../../../src/index.ts';
import { clearCache } from '../../../src/tensor/evaluate/cache.ts';
import { everyDevice } from '../../support/devices.ts';

type X = sn.Tensor;

const data = (n: number, m = 1): X =>
  sn.tensor(
    Array.from({ length: n * m }, (_, i) => Math.sin(i + n)),
    { shape: m === 1 ? [n] : [n, m] },
  );

const twice = sn.compile((x: X) => x.mul(2));

/** Arguments by their size, of rank 1. */
const kinds: Readonly<Record<string, (n: number) => X>> = {
  ones: (n) => sn.ones([n]),
  full: (n) => sn.full([n], 2.5),
  'a number that is the size': (n) => sn.full([n], n),
  arange: (n) => sn.arange(n).cast('f32'),
  'arange with a step': (n) => sn.arange(0, 3 * n, 3).cast('f32'),
  linspace: (n) => sn.linspace(0, 1, n),
  'a sum': (n) => data(n).add(1),
  'a chain': (n) => data(n).sin().mul(sn.arange(n)).add(0.5),
  rand: (n) => sn.rand([n]),
  randn: (n) => sn.randn([n]),
  'a result of another compiled function': (n) => twice(data(n)),
  'something of a result': (n) => twice(data(n)).add(1),
  'a reduction': (n) => data(n, 3).sum(1),
  'a product': (n) => data(n, 3).matmul(sn.ones([3])),
  'a triangle': (n) => sn.tril(sn.ones([n, n])).sum(0),
  'pieces behind one another': (n) => sn.cat([sn.zeros([2]), data(n - 2)]),
  'a running sum': (n) => data(n).cumsum(0),
  'every other': (n) =>
    data(2 * n)
      .reshape([n, 2])
      .select(1, 0),
  'a half, rounded': (n) => sn.cat([data(Math.floor(n / 2)), sn.ones([n - Math.floor(n / 2)])]),
  integers: (n) => sn.arange(n).mul(7).bitwiseAnd(3).cast('f32'),
  sorted: (n) => sn.sort(data(n))[0],
  'its operand in the end': (n) => sn.pad(data(n), [[1, 1]]).narrow(0, 1, n),
};

const sizes = [5, 6, 7, 8, 9, 10, 11, 12, 13, 14];

interface Cost {
  readonly programs: number;
  readonly dispatches: number;
}

async function costOf(run: () => Promise<unknown>): Promise<Cost> {
  const before = sn.stats();
  await run();
  const after = sn.stats();
  return { programs: after.programs - before.programs, dispatches: after.dispatches - before.dispatches };
}

const body = (x: X): X => x.mul(3).add(x.sum());

/** What calls with values of these sizes give and cost. */
async function called(
  make: (n: number) => X,
  all: readonly number[],
): Promise<{ values: number[][]; costs: Cost[] }> {
  sn.manualSeed(7);
  const f = sn.compile(body);
  const values: number[][] = [];
  const costs: Cost[] = [];
  for (const n of all) {
    costs.push(
      await costOf(async () => {
        values.push(Array.from(await f(make(n)).data(), Number));
      }),
    );
  }
  return { values, costs };
}

function expectClose(found: readonly (readonly number[])[], wanted: readonly (readonly number[])[]): void {
  expect(found.map(({ length }) => length)).toEqual(wanted.map(({ length }) => length));
  for (const [k, row] of wanted.entries())
    for (const [i, value] of row.entries()) {
      const distance = Math.abs(found[k]![i]! - value);
      if (!(distance <= 1e-4 * (1 + Math.abs(value)))) expect(found[k]).toEqual(row);
    }
}

beforeEach(() => sn.setDevice('wasm'));
afterEach(() => sn.setAutoDims(true));
afterAll(async () => {
  await sn.close();
  sn.setDevice(undefined);
});

describe('values that are pending', () => {
  test.each(Object.keys(kinds))('cost no program a size: %s', async (kind) => {
    clearCache();
    const { values, costs } = await called(kinds[kind]!, sizes);
    sn.setAutoDims(false);
    clearCache();
    const alone = await called(kinds[kind]!, sizes);
    expectClose(values, alone.values);
    const programs = costs.map((cost) => cost.programs);
    // Draws of normals are pairs, and even sizes another structure than odd ones.
    expect(programs.slice(5)).toEqual([0, 0, 0, 0, 0]);
    expect(alone.costs.slice(5).some((cost) => cost.programs > 0)).toBe(true);
    // What is seen to be its operand at one size is computed where sizes vary.
    const more = (i: number): number => (kind === 'its operand in the end' && i >= 3 ? 1 : 0);
    expect(costs.map((cost) => cost.dispatches)).toEqual(
      alone.costs.map((cost, i) => cost.dispatches + more(i)),
    );
  });

  test('grow, and have a program for each power of two', async () => {
    const all = [3, 40, 17, 100, 64, 65, 250, 33, 129, 200, 1000, 513, 700, 900, 31, 20];
    for (const kind of ['ones', 'a chain', 'rand', 'a running sum']) {
      clearCache();
      const { values, costs } = await called(kinds[kind]!, all);
      sn.setAutoDims(false);
      expectClose(values, (await called(kinds[kind]!, all)).values);
      sn.setAutoDims(true);
      expect(costs.slice(11).reduce((sum, { programs }) => sum + programs, 0)).toBeLessThanOrEqual(3);
    }
  });

  test('may vary along two axes that have nothing to do with one another', async () => {
    const shapes = [9, 10, 11, 12, 13, 14, 15, 16].map(
      (n, i) => [n, [9, 12, 10, 15, 13, 11, 14, 16][i]!] as const,
    );
    const f = sn.compile((x: X) => x.softmax(1).sum(0));
    const programs: number[] = [];
    for (const [n, m] of shapes) {
      const make = (): X =>
        data(n, m)
          .add(sn.arange(m))
          .mul(sn.arange(n).reshape([n, 1]));
      const wanted = await make().softmax(1).sum(0).data();
      const x = make().mul(1);
      let found: readonly number[] = [];
      const cost = await costOf(async () => {
        found = Array.from(await f(x).data(), Number);
      });
      expectClose([found], [Array.from(wanted, Number)]);
      programs.push(cost.programs);
    }
    expect(programs.slice(5)).toEqual([0, 0, 0]);
  });

  test('may be many, in a tree, and captured', async () => {
    const held = { scale: sn.ones([1]) };
    const f = sn.compile(({ a, more }: { a: X; more: readonly X[] }) => {
      return more.reduce((sum, x) => sum.add(x.mean()), a).mul(held.scale);
    });
    const costs: Cost[] = [];
    for (const n of sizes) {
      const given = { a: sn.arange(n).cast('f32'), more: [sn.ones([n]), data(n).add(1)] };
      costs.push(
        await costOf(async () => {
          const found = Array.from(await f(given).data(), Number);
          const mean = Array.from({ length: n }, (_, i) => (Math.sin(i + n) + 1) / n).reduce((a, b) => a + b);
          expectClose([found], [Array.from({ length: n }, (_, i) => i + 1 + mean)]);
        }),
      );
    }
    expect(costs.slice(5).map(({ programs }) => programs)).toEqual([0, 0, 0, 0, 0]);
    expect(new Set(costs.slice(1).map(({ dispatches }) => dispatches)).size).toBe(1);
  });

  test('are still there afterwards, and so is what they are made of', async () => {
    const f = sn.compile(body);
    for (const n of sizes) {
      const [inner, other] = [data(n).sin(), sn.arange(n).cast('f32')];
      const x = inner.mul(other);
      const result = f(x);
      const total = Number(await result.sum().item());
      const plain = Array.from({ length: n }, (_, i) => Math.sin(Math.sin(i + n)));
      expectClose([Array.from(await x.data(), Number)], [plain.map((value, i) => value * i)]);
      expectClose([Array.from(await inner.data(), Number)], [plain]);
      const sum = plain.reduce((all, value, i) => all + value * i, 0);
      expect(total).toBeCloseTo(sum * (3 + n), 2);
    }
  });

  test('carry gradients', async () => {
    const f = sn.compile((x: X) => sn.grad((y: X) => body(y).square().sum())(x) as X);
    for (const n of sizes) {
      const w = data(n).clone().detach().requiresGrad_();
      const x = w.mul(sn.arange(n));
      const found = Array.from(await f(x).data(), Number);
      const wanted = await (sn.grad((y: X) => body(y).square().sum())(x) as X).data();
      expectClose([found], [Array.from(wanted, Number)]);
      x.sum().backward();
      expectClose([Array.from(await w.grad!.data(), Number)], [Array.from({ length: n }, (_, i) => i)]);
    }
  });

  test('come in other numbers, and are what they are', async () => {
    const f = sn.compile(body);
    for (const [i, n] of [...sizes, ...sizes].entries()) {
      const found = Array.from(await f(sn.ones([n]).mul(i)).data(), Number);
      expectClose([found], [Array.from({ length: n }, () => i * (3 + n))]);
    }
  });
});

test.each(everyDevice)('on %s they are what they are by themselves', async (device) => {
  sn.setDevice(device);
  for (const kind of ['ones', 'a chain', 'randn', 'a triangle', 'pieces behind one another', 'sorted']) {
    const { values } = await called(kinds[kind]!, sizes);
    sn.setAutoDims(false);
    expectClose(values, (await called(kinds[kind]!, sizes)).values);
    sn.setAutoDims(true);
  }
});
