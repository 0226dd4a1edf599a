// `vmap` by its public face: axes, trees, random numbers, what is shared, and what is refused; Jacobians, which it makes.

import { beforeAll, describe, expect, test } from 'vitest';
import * as sn from '../../../src/index.ts';
import { BatchNorm, Linear } from '../../../src/nn/index.ts';

beforeAll(() => sn.setDevice('interpreter'));

type T = sn.Tensor;
const x = (): T =>
  sn.tensor([
    [1, 2],
    [3, 4],
    [5, 6],
  ]);

describe('axes', () => {
  test('go in and come out where it is said', async () => {
    const f = (v: T, w: T): T => v.mul(w);
    expect(
      await sn
        .vmap(f, { inAxes: [1, null] })(x(), sn.tensor([1, 10, 100]))
        .array(),
    ).toEqual([
      [1, 30, 500],
      [2, 40, 600],
    ]);
    const out = sn.vmap((v: T) => v.mul(10), { outAxes: 1 })(x());
    expect(await out.array()).toEqual([
      [10, 30, 50],
      [20, 40, 60],
    ]);
    const last = sn.vmap((v: T) => v.sum(), { inAxes: -1, outAxes: -1 })(x());
    expect(await last.array()).toEqual([9, 12]);
  });

  test('may be empty: results of no examples have the shapes of the others', async () => {
    const [none, shared] = [
      sn.zeros([0, 2, 2]),
      sn.tensor([
        [2, 0],
        [1, 3],
      ]),
    ];
    const kernel = sn.ones([1, 2, 1]);
    const functions: Record<string, (v: T) => T> = {
      'matrices of each': (v) => sn.linalg.inv(v),
      'singular values': (v) => sn.linalg.svdvals(v),
      'a matrix of all': (v) => sn.linalg.solve(shared, v),
      'a triangle of all': (v) => sn.linalg.solveTriangular(shared, v),
      'rows of one table': (v) => shared.indexSelect(0, v.select(0, 0).cast('i32')),
      'places among numbers of all': (v) => sn.searchsorted(sn.tensor([1, 2]), v),
      'one kernel': (v) => sn.conv1d(v.unsqueeze(0), kernel),
    };
    for (const [name, f] of Object.entries(functions)) {
      const one = f(
        sn.tensor([
          [1, 0],
          [0, 1],
        ]),
      );
      const all = sn.vmap(f)(none);
      expect(all.shape, name).toEqual([0, ...one.shape]);
      expect(await all.array(), name).toEqual([]);
    }
  });

  test('are trees over trees', async () => {
    const f = (p: { w: T; rest: T[] }, y: T): { sum: T; all: [T] } => ({
      sum: p.w.add(p.rest[0]!).add(y),
      all: [p.w],
    });
    const inAxes = [{ w: 0, rest: null }, 1] as const;
    const outAxes = { sum: 1, all: [0] };
    const p = { w: x(), rest: [sn.tensor([100, 200])] };
    const { sum, all } = sn.vmap(f, { inAxes, outAxes })(p, sn.zeros([2, 3]));
    expect(await sum.array()).toEqual([
      [101, 103, 105],
      [202, 204, 206],
    ]);
    expect(await all[0].array()).toEqual(await x().array());
  });

  test('nest', async () => {
    // A matrix of distances by two levels.
    const far = (a: T, b: T): T => a.sub(b).abs().sum();
    const all = sn.vmap(sn.vmap(far, { inAxes: [null, 0] }), { inAxes: [0, null] });
    expect(await all(x(), x()).array()).toEqual([
      [0, 4, 8],
      [4, 0, 4],
      [8, 4, 0],
    ]);
  });

  test('of what no example changes may be null, and repeat it otherwise', async () => {
    const f = (v: T): [T, T] => [v, sn.ones([2])];
    const [, shared] = sn.vmap(f, { outAxes: [0, null] })(x());
    expect(shared.shape).toEqual([2]);
    expect(sn.vmap(f)(x())[1].shape).toEqual([3, 2]);
  });
});

describe('with derivatives', () => {
  const loss = (w: T, v: T): T => v.matmul(w).pow(2).sum();

  test('gives gradients of each example', async () => {
    const w = sn.tensor([1, -1]);
    const each = await sn
      .vmap(sn.grad(loss), { inAxes: [null, 0] })(w, x())
      .array();
    const loop = await Promise.all([0, 1, 2].map((i) => sn.grad(loss)(w, x().select(0, i)).array()));
    expect(each).toEqual(loop);
  });

  test('gives gradients of the parameters of a layer, for each example', async () => {
    const layer = new Linear(2, 1);
    const f = (m: Linear, v: T): T => m.forward(v.unsqueeze(0)).pow(2).sum();
    const grads = sn.vmap(sn.grad(f), { inAxes: [null, 0] })(layer, x());
    expect([grads.weight.shape, grads.bias!.shape]).toEqual([
      [3, 1, 2],
      [3, 1],
    ]);
    const sum = await grads.weight.sum(0).array();
    const whole = await sn
      .grad((m: Linear) => m.forward(x()).pow(2).sum())(layer)
      .weight.array();
    expect((sum as number[][])[0]![0]).toBeCloseTo((whole as number[][])[0]![0]!, 4);
  });

  test('is differentiated: by grad, backward, and through rules of the user', async () => {
    const tripled = sn.customVjp(
      (y) => y.mul(2),
      (g, [y]) => [g.mul(y!).mul(3)],
    );
    const shared = sn.tensor([2, 3]);
    const f = (y: T, s: T): T =>
      sn
        .vmap((v: T) => tripled(v).add(tripled(s)), { inAxes: 0 })(y)
        .sum();
    expect(await sn.grad(f)(x(), shared).array()).toEqual([
      [3, 6],
      [9, 12],
      [15, 18],
    ]);
    expect(await sn.grad(f, { argnums: 1 })(x(), shared).array()).toEqual([18, 27]);
    const leaf = x().requiresGrad_();
    sn.vmap((v: T) => v.mul(v).sum())(leaf)
      .sum()
      .backward();
    expect(await leaf.grad!.array()).toEqual([
      [2, 4],
      [6, 8],
      [10, 12],
    ]);
  });

  test('calls compiled functions, and is compiled', async () => {
    const fast = sn.compile((v: T) => v.mul(v).sum());
    expect(await sn.vmap(fast)(x()).array()).toEqual([5, 25, 61]);
    const whole = sn.compile((y: T) => sn.vmap(sn.grad((v: T) => fast(v)))(y));
    expect(await whole(x()).array()).toEqual([
      [2, 4],
      [6, 8],
      [10, 12],
    ]);
  });
});

describe('random numbers', () => {
  test('are those of calls one after the other', async () => {
    const f = (v: T): [T, T] => [sn.randn([3]).add(v.sum()), sn.rand([2, 3])];
    sn.manualSeed(3);
    const [a, b] = sn.vmap(f)(x());
    const after = sn.rand([4]);
    sn.manualSeed(3);
    const loop = [0, 1, 2].map((i) => f(x().select(0, i)));
    expect(await a.array()).toEqual(await sn.stack(loop.map(([one]) => one)).array());
    expect(await b.array()).toEqual(await sn.stack(loop.map(([, two]) => two)).array());
    expect(await after.array()).toEqual(await sn.rand([4]).array());
  });

  test('are those of a loop in nested maps and inside compile, too', async () => {
    const f = (v: T): T => sn.dropout(v, 0.5, { training: true } as never).add(sn.rand([]));
    const nested = sn.vmap(sn.vmap(f));
    sn.manualSeed(5);
    const mapped = await nested(x()).array();
    sn.manualSeed(5);
    const compiled = await sn
      .compile((y: T) => nested(y))(x())
      .array();
    sn.manualSeed(5);
    const rows = [0, 1, 2].map((i) => sn.stack([0, 1].map((j) => f(x().select(0, i).select(0, j)))));
    expect(mapped).toEqual(await sn.stack(rows).array());
    expect(compiled).toEqual(mapped);
  });

  test('come by keys: one for all, or one for each example', async () => {
    const f = (k: T): T => sn.withKey(k, () => sn.randn([3]).add(sn.rand([3])));
    const keys = sn.splitKey(sn.key(7), 3);
    const each = await sn.vmap(f)(keys).array();
    const loop = await sn.stack([0, 1, 2].map((i) => f(keys.select(0, i)))).array();
    expect(each).toEqual(loop);
    const shared = sn.vmap((v: T) => v.sum().add(f(sn.key(1))))(x());
    expect(await shared.sub(shared.select(0, 0)).select(1, 0).array()).toEqual([0, 4, 8]);
    // Around the map the key counts examples, as a loop inside of it would.
    const g = (v: T): T => v.add(sn.rand([2]));
    const inside = await sn.withKey(sn.key(2), () => sn.vmap(g)(x())).array();
    const looped = sn.withKey(sn.key(2), () => sn.stack([0, 1, 2].map((i) => g(x().select(0, i)))));
    expect(inside).toEqual(await looped.array());
  });

  test('are the same for all where it is said', async () => {
    sn.manualSeed(1);
    const same = await sn
      .vmap((v: T) => sn.rand([2]).add(v.mul(0)), { randomness: 'same' })(x())
      .array();
    sn.manualSeed(1);
    const one = await sn.rand([2]).array();
    expect(same).toEqual([one, one, one]);
  });
});

test('what is captured is computed once, and per-sample gradients take few kernels', () => {
  const w = sn.ones([2, 2]);
  const shared = sn.explain((y: T) => sn.vmap((v: T) => v.matmul(w.exp()))(y), x());
  expect(shared.totals.kernels).toBeLessThanOrEqual(2);
  const loss = (p: T, v: T): T => v.matmul(p).tanh().pow(2).sum();
  const each = sn.explain((p: T, y: T) => sn.vmap(sn.grad(loss), { inAxes: [null, 0] })(p, y), w, x());
  const plain = sn.explain((p: T, y: T) => sn.grad(loss)(p, y), w, x());
  expect(each.totals.kernels).toBeLessThanOrEqual(1.5 * plain.totals.kernels);
});

describe('refuses', () => {
  const outside = sn.tensor([1, 2]);
  test.each<readonly [string, () => unknown, RegExp]>([
    ['an axis that is absent', () => sn.vmap((v: T) => v, { inAxes: 2 })(x()), /argument 0 has no axis 2/],
    [
      'a number as an axis',
      () => sn.vmap((v: T) => v)(sn.tensor(1)),
      /no axis 0 to map over: its shape is \[\]/,
    ],
    [
      'sizes that differ',
      () => sn.vmap((v: T, w: T) => v.mul(w))(x(), sn.ones([2])),
      /3 example\(s\) along axis 0 of argument 0, f32\[3,2\], and 2 example\(s\) along axis 0 of argument 1/,
    ],
    [
      'nothing to map',
      () => sn.vmap((v: T) => v, { inAxes: null })(x()),
      /no tensor among the arguments is mapped/,
    ],
    ['axes unlike the arguments', () => sn.vmap((v: T) => v, { inAxes: [0, 1] })(x()), /inAxes must be like/],
    [
      'a result that is no tensor',
      () => sn.vmap((v: T) => String(v.shape))(x()),
      /the result must be a tensor, got '2'/,
    ],
    [
      'a result that differs for null',
      () => sn.vmap((v: T) => v, { outAxes: null })(x()),
      /differs between examples/,
    ],
    [
      'an absent axis of a result',
      () => sn.vmap((v: T) => v, { outAxes: 3 })(x()),
      /the result has no axis 3/,
    ],
    [
      'assigning outside',
      () => sn.vmap((v: T) => (outside.assign(v), v))(x()),
      /assign: the function that vmap maps cannot change f32\[2\]/,
    ],
    [
      'running statistics',
      () => sn.vmap((v: T) => norm.forward(v.reshape([2, 1])))(x()),
      /cannot change f32\[1\], which is outside/,
    ],
    ['promises', () => sn.vmap(async (v: T) => Promise.resolve(v))(x()), /asynchronous/],
  ])('%s', (_, call, message) => expect(call).toThrow(message));

  const norm = new BatchNorm(1);

  test('reading what exists only inside', async () => {
    let leak: T | undefined;
    sn.vmap((v: T) => (leak = v.mul(2)))(x());
    await expect(leak!.array()).rejects.toThrow(/exists only inside the function that vmap maps/);
    let read: Promise<unknown> | undefined;
    sn.vmap((v: T) => {
      read = v.array();
      return v;
    })(x());
    await expect(read).rejects.toThrow(/exists only inside the function that vmap maps/);
    expect(await x().add(1).sum().item()).toBe(27);
  });
});

test('assigns to its own values', async () => {
  const f = (v: T): T => {
    const own = v.mul(1);
    own.assign(own.add(1));
    return own;
  };
  expect(await sn.vmap(f)(x()).select(0, 0).array()).toEqual([2, 3]);
});

describe('Jacobians', () => {
  const f = (v: T): T => sn.cat([v.mul(v), v.sum().reshape([1])]);

  test('are the same by rows and by columns', async () => {
    const expected = [
      [2, 0],
      [0, 4],
      [1, 1],
    ];
    expect(
      await sn
        .jacrev(f)(sn.tensor([1, 2]))
        .array(),
    ).toEqual(expected);
    expect(
      await sn
        .jacfwd(f)(sn.tensor([1, 2]))
        .array(),
    ).toEqual(expected);
  });

  test('of trees are trees of trees, of several arguments lists', async () => {
    const g = (p: { a: T; b: T }, q: T): { o: T; r: [T] } => ({ o: p.a.mul(p.b), r: [p.b.sum().mul(q)] });
    const args = [{ a: sn.tensor([1, 2]), b: sn.tensor([3, 4]) }, sn.tensor(2)] as const;
    for (const jacobian of [sn.jacrev, sn.jacfwd]) {
      const { o, r } = jacobian(g, { argnums: [0, 1] })(...args);
      expect(await o[0].a.array()).toEqual([
        [3, 0],
        [0, 4],
      ]);
      expect(await o[1].array()).toEqual([0, 0]);
      expect(await r[0][0].b.array()).toEqual([2, 2]);
      expect(await r[0][1].item()).toBe(7);
    }
  });

  test('of gradients are Hessians, also of examples and inside compile', async () => {
    const g = (v: T): T => v.mul(v).mul(v).sum().add(v.prod());
    const at = sn.tensor([1, 2]);
    const expected = [
      [6, 1],
      [1, 12],
    ];
    expect(await sn.hessian(g)(at).array()).toEqual(expected);
    expect(
      await sn
        .compile((y: T) => sn.hessian(g)(y))(at)
        .array(),
    ).toEqual(expected);
    expect(
      await sn
        .vmap(sn.hessian(g))(sn.stack([at, at]))
        .select(0, 1)
        .array(),
    ).toEqual(expected);
    const tree = sn.hessian((p: { a: T; b: T }) => p.a.mul(p.a).mul(p.b).sum())({ a: at, b: sn.ones([2]) });
    expect(await tree.a.b.array()).toEqual([
      [2, 0],
      [0, 4],
    ]);
  });

  test('refuse complex numbers and integers', () => {
    const z = sn.complex(sn.tensor([1]), sn.tensor([2]));
    expect(() => sn.jacrev((v: T) => v.mul(v))(z)).toThrow(/Jacobian of complex numbers/);
    expect(() => sn.jacfwd((v: T) => v.gt(0))(x())).toThrow(/only floats have derivatives/);
    expect(() => sn.jacfwd(f, { argnums: 3 })(x())).toThrow(/there is no argument 3/);
  });
});

describe('what operations watch', () => {
  const table = (): T => sn.arange(4);
  const rows = (last: number): T =>
    sn.tensor(
      [
        [0, 1],
        [2, last],
      ],
      { dtype: 'i32' },
    );
  const take = (i: T): T => sn.indexSelect(table(), 0, i);

  test('is watched for each example: indices outside of their axis name the example', async () => {
    expect(await sn.vmap(take)(rows(3)).array()).toEqual([
      [0, 1],
      [2, 3],
    ]);
    await expect(sn.vmap(take)(rows(9)).array()).rejects.toThrow(
      /indexSelect: example 1: index 9 is outside/,
    );
    const one = (i: T): T => sn.indexSelect(table(), 0, i.reshape([1]));
    await expect(sn.vmap(sn.vmap(one))(rows(9)).array()).rejects.toThrow(/example 3: index 9/);
  });

  test('is watched in compiled functions, and in what all examples share', async () => {
    const compiled = sn.compile((i: T) => sn.vmap(take)(i));
    await expect(compiled(rows(9)).array()).rejects.toThrow(/example 1: index 9/);
    expect(await compiled(rows(3)).array()).toEqual([
      [0, 1],
      [2, 3],
    ]);
    const shared = sn.compile((x: T) =>
      sn.vmap((v: T) => sn.indexSelect(v, 0, sn.tensor([1, 0], { dtype: 'i32' })))(x),
    );
    expect(await shared(x()).array()).toEqual([
      [2, 1],
      [4, 3],
      [6, 5],
    ]);
  });

  test('refuses the matrix of an example that has no factor', async () => {
    const matrices = sn.tensor([
      [
        [1, 0],
        [0, 1],
      ],
      [
        [1, 2],
        [2, 1],
      ],
    ]);
    const refused = /cholesky: example 1: the matrix is not positive definite/;
    await expect(
      sn
        .vmap((m: T) => sn.linalg.cholesky(m))(matrices)
        .array(),
    ).rejects.toThrow(refused);
    const gradients = sn.vmap(sn.grad((m: T) => sn.linalg.cholesky(m).sum()));
    await expect(gradients(matrices).array()).rejects.toThrow(refused);
  });
});
