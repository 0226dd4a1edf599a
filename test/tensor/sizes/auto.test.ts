// Sizes that vary without having been declared, and what explanations tell of programs for many sizes.

import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import * as sn from '../../../src/index.ts';
import { LSTM, parameter } from '../../../src/nn/index.ts';
import { floats } from './programs.ts';

type X = sn.Tensor;

beforeEach(() => sn.setDevice('interpreter'));
afterEach(() => sn.setAutoDims(true));

/** Programs compiled while `run` reads what compiled functions give. */
async function programsOf(run: () => Promise<unknown>): Promise<number> {
  const before = sn.stats().programs;
  await run();
  return sn.stats().programs - before;
}

const lengths = Array.from({ length: 60 }, (_, i) => 5 + ((i * 37) % 60));

describe('sizes of themselves', () => {
  test('become one after the third', async () => {
    const f = sn.compile((x: X, y: X) => x.softmax(0).mul(y));
    const made = await programsOf(async () => {
      for (const n of lengths) {
        const [x, y] = [floats(n), floats(n)];
        const got = await f(x, y).data();
        expect(got.length).toBe(n);
      }
    });
    // Three sizes, then a program, and more where sizes grow.
    expect(made).toBeGreaterThan(3);
    expect(made).toBeLessThanOrEqual(8);
  });

  test('serve recurrent layers and their gradients over batches', async () => {
    const layer = new LSTM(3, 4);
    const step = (x: X): X => sn.grad((y: X) => layer.forward(y)[0].square().sum())(x) as X;
    const f = sn.compile(step);
    // The weights.
    await step(floats(5, 2, 3)).data();
    const made = await programsOf(async () => {
      for (const n of lengths.slice(0, 12)) await f(floats(5, n, 3)).data();
    });
    expect(made).toBeLessThanOrEqual(8);
    for (const n of [1, 7, 50]) {
      const x = floats(5, n, 3);
      const [got, wanted] = [await f(x).data(), await step(x).data()];
      got.forEach((value, k) => expect(Number(value)).toBeCloseTo(Number(wanted[k]), 4));
    }
  });

  test('compute what each size does', async () => {
    const body = (x: X): X => x.cumsum(0).div(x.shape[0]!).add(x.mean());
    const f = sn.compile(body);
    for (const n of lengths.slice(0, 12)) {
      const x = floats(n);
      const wanted = await body(x).data();
      const got = await f(x).data();
      for (const [i, value] of got.entries()) expect(value).toBeCloseTo(Number(wanted[i]), 5);
    }
  });

  test.each([
    ['from nothing on', [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12], 5],
    // What is small takes no program for sixteen.
    ['down to nothing', [12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0], 8],
    ['with nothing between', [3, 0, 5, 1, 7, 0, 2, 8, 9, 0, 10, 4, 11, 6, 12], 6],
  ])('are settled after a few traces, %s', async (_, sizes, most) => {
    const warned = vi.spyOn(console, 'warn').mockImplementation(() => undefined);
    const bodies: readonly ((x: X) => X)[] = [
      (x) => x.sum(),
      (x) => sn.cat([x.mul(2), x.flip([0])]),
      (x) => x.cumsum(0).div(x.shape[0]! + 1),
      (x) => x.unsqueeze(0).mul(x.unsqueeze(1)).sum(0),
      (x) => sn.grad((y: X) => y.softmax(0).square().sum())(x) as X,
    ];
    for (const body of bodies) {
      const f = sn.compile(body);
      const before = sn.stats().traces;
      for (const n of sizes) {
        const x = floats(n);
        const [got, wanted] = [await f(x).data(), await body(x).data()];
        expect(got.length).toBe(wanted.length);
        got.forEach((value, i) => expect(Number(value)).toBeCloseTo(Number(wanted[i]), 5));
      }
      expect(sn.stats().traces - before).toBeLessThanOrEqual(most);
    }
    expect(warned).not.toHaveBeenCalled();
    warned.mockRestore();
  });

  test('are compiled one by one where they are not to be, or cannot be', async () => {
    const warned = vi.spyOn(console, 'warn').mockImplementation(() => undefined);
    const f = sn.compile((x: X) => sn.linalg.det(x));
    const made = await programsOf(async () => {
      for (let n = 2; n < 8; n++) expect(await f(sn.eye(n).mul(1)).item()).toBeCloseTo(1);
    });
    expect(made).toBeGreaterThanOrEqual(6);
    sn.setAutoDims(false);
    const g = sn.compile((x: X) => x.mul(2));
    expect(
      await programsOf(async () => {
        for (let n = 2; n < 8; n++) await g(floats(n)).data();
      }),
    ).toBe(6);
    warned.mockRestore();
  });

  test('go back where equal ones become different', async () => {
    const f = sn.compile((x: X, y: X) => x.sum().add(y.sum()));
    for (let n = 2; n < 8; n++) expect(await f(sn.ones([n]), sn.ones([n])).item()).toBe(2 * n);
    for (let n = 2; n < 8; n++) expect(await f(sn.ones([n]), sn.ones([3])).item()).toBe(n + 3);
    expect(await f(sn.ones([500]), sn.ones([3])).item()).toBe(503);
  });

  test('keep gradients', async () => {
    const w = parameter(floats(3, 2));
    const f = sn.compile((x: X) => x.matmul(w).pow(2).mean());
    for (const n of [2, 3, 4, 5, 9, 17]) {
      const x = floats(n, 3);
      const wanted = await sn
        .grad((at: X) => x.matmul(at).pow(2).mean())(w.detach())
        .data();
      w.grad = undefined;
      f(x).backward();
      for (const [i, value] of (await w.grad!.data()).entries())
        expect(value).toBeCloseTo(Number(wanted[i]), 5);
    }
  });
});

test('an explanation shows the programs of a function, and the one for the arguments', () => {
  const f = sn.compile((x: X) => x.softmax(0), { dims: { x: [sn.dim('n', { max: 1024 })] } });
  const told = sn.explain(f, floats(100));
  expect(told.sizes).toEqual([
    { upTo: { n: 16 }, compiled: false },
    { upTo: { n: 128 }, compiled: true },
    { upTo: { n: 1024 }, compiled: false },
  ]);
  expect(told.graph).toContain('f32[128]');
  expect(told.toString()).toContain('sizes: n ≤ 16, n ≤ 128 (compiled), n ≤ 1024');
  expect(sn.explain((x: X) => x.exp(), floats(3)).sizes).toEqual([]);
});

test('attention over a varying number of keys stays one kernel', () => {
  const attention = (q: X, k: X, v: X): X => sn.scaledDotProductAttention(q, k, v, { isCausal: true });
  const n = sn.dim('n', { max: 1024 });
  const f = sn.compile(attention, {
    dims: [
      [4, n, 16],
      [4, n, 16],
      [4, n, 16],
    ],
  });
  const args = [floats(4, 200, 16), floats(4, 200, 16), floats(4, 200, 16)] as const;
  expect(sn.explain(f, ...args).kernels.filter(({ kind }) => kind === 'attention').length).toBe(1);
});
