// Derivatives of the user's, both ways, with one or several results, and under every other transform.

import { beforeAll, describe, expect, test } from 'vitest';
import * as sn from '../../../src/index.ts';

beforeAll(() => sn.setDevice('interpreter'));

type T = sn.Tensor;
const x = (): T => sn.tensor([1, 2]);

describe('customJvp', () => {
  // d(2x) is said to be 3·dx, so that the rule shows.
  const tripled = sn.customJvp(
    (y) => y.mul(2),
    (_, [t], value) => t!.mul(3).add(value.mul(0)),
  );

  test('goes forwards, and backwards by its transpose', async () => {
    expect(await tripled(x()).array()).toEqual([2, 4]);
    expect(await sn.jvp(tripled, [x()], [sn.tensor([1, 10])]).tangent.array()).toEqual([3, 30]);
    expect(
      await sn
        .grad((y: T) => tripled(y).sum())(x())
        .array(),
    ).toEqual([3, 3]);
    const leaf = x().requiresGrad_();
    tripled(leaf).sum().backward();
    expect(await leaf.grad!.array()).toEqual([3, 3]);
  });

  test('goes further forwards and backwards: f of its value and arguments', async () => {
    // y = x² with dy = 2·x·dx
    const square = sn.customJvp(
      (y) => y.mul(y),
      ([y], [t]) => y!.mul(t!).mul(2),
    );
    const f = (y: T): T => square(y).mul(y).sum();
    expect(await sn.hessian(f)(x()).array()).toEqual([
      [6, 0],
      [0, 12],
    ]);
    expect(
      await sn
        .grad((y: T) => sn.grad(f)(y).sum())(x())
        .array(),
    ).toEqual([6, 12]);
    const each = sn.vmap(sn.grad(f))(sn.stack([x(), x().mul(2)]));
    expect(await each.array()).toEqual([
      [3, 12],
      [12, 48],
    ]);
    const outer = sn.grad((y: T) => sn.vmap(square)(y).sum())(sn.stack([x(), x()]));
    expect(await outer.array()).toEqual([
      [2, 4],
      [2, 4],
    ]);
    const along = sn.jvp((y: T) => sn.vmap(square)(y), [sn.stack([x(), x()])], [sn.ones([2, 2])]);
    expect(await along.tangent.array()).toEqual([
      [2, 4],
      [2, 4],
    ]);
  });

  test('takes several arguments, and gives several results', async () => {
    const both = sn.customJvp(
      (a, b) => ({ product: a.mul(b), rest: [a] }),
      ([a, b], [da, db]) => ({ product: a!.mul(db!).add(da!.mul(b!)).mul(10), rest: [da!.mul(5)] }),
    );
    const { tangent } = sn.jvp(both, [x(), x()], [sn.ones([2]), sn.zeros([2])]);
    expect(await tangent.product.array()).toEqual([10, 20]);
    expect(await tangent.rest[0]!.array()).toEqual([5, 5]);
    const g = sn.grad((a: T, b: T) => both(a, b).product.add(both(a, b).rest[0]!).sum(), { argnums: [0, 1] });
    const [da, db] = g(x(), sn.tensor([3, 4]));
    expect([await da.array(), await db.array()]).toEqual([
      [35, 45],
      [10, 20],
    ]);
  });

  test('refuses what is not linear, and tangents unlike the result', () => {
    const bent = sn.customJvp(
      (y) => y,
      (_, [t]) => t!.mul(t!),
    );
    expect(() => sn.grad((y: T) => bent(y).sum())(x())).toThrow(/not linear in the tangents/);
    const short = sn.customJvp(
      (y) => y,
      (_, [t]) => t!.sum(),
    );
    expect(() => sn.jvp(short, [x()], [x()])).toThrow(/the result is f32\[2\], but its tangent f32\[\]/);
  });
});

describe('customVjp with several results', () => {
  let calls = 0;
  const parts = sn.customVjp(
    (y) => [y.mul(2), { sum: y.sum() }] as const,
    ([g, { sum }], [y], [, value]) => {
      calls += 1;
      // Joint: the norm of both cotangents, which no sum of single ones gives.
      return [
        sn
          .sqrt(g.pow(2).sum().add(sum.pow(2)))
          .mul(y!)
          .add(value.sum.mul(0)),
      ];
    },
  );

  test('calls the rule once, with the cotangents of all of them', async () => {
    const f = (y: T): T => {
      const [twice, { sum }] = parts(y);
      return twice.select(0, 0).mul(3).add(sum.mul(4));
    };
    calls = 0;
    expect(await sn.grad(f)(x()).array()).toEqual([5, 10]);
    expect(calls).toBe(1);
    const leaf = x().requiresGrad_();
    f(leaf).backward();
    expect(await leaf.grad!.array()).toEqual([5, 10]);
    expect(
      await sn
        .compile((y: T) => sn.grad(f)(y))(x())
        .array(),
    ).toEqual([5, 10]);
  });

  test('has cotangent 0 where a result is not used', async () => {
    expect(
      await sn
        .grad((y: T) => parts(y)[1].sum.mul(2))(x())
        .array(),
    ).toEqual([2, 4]);
  });

  test('is mapped, and its gradient', async () => {
    const f = (y: T): T => {
      const [twice, { sum }] = parts(y);
      return twice.select(0, 0).mul(3).add(sum.mul(4));
    };
    const batch = sn.stack([x(), x().mul(2)]);
    const expected = [
      [5, 10],
      [10, 20],
    ];
    expect(await sn.vmap(sn.grad(f))(batch).array()).toEqual(expected);
    expect(
      await sn
        .grad((y: T) => sn.vmap(f)(y).sum())(batch)
        .array(),
    ).toEqual(expected);
  });
});

describe('a function with a rule', () => {
  const rooted = (a: T): T => {
    const solve = sn.customVjp(
      (y) => sn.whileLoop((z: T) => z.mul(z).sub(y!.mul(a)).abs().sum().gt(1e-6), newton(y!.mul(a)), y!),
      (g, [y], root) => [g.mul(root).div(y!.mul(2))],
    );
    return solve(x()).sum();
  };
  const newton =
    (square: T) =>
    (z: T): T =>
      z.add(square.div(z)).mul(0.5);

  test('may not capture what a derivative is taken for, of which the rule says nothing', () => {
    const refused = /customVjp: a derivative is being taken for f32\[2\], which the function captures/;
    expect(() => sn.grad(rooted)(x())).toThrow(refused);
    expect(() => sn.grad((a: T) => rooted(a.mul(2)))(x())).toThrow(refused);
    expect(() => sn.jvp(rooted, [x()], [x()])).toThrow(refused);
    expect(() =>
      sn.compile(
        sn.grad((a: T) =>
          sn
            .vmap((y: T) => rooted(a).mul(y))(x())
            .sum(),
        ),
      )(x()),
    ).toThrow(refused);
  });

  test('may not capture it in a loop, a branch or a compiled function either', () => {
    const refused = /customVjp: a derivative is being taken for f32\[\], which the function captures/;
    const scaledBy = (w: T): ((y: T) => T) =>
      sn.customVjp(
        (y) => y.mul(w),
        (g) => [g],
      );
    const ways: Record<string, (w: T) => T> = {
      scan: (w) => sn.scan((c: T, y: T) => [scaledBy(w)(y.add(c)), c], sn.tensor(0), x())[0],
      cond: (w) =>
        sn.cond(
          sn.tensor(true),
          (y: T) => scaledBy(w)(y).sum(),
          (y: T) => y.sum(),
          x(),
        ),
      compiled: (w) => sn.compile((y: T) => scaledBy(w.mul(2))(y).sum())(x()),
      'compiled, as an argument': (w) => sn.compile((y: T, v: T) => scaledBy(v)(y).sum())(x(), w),
      checkpoint: (w) => sn.checkpoint((y: T) => scaledBy(w)(y).sum())(x()),
    };
    for (const way of Object.values(ways)) {
      expect(() => sn.grad(way)(sn.tensor(2))).toThrow(refused);
      expect(() => sn.compile(sn.grad(way))(sn.tensor(2))).toThrow(refused);
      expect(() => sn.jvp(way, [sn.tensor(2)], [sn.tensor(1)])).toThrow(refused);
      expect(() => way(sn.tensor(2).requiresGrad_()).backward()).toThrow(refused);
    }
  });

  test('may capture what is detached or constant, and what it takes as an argument', async () => {
    const scale = x().requiresGrad_();
    const scaled = (a: T, own: T = a): T => {
      const times = sn.customVjp(
        (y, factor) => y.mul(factor).mul(own.detach()).mul(scale),
        (g, [y, factor]) => [g.mul(factor!), g.mul(y!)],
      );
      return times(x(), a).sum();
    };
    expect(await sn.grad(scaled)(x()).array()).toEqual([1, 2]);
    expect(
      await sn
        .grad((a: T) => scaled(a, a.mul(3).detach()))(x())
        .array(),
    ).toEqual([1, 2]);
    const known = sn.customVjp(
      (y) => y.mul(x()),
      (g) => [g],
    );
    expect(
      await sn
        .vmap(sn.grad((y: T) => known(y).sum()))(sn.stack([x(), x()]))
        .array(),
    ).toEqual([
      [1, 1],
      [1, 1],
    ]);
  });
});

test('what a rule reads is not taken from what a loop has kept: second derivatives through a checkpoint', async () => {
  // Σ (running sum)², in a loop: the backward pass keeps sums of the forward pass.
  const running = (y: T): T => y.cumsum(0).square().sum();
  const looped =
    (f: (y: T) => T) =>
    (y: T): T =>
      sn.scan((c: T, at: T) => [c.add(f(at.mul(c))).sin(), c], sn.tensor(0.5), sn.stack([y, y.mul(2)]))[0];
  const direction = sn.tensor([0.3, -1]);
  const curvature = async (f: (y: T) => T): Promise<number[]> => [
    ...(await sn.hvp(looped(f), [sn.tensor([0.4, 0.7])], [direction]).hvp[0].data()),
  ];
  const expected = (await curvature(running)).map((value) => expect.closeTo(value, 4) as unknown);
  expect(await curvature(sn.checkpoint(running))).toEqual(expected);
  const ruled = sn.customVjp(
    (y) => running(y!),
    (g, [y]) => [sn.grad(running)(y!).mul(g)],
  );
  expect(await curvature(ruled)).toEqual(expected);
});

test('a rule that takes the derivative of a checkpoint is linear, and goes forwards', async () => {
  const cube = (y: T): T => y.mul(y).mul(y);
  const ruled = sn.customVjp(
    (y) => cube(y!),
    (g, [y]) => [sn.vjp(sn.checkpoint(cube), y!).vjp(g)[0]],
  );
  expect(await sn.jvp(ruled, [x()], [sn.tensor([1, 10])]).tangent.array()).toEqual([3, 120]);
  const total = (y: T): T => ruled(y).sum();
  expect(await sn.hvp(total, [x()], [sn.tensor([1, 10])]).hvp[0].array()).toEqual([6, 120]);
  expect(
    await sn
      .compile((y: T) => sn.jvp(ruled, [y], [y]).tangent)(x())
      .array(),
  ).toEqual([3, 24]);
});

test('a rule that is a loop is linear where the cotangent only goes around with the rest', async () => {
  const ruled = sn.customVjp(
    (y) => y!.mul(y!),
    (g, [y]) => {
      const turn = (_: T, [c, k]: readonly [T, T]): readonly [T, T] => [c.mul(k).div(k), k.add(y!)];
      return [sn.foriLoop(0, 3, turn, [g, y!])[0].mul(y!).mul(2)];
    },
  );
  expect(await sn.jvp(ruled, [x()], [sn.tensor([1, 10])]).tangent.array()).toEqual([2, 40]);
  expect(await sn.hvp((y: T) => ruled(y).sum(), [x()], [sn.tensor([1, 10])]).hvp[0].array()).toEqual([2, 20]);
});

describe('a rule that iterates until it converges', () => {
  // z = cos(x·z)·sin(w), and the cotangent u = g + u·∂z/∂z of its equation.
  const step = (z: T, y: T, w: T): T => sn.cos(z.mul(y)).mul(w.sin());
  const settle = (f: (z: T) => T, start: T): T =>
    sn.whileLoop(
      ({ left }) => left.gt(1e-13),
      ({ z }) => ({ z: f(z), left: f(z).sub(z).abs().max() }),
      { z: start, left: sn.ones([], { dtype: 'f64' }) },
    ).z;
  const solved = sn.customVjp(
    (y, w) => settle((z) => step(z, y!, w!), sn.zerosLike(y!)),
    (g, [y, w], z) => {
      const back = sn.vjp((at: T) => step(at, y!, w!), z).vjp;
      const u = settle((at) => g.add([back(at)].flat()[0]!), g);
      return [sn.vjp((a: T, c: T) => step(z, a, c), y!, w!).vjp(u)].flat();
    },
  );
  const unrolled = (y: T, w: T): T => {
    let z = sn.zerosLike(y);
    for (let i = 0; i < 50; i++) z = step(z, y, w);
    return z;
  };
  const at = (): T => sn.tensor([0.3, -0.8], { dtype: 'f64' });
  const half = (): T => sn.tensor(0.5, { dtype: 'f64' });
  const repeated =
    (f: typeof unrolled) =>
    (w: T): T =>
      sn.scan((c: T) => [f(c, w), c.sum()], at(), undefined, { length: 2 })[0].sum();

  test('says nothing forwards, where the derivative of the function stands in', async () => {
    const along = async (f: typeof unrolled): Promise<number[]> =>
      [
        ...(await sn.jvp((w: T) => f(at(), w), [half()], [half()]).tangent.data()),
        await sn
          .hessian((w: T) => f(at(), w).square().sum())(half())
          .item(),
        // In the body of the loop, sin(w) is a parameter.
        await sn.jvp(repeated(f), [half()], [half()]).tangent.item(),
        await sn.hessian(repeated(f))(half()).item(),
      ].map((value) => Number(Number(value).toFixed(9)));
    expect(await along(solved)).toEqual(await along(unrolled));
  });

  test('refuses what the function captures, forwards as well', () => {
    const kept = (w: T): T =>
      sn.customVjp(
        (y) => y.mul(w),
        (g) => [settle((z) => z.mul(0.5), g)],
      )(at());
    expect(() => sn.jvp(kept, [half()], [half()])).toThrow(/which the function captures/);
  });
});

test('a rule with a loop in a loop is linear where tangents go around with values', async () => {
  const inner = (y: T): T => sn.scan((c: T) => [c, c.sin()], y, undefined, { length: 2 })[1].select(0, 1);
  const looped = (y: T): T => sn.foriLoop(0, 2, (_, [c]) => [c, inner(c)] as const, [y, sn.zerosLike(y)])[1];
  const ruled = sn.customJvp(
    (y) => looped(y!),
    ([y], [t]) => sn.jvp(looped, [y!], [t!]).tangent,
  );
  const slope = await sn
    .grad((y: T) => ruled(y).sum())(x())
    .data();
  slope.forEach((value, i) => expect(value).toBeCloseTo(Math.cos(i + 1), 5));
});
