// Profiles: the steps of programs run one by one, on every device, with the results of ordinary runs.

import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import * as sn from '../../src/index.ts';
import type { Tensor } from '../../src/index.ts';
import { profileCalls } from '../../src/tensor/report/spans.ts';
import { everyDevice } from '../support/devices.ts';

const n = 48;
const data = (seed: number): Float32Array =>
  Float32Array.from({ length: n * n }, (_, i) => Math.sin(seed + i) / 8);

/** Several kernels with memory between them, one of which is state that a call writes over. */
function problem(): { readonly call: () => Promise<number[]>; readonly kernels: number } {
  const [w, v] = [1, 2].map((seed) => sn.tensor(data(seed), { shape: [n, n] })) as [Tensor, Tensor];
  const state = sn.zeros([n]);
  const step = sn.compile((x: Tensor): Tensor => {
    const hidden = x.matmul(w).softmax(-1).matmul(v);
    state.assign(state.mul(0.5).add(hidden.sum(0)));
    return hidden.sub(hidden.mean(0)).matmul(w).sum(1);
  });
  const x = sn.tensor(data(3), { shape: [n, n] });
  const call = async (): Promise<number[]> => {
    const out = await step(x).data();
    return [...Array.from(out, Number), ...Array.from(await state.data(), Number)];
  };
  return { call, kernels: 3 };
}

describe.each(everyDevice)('%s', (device) => {
  beforeAll(() => sn.setDevice(device));
  afterAll(() => sn.setDevice(undefined));

  test('gives what ordinary runs give, and the steps of each call', async () => {
    const [plain, profiled] = [problem(), problem()];
    const wanted: number[][] = [];
    for (let i = 0; i < 5; i++) wanted.push(await plain.call());
    const found: number[][] = [await profiled.call()];
    const calls = await profileCalls(async () => found.push(await profiled.call()), 2);
    found.push(await profiled.call());
    // The first call of a profile makes the steps ready: with it there are three.
    expect(found).toEqual(wanted);
    expect(calls).toHaveLength(2);
    const names = calls.map((spans) => spans.map(({ name }) => name));
    expect(names[0]).toEqual(names[1]);
    if (device === 'interpreter') {
      expect(names[0]).toEqual([]);
      return;
    }
    expect(names[0]!.length).toBeGreaterThanOrEqual(plain.kernels);
    for (const { nanoseconds, bytes, kind } of calls.flat()) {
      if (nanoseconds !== undefined) expect(nanoseconds).toBeGreaterThanOrEqual(0);
      if (kind !== 'memory') expect(bytes).toBeGreaterThan(0);
    }
  });

  test('takes the steps within loops, each as often as it runs', async () => {
    const [w, start] = [1, 2].map((seed) => sn.tensor(data(seed), { shape: [n, n] })) as [Tensor, Tensor];
    const times = 5;
    const looped = sn.compile((x: Tensor): Tensor => {
      const [last] = sn.scan(
        (state: Tensor): [Tensor, Tensor] => {
          const next = state.matmul(w).softmax(-1);
          return [next, next.sum()];
        },
        x,
        sn.zeros([times]),
      );
      // As often as its condition holds, which only the device knows.
      return sn.whileLoop(
        (y: Tensor) => y.max().gt(0.1),
        (y: Tensor) => y.mul(0.5),
        last,
      );
    });
    const plain = await looped(start).array();
    const found: unknown[] = [];
    const [spans] = await profileCalls(async () => found.push(await looped(start).array()), 1);
    expect(found).toEqual([plain, plain]);
    if (device === 'interpreter') return;
    const products = spans!.filter(({ kind }) => kind === 'dot');
    expect(products.length).toBe(times);
  });

  test('ends where the call fails', async () => {
    await expect(profileCalls(() => Promise.reject(new Error('no')), 1)).rejects.toThrow('no');
    expect(await sn.tensor([1, 2]).add(1).array()).toEqual([2, 3]);
  });
});
