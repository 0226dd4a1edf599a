// Donation where memory has several owners: equal pending values are computed once, views and values handed through stand on
// one buffer, and one tensor may arrive by several ways.

import { afterAll, describe, expect, test } from 'vitest';
import { reshape } from '../../../src/ir/build.ts';
import { compile } from '../../../src/tensor/compile/compile.ts';
import { device, setDevice, synchronize } from '../../../src/tensor/device.ts';
import { compileCount } from '../../../src/tensor/evaluate/executable.ts';
import { record } from '../../../src/tensor/record.ts';
import { noGrad, valueAndGrad } from '../../../src/tensor/derivative/transform.ts';
import type { Tensor } from '../../../src/tensor/tensor.ts';
import { add, fill, mul, spyDevice, sub, sum, vec } from '../support.ts';
import { everyDevice } from '../../support/devices.ts';

function column(x: Tensor): Tensor {
  return record([x], (b, [node]) => reshape(b, node!, [x.size, 1]));
}

const plusOneAndTwo = (a: Tensor, b: Tensor): [Tensor, Tensor] => [add(a, 1), add(b, 2)];

afterAll(async () => {
  setDevice('webgpu:software');
  await synchronize();
  (await device()).destroy();
});

describe.each(everyDevice)('on %s, memory that something else stands on is spared', (name) => {
  test('moments that start as the same zeros', async () => {
    setDevice(name);
    const loss = (p: Tensor, x: Tensor): Tensor => sum(mul(mul(p, x), mul(p, x)));
    const step = (p: Tensor, m: Tensor, v: Tensor, x: Tensor): [Tensor, Tensor, Tensor] => {
      const { grad: g } = valueAndGrad(loss)(p, x);
      const [mean, square] = [add(mul(m, 0.5), g), add(mul(v, 0.25), mul(g, g))];
      return [sub(p, mul(add(mean, square), 0.01)), mean, square];
    };
    const fast = compile(step, { donate: [0, 1, 2] });
    const [one, other] = [fast, step].map((run) => {
      let state: [Tensor, Tensor, Tensor] = [vec(1, 2, 3, 4), fill(4, 0), fill(4, 0)];
      for (let i = 1; i <= 4; i++) state = run(...state, vec(0.1 * i, 0.2, 0.3, 0.4));
      return state;
    });
    for (const [i, x] of one!.entries()) {
      const [got, expected] = [await x.data(), await other![i]!.data()];
      expected.forEach((value, k) => expect(got[k]).toBeCloseTo(Number(value), 5));
    }
  });

  test('two donated arguments that are one value', async () => {
    setDevice(name);
    const [a, b] = compile(plusOneAndTwo, { donate: [0, 1] })(fill(2, 5), fill(2, 5));
    expect(await a.array()).toEqual([6, 6]);
    expect(await b.array()).toEqual([7, 7]);
  });

  test('one tensor at two donated places', async () => {
    setDevice(name);
    const x = add(vec(1, 2), 0);
    const [a, b] = compile(plusOneAndTwo, { donate: [0, 1] })(x, x);
    expect(await a.array()).toEqual([2, 3]);
    expect(await b.array()).toEqual([3, 4]);
    expect(() => add(x, 1)).toThrow('was donated');
  });

  test('a donated tensor that is another argument too', async () => {
    setDevice(name);
    const x = vec(1, 2);
    const [a, b] = compile(plusOneAndTwo, { donate: [0] })(x, x);
    expect(await a.array()).toEqual([2, 3]);
    expect(await b.array()).toEqual([3, 4]);
  });

  test('a donated tensor that the function captures too', async () => {
    setDevice(name);
    const w = add(vec(1, 2), 0);
    const f = compile((x: Tensor) => [add(x, 1), mul(w, 3)] as const, { donate: [0] });
    const [a, b] = f(w);
    expect(await a.array()).toEqual([2, 3]);
    expect(await b.array()).toEqual([3, 6]);
    expect(() => f(a)).toThrow('was donated');
  });

  test('a captured tensor with the value of the donated one', async () => {
    setDevice(name);
    const [m, w] = [fill(3, 2), fill(3, 2)];
    const f = compile((x: Tensor) => [add(x, 1), mul(w, 3)] as const, { donate: [0] });
    for (let x = m, i = 1; i <= 3; i++) {
      const [next, scaled] = f(x);
      x = next;
      expect(await x.array()).toEqual([2 + i, 2 + i, 2 + i]);
      expect(await scaled.array()).toEqual([6, 6, 6]);
    }
    expect(await w.array()).toEqual([2, 2, 2]);
  });

  test.each(['pending', 'computed'])('another tensor with the same value, %s before', async (state) => {
    setDevice(name);
    const [m, v] = [fill(3, 2), fill(3, 2)];
    const [p, q] = [add(vec(1), 1), add(vec(1), 1)];
    if (state === 'computed') await Promise.all([m, v, p, q].map((x) => x.data()));
    const f = compile((x: Tensor) => add(x, 1), { donate: [0] });
    expect(await f(m).array()).toEqual([3, 3, 3]);
    expect(await v.array()).toEqual([2, 2, 2]);
    expect(await f(p).array()).toEqual([3]);
    expect(await q.array()).toEqual([2]);
    expect(await f(v).array()).toEqual([3, 3, 3]);
  });

  test('an argument that was detached before', async () => {
    setDevice(name);
    const x = add(vec(1, 2), 0);
    const kept = x.detach();
    const moved = compile((a: Tensor) => add(a, 1), { donate: [0] })(x);
    expect(await moved.array()).toEqual([2, 3]);
    expect(await kept.array()).toEqual([1, 2]);
  });

  test('an argument that an earlier result is a view of', async () => {
    setDevice(name);
    const x = vec(1, 2);
    const view = compile(column)(x);
    const moved = compile((a: Tensor) => add(a, 1), { donate: [0] })(x);
    expect(await moved.array()).toEqual([2, 3]);
    expect(await view.array()).toEqual([[1], [2]]);
  });

  test('an argument whose equal is handed through', async () => {
    setDevice(name);
    const f = compile((a: Tensor, b: Tensor) => [a, add(b, 2)] as const, { donate: [1] });
    const [kept, moved] = f(fill(2, 5), fill(2, 5));
    expect(await kept.array()).toEqual([5, 5]);
    expect(await moved.array()).toEqual([7, 7]);
  });

  test('an argument whose old value is still being read', async () => {
    setDevice(name);
    const x = add(vec(1, 2), 0);
    const reading = x.array();
    const moved = compile((a: Tensor) => add(a, 1), { donate: [0] })(x);
    expect(await moved.array()).toEqual([2, 3]);
    expect(await reading).toEqual([1, 2]);
  });

  test('an argument that the function assigns to', async () => {
    setDevice(name);
    const f = compile(
      (x: Tensor) => {
        const doubled = mul(x, 2);
        noGrad(() => x.assign(add(x, 1)));
        return doubled;
      },
      { donate: [0] },
    );
    const x = add(vec(1, 2), 0);
    for (let i = 0; i < 3; i++) expect(await f(x).array()).toEqual([2 * (1 + i), 2 * (2 + i)]);
    expect(await x.array()).toEqual([4, 5]);
  });
});

test('a call that fails takes nothing', async () => {
  setDevice('interpreter');
  const state = vec(1, 1);
  const f = compile(
    (x: Tensor): Tensor => {
      state.grad = mul(x, 2);
      return add(x, 1);
    },
    { donate: [0] },
  );
  expect(await f(vec(1, 2)).array()).toEqual([2, 3]);
  state.dispose();
  const x = vec(3, 4);
  expect(() => f(x)).toThrow('was disposed');
  expect(await x.array()).toEqual([3, 4]);
});

test('sharing costs one copy: the next call donates, by the same program', async () => {
  const spy = spyDevice();
  const step = compile(plusOneAndTwo, { donate: [0, 1] });
  const before = compileCount();
  let [a, b] = step(fill(2, 5), fill(2, 5));
  await a.data();
  const { allocate, load } = spy.count;
  for (let i = 0; i < 5; i++) [a, b] = step(a, b);
  expect(await a.array()).toEqual([11, 11]);
  expect(await b.array()).toEqual([17, 17]);
  expect(spy.count.allocate).toBe(allocate);
  expect(spy.count.load).toBe(load);
  // The zeros, and the step.
  expect(compileCount() - before).toBe(2);
});
