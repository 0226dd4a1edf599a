// Runs in a process of its own: it counts what the collector leaves in memory.

import { describe, expect, onTestFinished, test } from 'vitest';
import { clearCache } from '../../../src/tensor/evaluate/cache.ts';
import { compile } from '../../../src/tensor/compile/compile.ts';
import { setAutoDims } from '../../../src/tensor/sizes/auto.ts';
import { setRetainedMemoryLimit } from '../../../src/tensor/handle/memory.ts';
import { evaluatePending } from '../../../src/tensor/evaluate/evaluate.ts';
import { assigning, pendingHandles } from '../../../src/tensor/handle/recording.ts';
import { noGrad, vjp } from '../../../src/tensor/derivative/transform.ts';
import type { Tensor } from '../../../src/tensor/tensor.ts';
import { finalized, settledAt } from '../../support/collector.ts';
import { add, exp, mul, spyDevice, sub, sum, turn, vec } from '../support.ts';

/** One step of training by momentum, written as users write it. */
function trainer(): { step: () => Tensor; w: Tensor } {
  const w = vec(1, -2, 3).requiresGrad_();
  const m = vec(0, 0, 0);
  const step = (): Tensor => {
    const hidden = mul(w, vec(1, 2, 3));
    const loss = sum(mul(hidden, hidden));
    w.zeroGrad();
    loss.backward();
    noGrad(() => {
      m.assign(add(mul(m, 0.9), w.grad!));
      w.assign(sub(w, mul(m, 1e-4)));
    });
    return loss;
  };
  return { step, w };
}

describe('memory stays flat without dispose', () => {
  test('though programs are kept: they hold nothing that they were made for', async () => {
    clearCache();
    const spy = spyDevice();
    const device = await spy.device;
    const twice = compile((x: Tensor) => mul(x, 2));
    setAutoDims(false);
    onTestFinished(() => setAutoDims(true));
    for (let n = 1; n <= 30; n++) {
      const x = mul(vec(...Array.from({ length: n }, () => 1)), 3);
      await x.data();
      await twice(x).data();
    }
    expect(spy.count.load).toBe(60);
    expect(await settledAt(() => device.memory().buffers)).toBeLessThan(10);
  });

  test('over 10,000 eager training steps', async () => {
    clearCache();
    const spy = spyDevice();
    const { memory } = await spy.device.then((device) => ({ memory: () => device.memory() }));
    const { step, w } = trainer();
    const losses: number[] = [];
    for (let i = 0; i < 10_000; i++) {
      const loss = step();
      if (i % 5 === 0) losses.push((await loss.item()) as number);
      if (i % 500 === 0) await turn();
    }
    await w.data();
    await finalized();
    expect(losses.at(-1)).toBeLessThan(losses[0]! / 100);
    expect(spy.count.allocate).toBeGreaterThan(10_000);
    expect(await settledAt(() => memory().buffers)).toBeLessThan(20);
    expect(pendingHandles().size).toBeLessThan(20);
    expect(spy.count.load).toBeLessThan(12);
  });

  test('when every loss is kept', async () => {
    clearCache();
    const spy = spyDevice();
    const device = await spy.device;
    const { step } = trainer();
    const losses: Tensor[] = [];
    for (let i = 0; i < 200; i++) {
      losses.push(step());
      await losses.at(-1)!.item();
    }
    // One scalar each: released histories hold no weights.
    expect(await settledAt(() => device.memory().buffers)).toBeLessThan(200 + 20);
    expect(await losses[0]!.item()).toBe(98);
  });

  test('over compiled steps that donate their state: nothing is allocated but uploads', async () => {
    const spy = spyDevice();
    const device = await spy.device;
    const step = compile((w: Tensor, x: Tensor) => sub(w, mul(x, 0.5)), { donate: [0] });
    let w = vec(1, 2, 3);
    for (let i = 0; i < 100; i++) w = step(w, vec(1, 1, 1));
    expect(await w.array()).toEqual([-49, -48, -47]);
    expect(spy.count.allocate).toBe(1 + 100);
    expect(await settledAt(() => device.memory().buffers)).toBeLessThan(5);
  });
});

describe('device memory is given back at once', () => {
  test('by dispose', async () => {
    const spy = spyDevice();
    const device = await spy.device;
    const y = add(vec(1, 2), 1);
    await y.data();
    const before = device.memory().buffers;
    y.dispose();
    expect(device.memory().buffers).toBe(before - 1);
  });

  test('not by dispose while another tensor stands for the value', async () => {
    const spy = spyDevice();
    const device = await spy.device;
    const y = add(vec(1, 2), 1);
    await y.data();
    const alias = y.detach();
    const before = device.memory().buffers;
    y.dispose();
    expect(device.memory().buffers).toBe(before);
    expect(await alias.array()).toEqual([2, 3]);
    alias.dispose();
    expect(device.memory().buffers).toBe(before - 1);
  });

  test('after the evaluation that needed a disposed value', async () => {
    const spy = spyDevice();
    const device = await spy.device;
    const x = add(vec(1, 2), 1);
    await x.data();
    const y = add(x, 1);
    x.dispose();
    const buffers = (): number => device.memory().buffers;
    const before = await settledAt(buffers);
    expect(await y.array()).toEqual([3, 4]);
    // y came, x and the hoisted constant's upload did not stay.
    expect(await settledAt(buffers)).toBe(before);
    expect(y.shape).toEqual([2]);
  });

  test('for values that assign replaced and only an update read', async () => {
    const spy = spyDevice();
    const device = await spy.device;
    const w = vec(1, 2).requiresGrad_();
    const m = vec(0, 0);
    let first = 0;
    for (let i = 0; i < 50; i++) {
      w.zeroGrad();
      sum(exp(w)).backward();
      assigning(() => {
        m.assign(add(mul(m, 0.5), w.grad!));
        w.assign(sub(w, mul(m, 0.01)));
      });
      await w.data();
      await m.data();
      if (i === 1) first = device.memory().buffers;
    }
    // The loss stays until it is collected, and the parameter it was computed from: its exp might be asked for.
    expect(device.memory().buffers - first).toBeLessThanOrEqual(2 * 48);
    expect(spy.count.allocate).toBeGreaterThan(3 * 48);
  });

  test('for values that assign replaced by others that were computed before', async () => {
    const spy = spyDevice();
    const device = await spy.device;
    evaluatePending();
    const step = compile((x: Tensor) => add(x, 1));
    const w = add(vec(1, 2), 0);
    await w.data();
    const buffers = (): number => device.memory().buffers;
    const before = await settledAt(buffers);
    for (let i = 0; i < 50; i++) {
      const next = step(w);
      w.assign(next);
      next.dispose();
    }
    expect(await w.array()).toEqual([51, 52]);
    expect(await settledAt(buffers)).toBe(before);
    expect(w.shape).toEqual([2]);
  });

  test('for values that assign replaced, above the budget', async () => {
    const budget = setRetainedMemoryLimit(24);
    try {
      const spy = spyDevice();
      const device = await spy.device;
      const w = vec(1, 2);
      await add(w, 0).data();
      const before = device.memory().buffers;
      for (let i = 0; i < 50; i++) {
        const next = add(w, 1);
        w.assign(next);
        next.dispose();
        await w.data();
      }
      expect(await w.array()).toEqual([51, 52]);
      // The current value and three old ones of eight bytes.
      expect(device.memory().buffers - before).toBeLessThanOrEqual(4);
    } finally {
      setRetainedMemoryLimit(budget);
    }
  });
});

test('what is given up while a queued run or a read needs it is kept until then', async () => {
  let release = (): void => undefined;
  const spy = spyDevice(new Promise((resolve) => (release = resolve)));
  const x = vec(1, 2);
  const y = add(x, 1);
  const reading = y.array();
  x.dispose();
  y.dispose();
  release();
  expect(await reading).toEqual([2, 3]);
  expect((await spy.device).memory().buffers).toBe(0);
});

test('the vjp of a value outlives the assignment of what it was computed from', async () => {
  spyDevice();
  const w = vec(2, 3);
  const { value, vjp: pull } = vjp((x: Tensor) => mul(x, x), w);
  expect(await value.array()).toEqual([4, 9]);
  w.assign(add(vec(0, 0), 1));
  await w.data();
  const [gradient] = pull(vec(1, 1));
  expect(await gradient!.array()).toEqual([4, 6]);
});
