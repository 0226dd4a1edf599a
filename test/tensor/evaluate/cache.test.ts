import { describe, expect, test } from 'vitest';
import { cacheSize, clearCache } from '../../../src/tensor/evaluate/cache.ts';
import { compileCount } from '../../../src/tensor/evaluate/executable.ts';
import { fromHost } from '../../../src/tensor/record.ts';
import type { Tensor } from '../../../src/tensor/tensor.ts';
import { add, exp, fill, mul, spyDevice, sub, sum, vec } from '../support.ts';

/** Programs compiled while `fn` runs. */
async function compiles(fn: () => Promise<unknown>): Promise<number> {
  const before = compileCount();
  await fn();
  return compileCount() - before;
}

describe('equal structures share a program', () => {
  test('other data, same operations', async () => {
    clearCache();
    const spy = spyDevice();
    const f = (x: Tensor): Tensor => exp(add(mul(x, x), 3));
    const count = await compiles(async () => {
      expect((await f(vec(0, 1)).array()) as number[]).toEqual([
        Math.fround(Math.exp(3)),
        Math.fround(Math.exp(4)),
      ]);
      await f(vec(2, 3)).data();
      await f(vec(4, 5)).data();
    });
    expect(count).toBe(1);
    expect(spy.count).toMatchObject({ load: 1, run: 3 });
    expect(cacheSize()).toBe(1);
  });

  test('another shape, dtype or operation is another structure', async () => {
    clearCache();
    spyDevice();
    await add(vec(1, 2), vec(1, 2)).data();
    await add(vec(1, 2, 3), vec(1, 2, 3)).data();
    await sub(vec(1, 2), vec(1, 2)).data();
    const ints = (): Tensor => fromHost(Int32Array.of(1, 2), [2], 'i32');
    await add(ints(), ints()).data();
    expect(cacheSize()).toBe(4);
  });

  test('one leaf used twice and two leaves are different structures', async () => {
    clearCache();
    spyDevice();
    const x = vec(1, 2);
    expect(await add(x, x).array()).toEqual([2, 4]);
    expect(await add(vec(1, 2), vec(3, 4)).array()).toEqual([4, 6]);
    expect(cacheSize()).toBe(2);
  });

  test('old structures give way, and are compiled again when they return', async () => {
    clearCache();
    spyDevice();
    for (let size = 1; size <= 520; size++)
      await add(fill(size, 1), fromHost(new Float32Array(size), [size], 'f32')).data();
    expect(cacheSize()).toBe(512);
    expect(await add(fill(1, 2), vec(1)).array()).toEqual([3]);
  });
});

describe('numbers that vary become run-time scalars', () => {
  test('a changing learning rate compiles two programs', async () => {
    clearCache();
    spyDevice();
    let p = vec(1, 1);
    const count = await compiles(async () => {
      for (let i = 1; i <= 6; i++) {
        p = sub(p, mul(vec(1, 2), 1 / 2 ** i));
        await p.data();
      }
    });
    expect(count).toBe(2);
    const total = 1 - 1 / 64;
    expect(await p.array()).toEqual([1 - total, 1 - 2 * total]);
  });

  test('a number that equals another in one step does not change the structure', async () => {
    clearCache();
    spyDevice();
    const f = (x: Tensor, t: number): Tensor => mul(add(mul(x, 1), t), add(x, 2));
    const count = await compiles(async () => {
      expect(await f(vec(3), 1).array()).toEqual([20]);
      expect(await f(vec(3), 2).array()).toEqual([25]);
      expect(await f(vec(3), 7).array()).toEqual([50]);
      expect(await f(vec(3), 1).array()).toEqual([20]);
    });
    expect(count).toBe(2);
    expect(cacheSize()).toBe(1);
  });

  test('numbers that varied together may part', async () => {
    clearCache();
    spyDevice();
    const f = (s: number, t: number): Promise<unknown> => add(mul(vec(1), s), mul(vec(10), t)).array();
    expect(await f(1, 1)).toEqual([11]);
    expect(await f(2, 2)).toEqual([22]);
    expect(await f(2, 3)).toEqual([32]);
    expect(await f(5, 3)).toEqual([35]);
  });

  test('negative zero and NaN are values of their own', async () => {
    clearCache();
    spyDevice();
    const f = async (s: number): Promise<unknown> => (await mul(vec(1), s).data())[0];
    expect(await f(0)).toBe(0);
    expect(await f(-0)).toBe(-0);
    expect(await f(NaN)).toBe(NaN);
    expect(await f(NaN)).toBe(NaN);
  });

  test('numbers for integers and 16-bit floats vary too', async () => {
    clearCache();
    spyDevice();
    const count = await compiles(async () => {
      for (let i = 1; i <= 4; i++) {
        const half = mul(fromHost(Float32Array.of(2), [1], 'f16'), i / 4);
        expect(await half.array()).toEqual([i / 2]);
      }
      for (let i = 1; i <= 4; i++) {
        expect(await add(fromHost(Int32Array.of(-3), [1], 'i32'), i).array()).toEqual([i - 3]);
      }
    });
    expect(count).toBe(4);
  });

  test('64-bit numbers are compiled in', async () => {
    clearCache();
    spyDevice();
    for (let i = 1; i <= 3; i++) {
      expect(await add(fromHost(Float64Array.of(0.1), [1], 'f64'), i / 3).array()).toEqual([0.1 + i / 3]);
      expect(await add(fromHost(BigInt64Array.of(1n), [1], 'i64'), i).array()).toEqual([BigInt(i) + 1n]);
    }
    expect(cacheSize()).toBe(6);
  });
});

describe('a functional loop settles', () => {
  /** Momentum written without `assign`: m is consumed by p and is needed again in the next step. */
  async function train(steps: number, start: () => Tensor): Promise<{ p: number[]; programs: number[] }> {
    let [p, m] = [vec(1, 2), start()];
    const programs: number[] = [];
    for (let i = 0; i < steps; i++) {
      const before = compileCount();
      m = add(mul(m, 0.5), p);
      p = sub(p, mul(m, 0.25));
      await p.data();
      programs.push(compileCount() - before);
    }
    return { p: (await p.array()) as number[], programs };
  }

  function expected(steps: number): number[] {
    return [1, 2].map((start) => {
      let [p, m] = [start, 0];
      for (let i = 0; i < steps; i++) [m, p] = [m * 0.5 + p, p - (m * 0.5 + p) * 0.25];
      return p;
    });
  }

  test.each([
    ['starting from data', () => vec(0, 0), 3, 2],
    ['starting from a constant', () => fill(2, 0), 5, 3],
  ] as const)(
    '%s: few programs, then none, and every step is one of them',
    async (_, start, total, settled) => {
      clearCache();
      const spy = spyDevice();
      const { p, programs } = await train(20, start);
      p.forEach((value, i) => expect(value).toBeCloseTo(expected(20)[i]!, 5));
      expect(programs.slice(settled)).toEqual(Array(20 - settled).fill(0));
      expect(programs.reduce((a, b) => a + b)).toBe(total);
      // Settled, each run gives p and m, and nothing is computed again.
      expect(spy.outputs.slice(-18)).toEqual(Array(18).fill(2));
    },
  );

  test('a value read only now and then is recomputed at most once', async () => {
    clearCache();
    const spy = spyDevice();
    for (let i = 0; i < 6; i++) {
      const h = mul(vec(i, 1), 2);
      await sum(h).data();
      expect(await h.array()).toEqual([2 * i, 2]);
    }
    // The first time h is computed again on its own; then it is known to be wanted.
    expect(spy.count.run).toBe(7);
  });

  test('views of constants are never stored for a late use', async () => {
    clearCache();
    const spy = spyDevice();
    const one = fill(2, 1);
    for (let i = 0; i < 4; i++) expect(await add(vec(i, i), one).array()).toEqual([i + 1, i + 1]);
    expect(spy.outputs).toEqual([1, 1, 1, 1]);
  });
});
