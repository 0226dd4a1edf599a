// whileLoop as users write it: iterations, what it hands on, tangents, batches, and errors.

import { afterAll, beforeAll, describe, expect, test } from 'vitest';

import * as sn from '../../src/index.ts';
import { everyDevice } from '../support/devices.ts';

type Tensor = sn.Tensor;
const list = async (x: Tensor): Promise<number[]> => Array.from(await x.data(), Number);
const below = (x: Tensor): Tensor => x.lt(100);

describe.each(everyDevice)('whileLoop on %s', (device) => {
  beforeAll(() => sn.setDevice(device));
  afterAll(() => sn.setDevice('interpreter'));

  test('iterations until the condition fails', async () => {
    const steps = sn.compile((from: Tensor) =>
      sn.whileLoop(
        ({ n }) => n.ne(1),
        ({ n, count }) => ({
          n: sn.where(sn.remainder(n, 2).eq(0), n.floorDivide(2), n.mul(3).add(1)),
          count: count.add(1),
        }),
        { n: from, count: sn.tensor(0, { dtype: 'i32' }) },
      ),
    );
    const found = [];
    for (const from of [27, 1, 6])
      found.push(...(await list(steps(sn.tensor(from, { dtype: 'i32' })).count)));
    expect(found).toEqual([111, 0, 8]);
  });

  test('carries that are read whole, exchanged, and handed on from one to another', async () => {
    const w = sn.tensor([
      [1, 1],
      [0, 2],
    ]);
    for (const most of [0, 1, 2, 5, 6, 7, 50]) {
      const found = sn.whileLoop(
        ({ h }) => h.sum().lt(100),
        ({ h, last, first }) => ({ h: h.matmul(w), last: h, first: last, still: first }),
        { h: sn.ones([1, 2]), last: sn.zeros([1, 2]), first: sn.zeros([1, 2]), still: sn.zeros([1, 2]) },
        { maxTurns: most },
      );
      let [h, last, first, still] = [
        [1, 1],
        [0, 0],
        [0, 0],
        [0, 0],
      ];
      for (let turn = 0; turn < most && h[0]! + h[1]! < 100; turn++)
        [h, last, first, still] = [[h[0]!, h[0]! + 2 * h[1]!], h, last, first];
      const all = await Promise.all([found.h, found.last, found.first, found.still].map(list));
      expect(all).toEqual([h, last, first, still]);
    }
  });

  test('a loop in a loop, and in a branch of one', async () => {
    const found = sn.whileLoop(
      ({ sum }) => sum.lt(50),
      ({ i, sum }) => ({
        i: i.add(1),
        sum: sn.cond(
          sn.remainder(i, 2).eq(0),
          (s, n) =>
            sn.whileLoop(
              (x) => x.lt(n.mul(5)),
              (x) => x.add(2),
              s,
            ),
          (s) => s.add(1),
          sum,
          i,
        ),
      }),
      { i: sn.tensor(0, { dtype: 'i32' }), sum: sn.tensor(0, { dtype: 'i32' }) },
    );
    let [i, sum] = [0, 0];
    for (; sum < 50; i++) {
      if (i % 2 === 0) while (sum < 5 * i) sum += 2;
      else sum += 1;
    }
    expect([await list(found.i), await list(found.sum)]).toEqual([[i], [sum]]);
  });

  test('tangents go forwards', async () => {
    const { value, tangent } = sn.jvp(
      (x: Tensor) => sn.whileLoop(below, (y) => y.mul(x), x),
      [sn.tensor(3)],
      [sn.tensor(1)],
    );
    expect([await list(value), await list(tangent)]).toEqual([[243], [5 * 81]]);
  });

  test('in a batch each example ends by itself', async () => {
    const powers = sn.vmap((n: Tensor) => sn.whileLoop(below, (x) => x.mul(n), n))(
      sn.tensor([2, 3, 10, 200]),
    );
    expect(await list(powers)).toEqual([128, 243, 100, 200]);
    const shared = sn.vmap(
      (x: Tensor) =>
        sn.whileLoop(
          ({ i }) => i.lt(3),
          ({ i, y }) => ({ i: i.add(1), y: y.mul(2) }),
          { i: sn.tensor(0), y: x },
        ).y,
    )(sn.tensor([1, 2]));
    expect(await list(shared)).toEqual([8, 16]);
    const root = (a: Tensor): Tensor =>
      sn.whileLoop(
        (x) => x.mul(x).sub(a).abs().gt(a.mul(1e-6)),
        (x) => x.add(a.div(x)).mul(0.5),
        a,
        { maxTurns: 60 },
      );
    const { value, tangent } = sn.jvp(sn.vmap(root), [sn.tensor([1, 4, 900])], [sn.ones([3])]);
    const [roots, slopes] = [await list(value), await list(tangent)];
    [1, 2, 30].forEach((right, i) => expect(roots[i]).toBeCloseTo(right, 4));
    // Of a start that is the root already no iteration is made: there it is the identity.
    [1, 1 / 4, 1 / 60].forEach((right, i) => expect(slopes[i]).toBeCloseTo(right, 3));
  });
});

test('what it refuses', () => {
  const one = sn.tensor(1);
  const same = (x: Tensor): Tensor => x;
  expect(() => sn.grad((x: Tensor) => sn.whileLoop(below, (y) => y.mul(2), x))(one)).toThrow(
    /whileLoop: a loop that ends by its condition has no gradient backwards[^]*try: scan or foriLoop/,
  );
  expect(() => sn.whileLoop(below, (x) => x.expand([2]), one)).toThrow(
    /whileLoop: the carry is f32\[\] before an iteration and f32\[2\] after it/,
  );
  expect(() => sn.whileLoop(below, (x) => x.cast('i32'), one)).toThrow(
    /f32\[\] before an iteration and i32\[\] after/,
  );
  expect(() => sn.whileLoop((x) => x, same, one)).toThrow(
    /whileLoop: the condition must give a bool tensor of rank 0, got f32\[\]/,
  );
  expect(() => sn.whileLoop(() => true as never, same, one)).toThrow(
    /must give a bool tensor of rank 0, got true/,
  );
});
