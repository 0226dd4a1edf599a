// cond and switchCase as users write them: which branch runs, derivatives, batches, and errors.

import { afterAll, beforeAll, describe, expect, test } from 'vitest';

import * as sn from '../../src/index.ts';
import { everyDevice } from '../support/devices.ts';

type Tensor = sn.Tensor;
const list = async (x: Tensor): Promise<number[]> => Array.from(await x.data(), Number);
const close = (found: readonly number[], expected: readonly number[]): void => {
  expect(found).toHaveLength(expected.length);
  found.forEach((value, i) => expect(value).toBeCloseTo(expected[i]!, 4));
};

describe.each(everyDevice)('branches on %s', (device) => {
  beforeAll(() => sn.setDevice(device));
  afterAll(() => sn.setDevice('interpreter'));
  const x = sn.tensor([1, 2, 3]);
  const pick = (p: Tensor, of: Tensor): Tensor =>
    sn.cond(
      p,
      (a) => a.mul(2),
      (a) => a.neg(),
      of,
    );

  test('the branch that the predicate names', async () => {
    const compiled = sn.compile(pick);
    for (let again = 0; again < 2; again++) {
      expect(await list(compiled(sn.tensor(true), x))).toEqual([2, 4, 6]);
      expect(await list(compiled(sn.tensor(false), x))).toEqual([-1, -2, -3]);
    }
    expect(await list(pick(x.sum().gt(5), x))).toEqual([2, 4, 6]);
    expect(
      await list(
        sn.cond(
          false,
          () => 1,
          () => 2,
        ),
      ),
    ).toEqual([2]);
  });

  test('trees, several dtypes, and values from outside', async () => {
    const w = sn.tensor([
      [1, 2],
      [3, 4],
    ]);
    const both = (p: Tensor): { y: Tensor; n: Tensor; b: Tensor; small: Tensor } =>
      sn.cond(
        p,
        ({ h }) => ({
          y: h.matmul(w),
          n: sn.tensor(3, { dtype: 'i32' }),
          b: h.gt(1),
          small: h.cast('u8'),
        }),
        ({ h }) => ({
          y: h.sub(w.sum()),
          n: sn.tensor(4, { dtype: 'i32' }),
          b: h.lt(1),
          small: h.mul(5).cast('u8'),
        }),
        { h: sn.tensor([1, 2]) },
      );
    const yes = both(sn.tensor(true));
    expect([await list(yes.y), await list(yes.n), await list(yes.b), await list(yes.small)]).toEqual([
      [7, 10],
      [3],
      [0, 1],
      [1, 2],
    ]);
    const no = both(sn.tensor(false));
    expect([await list(no.y), await list(no.n), await list(no.b), await list(no.small)]).toEqual([
      [-9, -8],
      [4],
      [0, 0],
      [5, 10],
    ]);
  });

  test('work that waits for a branch keeps its order', async () => {
    const p = sn.tensor([1, 0, 1, 1, 0]);
    let y = sn.ones([4]);
    for (let i = 0; i < 5; i++) {
      y = pick(p.select(0, i).ne(0), y).add(i);
      // Evaluated one by one, so that runs wait for one another.
      void y.data();
    }
    const expected = [1, 0, 1, 1, 0].reduce((sum, taken, i) => (taken ? 2 * sum : -sum) + i, 1);
    expect(await list(y)).toEqual([expected, expected, expected, expected]);
  });

  test('the gradient is that of the branch taken, and of it alone', async () => {
    const w = sn.tensor([1, -1, 4]);
    const f =
      (taken: boolean) =>
      (v: Tensor, u: Tensor): Tensor =>
        sn
          .cond(
            v.sum().gt(taken ? 0 : 100),
            (a) => a.mul(u).sin(),
            // Where it is not taken, its square root of negative numbers must not make a NaN.
            (a) => a.sub(4).neg().sqrt().add(a.matmul(a)),
            v,
          )
          .sum();
    const [dx, dw] = sn.grad(f(true), { argnums: [0, 1] })(x, w);
    close(await list(dx), [Math.cos(1), -Math.cos(2), 4 * Math.cos(12)]);
    close(await list(dw), [Math.cos(1), 2 * Math.cos(2), 3 * Math.cos(12)]);
    const [ex, ew] = sn.grad(f(false), { argnums: [0, 1] })(x, w);
    close(
      await list(ex),
      [1, 2, 3].map((v) => 6 * v - 0.5 / Math.sqrt(4 - v)),
    );
    expect(await list(ew)).toEqual([0, 0, 0]);
    const bad = sn.grad((v: Tensor) =>
      sn
        .cond(
          v.sum().gt(0),
          (a) => a.mul(a),
          (a) => a.sub(9).sqrt(),
          v,
        )
        .sum(),
    );
    expect(await list(bad(x))).toEqual([2, 4, 6]);
    const { tangent } = sn.jvp(f(true), [x, w], [sn.ones([3]), sn.zeros([3])]);
    close(await list(tangent), [Math.cos(1) - Math.cos(2) + 4 * Math.cos(12)]);
    const second = sn.grad((v: Tensor) =>
      sn
        .grad((u: Tensor) => f(true)(u, w))(v)
        .sum(),
    )(x);
    close(await list(second), [-Math.sin(1), Math.sin(2), -16 * Math.sin(12)]);
  });

  test('a batch of predicates, and a batch of operands', async () => {
    const rows = sn.tensor([
      [1, 2],
      [3, 4],
      [5, 6],
    ]);
    const mixed = sn.vmap(pick)(sn.tensor([true, false, true]), rows);
    expect(await list(mixed)).toEqual([2, 4, -3, -4, 10, 12]);
    const shared = sn.vmap((v: Tensor) => pick(x.sum().lt(0), v))(rows);
    expect(await list(shared)).toEqual([-1, -2, -3, -4, -5, -6]);
    const slopes = sn.vmap(
      sn.grad((v: Tensor) =>
        sn
          .cond(
            v.sum().gt(5),
            (a) => a.mul(a),
            (a) => a.sqrt(),
            v,
          )
          .sum(),
      ),
    )(rows);
    close(await list(slopes), [0.5, 0.5 / Math.SQRT2, 6, 8, 10, 12]);
  });

  test('switchCase takes indices that are too low or too high to the ends', async () => {
    const found = [];
    for (const i of [-3, 0, 1, 2, 9]) {
      const made = sn.switchCase(
        sn.tensor(i, { dtype: 'i32' }),
        [(a) => a, (a) => a.add(10), (a) => a.mul(100)],
        sn.tensor(2),
      );
      found.push(...(await list(made)));
    }
    expect(found).toEqual([2, 2, 12, 200, 200]);
    expect(await list(sn.switchCase(1, [() => sn.tensor(1), () => sn.tensor(5)]))).toEqual([5]);
    const [only] = [sn.switchCase(sn.tensor(4, { dtype: 'i32' }), [(a) => a.add(1)], sn.tensor(2))];
    expect(await list(only)).toEqual([3]);
  });
});

describe('what branches refuse', () => {
  const p = sn.tensor(true);
  const ones = sn.ones([3]);
  test('results that differ', () => {
    expect(() =>
      sn.cond(
        p,
        () => ones,
        () => sn.ones([4]),
      ),
    ).toThrow(/cond: onTrue gives f32\[3\], and onFalse gives f32\[4\]/);
    expect(() =>
      sn.cond(
        p,
        () => ({ a: ones }),
        () => ({ a: ones.cast('f16') as unknown as typeof ones }),
      ),
    ).toThrow(
      /cond: onTrue gives f32\[3\] at \.a, and onFalse gives f16\[3\][^]*try: return \.cast\('f32'\)/,
    );
    expect(() =>
      sn.cond(
        p,
        () => [ones, ones] as unknown,
        () => ones,
      ),
    ).toThrow(/cond: onTrue gives a tree of \{\[0\], \[1\]\}, and onFalse one of \{a tensor\}/);
    expect(() =>
      sn.switchCase(sn.tensor(0, { dtype: 'i32' }), [() => ones, () => ones, () => sn.tensor(1)]),
    ).toThrow(/switchCase: branch 0 gives f32\[3\], and branch 2 gives f32\[\]/);
  });
  test('predicates and indices of other types', () => {
    const same = (): Tensor => ones;
    expect(() => sn.cond(sn.tensor(1), same, same)).toThrow(
      /cond: the predicate must be a bool, got f32\[\]/,
    );
    expect(() => sn.cond(ones.gt(0), same, same)).toThrow(
      /cond: the predicate must be of rank 0, got bool\[3\]/,
    );
    expect(() => sn.switchCase(sn.tensor(1), [same])).toThrow(/switchCase: the index must be an integer/);
    expect(() => sn.switchCase(0, [])).toThrow(/switchCase: there are no branches/);
  });
  test('branches with effects', () => {
    const state = sn.zeros([3]);
    const same = (): Tensor => ones;
    expect(() => sn.cond(p, () => sn.rand([3]), same)).toThrow(/cond: a branch draws random numbers/);
    expect(() => sn.cond(p, () => (state.assign(ones), ones), same)).toThrow(
      /cond: the branch assigns to f32\[3\]/,
    );
  });
});
