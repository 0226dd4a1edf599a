// The tensor layer on real devices: opening takes time, runs may be asynchronous, memory is donated and pooled.

import { afterAll, describe, expect, test } from 'vitest';
import { compile } from '../../../src/tensor/compile/compile.ts';
import { device, setDevice, synchronize } from '../../../src/tensor/device.ts';
import { noGrad, valueAndGrad } from '../../../src/tensor/derivative/transform.ts';
import type { Tensor, TensorLike } from '../../../src/tensor/tensor.ts';
import { add, exp, mul, sub, sum, vec } from '../support.ts';

/** Momentum on Σ exp(w·x) + w², eagerly; gives every loss and the final parameters. */
async function trainEagerly(name: string): Promise<number[]> {
  setDevice(name);
  const w = vec(0.5, -0.25, 1).requiresGrad_();
  const m = vec(0, 0, 0);
  const x = vec(0.1, 0.2, 0.3);
  const seen: number[] = [];
  for (let i = 1; i <= 8; i++) {
    const loss = sum(add(exp(mul(w, x)), mul(w, w)));
    w.zeroGrad();
    loss.backward();
    noGrad(() => {
      m.assign(add(mul(m, 0.5), w.grad!));
      w.assign(sub(w, mul(m, 0.1 / i)));
    });
    if (i % 2 === 0) seen.push((await loss.item()) as number);
  }
  return [...seen, ...((await w.array()) as number[])];
}

async function trainCompiled(name: string): Promise<number[]> {
  setDevice(name);
  const loss = (w: Tensor, x: Tensor): Tensor => sum(add(exp(mul(w, x)), mul(w, w)));
  const step = compile(
    (w: Tensor, x: Tensor, rate: TensorLike) => {
      const { value, grad } = valueAndGrad(loss)(w, x);
      return { w: sub(w, mul(grad, rate)), value };
    },
    { donate: [0] },
  );
  let w = vec(0.5, -0.25, 1);
  const values: Tensor[] = [];
  for (let i = 1; i <= 6; i++) {
    const next = step(w, vec(0.1, 0.2, 0.3 / i), 0.1 / i);
    w = next.w;
    values.push(next.value);
  }
  const losses = await Promise.all(values.map((value) => value.item()));
  return [...(losses as number[]), ...((await w.array()) as number[])];
}

describe.each(['webgpu:software', 'wasm'])('%s trains as the interpreter does', (name) => {
  afterAll(async () => {
    setDevice(name);
    await synchronize();
    (await device()).destroy();
  });

  test.each([
    ['eagerly', trainEagerly],
    ['compiled, donating', trainCompiled],
  ])('%s', async (_, train) => {
    const expected = await train('interpreter');
    const got = await train(name);
    expect(got.length).toBe(expected.length);
    got.forEach((value, i) => expect(value).toBeCloseTo(expected[i]!, 5));
  });

  test('values move between the two', async () => {
    setDevice('interpreter');
    const x = add(vec(1, 2), 1);
    await x.data();
    setDevice(name);
    const y = mul(x, 2);
    expect(await y.array()).toEqual([4, 6]);
    setDevice('interpreter');
    expect(await add(y, x).array()).toEqual([6, 9]);
  });
});
