// Rules of `customVjp` and `customJvp` in loops and batches: what they read from outside, and what is checked.

import { describe, expect, test } from 'vitest';

import * as sn from '../../src/index.ts';
import { everyDevice } from '../support/devices.ts';

const list = async (x: sn.Tensor): Promise<number[]> => Array.from(await x.data(), Number);

/** A loop, and the same written out: what a rule reads of the world around it is there in both. */
describe.each(everyDevice)('rules of users on %s', (device) => {
  const [weights, x] = [
    [2, 0.5],
    [0.5, -1],
  ] as const;
  const turns = 3;
  const looped = (step: (h: sn.Tensor) => sn.Tensor) => (h: sn.Tensor) =>
    sn.scan((carry: sn.Tensor) => [step(carry).add(1), undefined], h, undefined, { length: turns })[0].sum();
  const written = (step: (h: sn.Tensor) => sn.Tensor) => (h: sn.Tensor) => {
    let carry = h;
    for (let turn = 0; turn < turns; turn++) carry = step(carry).add(1);
    return carry.sum();
  };
  const expectSame = async (found: sn.Tensor, expected: sn.Tensor): Promise<void> => {
    const right = await list(expected);
    expect(right.every((value) => value !== 0 && Number.isFinite(value))).toBe(true);
    (await list(found)).forEach((value, i) => expect(value / right[i]!).toBeCloseTo(1, 4));
  };
  const second = (f: (h: sn.Tensor) => sn.Tensor) => sn.grad((h: sn.Tensor) => sn.grad(f)(h).square().sum());

  test('read values from outside of the loop', async () => {
    await sn.setDevice(device);
    const w = sn.tensor(weights);
    const z = sn.tensor([{ re: 1, im: 2 }, 3]);
    const [chosen, counts] = [sn.tensor([true, false]), sn.tensor([3, 1], { dtype: 'u8' })];
    const scaled = sn.customVjp(
      (h) => h.mul(w),
      (g, [h]) => {
        const some = sn.where(chosen, g, g.mul(5)).mul(counts).mul(sn.real(z));
        return [
          some
            .mul(h!)
            .mul(sn.tensor([1, 2]))
            .add(g.mul(w.square())),
        ];
      },
    );
    const pushed = sn.customJvp(
      (h) => h.mul(w),
      ([h], [t]) => t!.mul(w).mul(h!).add(t!.mul(counts)),
    );
    const h = sn.tensor(x);
    for (const step of [scaled, pushed]) {
      await expectSame(sn.grad(looped(step))(h), sn.grad(written(step))(h));
      // Nothing of what follows is of the device.
      if (device !== 'interpreter') continue;
      await expectSame(sn.compile(sn.grad(looped(step)))(h), sn.grad(written(step))(h));
      await expectSame(second(looped(step))(h), second(written(step))(h));
      const all = sn.tensor([x, [1, 2]]);
      await expectSame(sn.vmap(sn.grad(looped(step)))(all), sn.vmap(sn.grad(written(step)))(all));
    }
    if (device !== 'interpreter') return;
    const along = (f: (h: sn.Tensor) => sn.Tensor): sn.Tensor => sn.jvp(f, [h], [w]).tangent;
    await expectSame(along(looped(pushed)), along(written(pushed)));
    const branch = (h: sn.Tensor): sn.Tensor => sn.cond(h.sum().lt(9), scaled, (y: sn.Tensor) => y, h).sum();
    await expectSame(sn.grad(branch)(h), sn.grad((y: sn.Tensor) => scaled(y).sum())(h));
  });

  test('check nothing of what stands for all iterations, or for all examples', async () => {
    await sn.setDevice(device);
    const a = sn.tensor([
      [2, 1],
      [0.5, 3],
    ]);
    const places = sn.tensor([1, 0], { dtype: 'i32' });
    const solved = sn.customVjp(
      (h) => sn.linalg.solve(a.mul(h.square().add(1)), h),
      (g, [h]) => [
        sn.linalg.solve(a.mul(h!.square().add(1)), g).indexSelect(0, places.mul(h!.gt(-9).cast('i32'))),
      ],
    );
    const h = sn.tensor(x);
    await expectSame(sn.grad(looped(solved))(h), sn.grad(written(solved))(h));
    if (device !== 'interpreter') return;
    await expectSame(sn.compile(sn.grad(looped(solved)))(h), sn.grad(written(solved))(h));
    const all = sn.tensor([x, [1, 2]]);
    const together = (rows: sn.Tensor): sn.Tensor => sn.vmap(solved)(rows).sum();
    const apart = (rows: sn.Tensor): sn.Tensor =>
      solved(rows.select(0, 0))
        .add(solved(rows.select(0, 1)))
        .sum();
    await expectSame(sn.grad(together)(all), sn.grad(apart)(all));
    await expectSame(sn.compile(sn.grad(together))(all), sn.grad(apart)(all));
  });
});

test('a rule in a loop draws by a key alone: without one all iterations would draw the same', async () => {
  await sn.setDevice('interpreter');
  const h = sn.tensor([1, 1]);
  const looped = (step: (h: sn.Tensor) => sn.Tensor) => (from: sn.Tensor) =>
    sn.scan((carry: sn.Tensor) => [step(carry), carry], from, undefined, { length: 3 })[1].sum();
  const noisy = sn.customVjp(
    (x) => x.mul(3),
    (g) => [g.mul(sn.rand([2]))],
  );
  const refusal = /rule of a derivative draws random numbers.*the same in every iteration/;
  expect(() => sn.grad(looped(noisy))(h)).toThrow(refusal);
  expect(() => sn.compile(sn.grad(looped(noisy)))(h)).toThrow(refusal);
  // A draw from before the loop, and one by a key.
  const before = sn.rand([2]);
  const key = sn.key(7);
  for (const of of [() => before, () => sn.withKey(key, () => sn.rand([2]))]) {
    const fixed = sn.customVjp(
      (x) => x.mul(3),
      (g) => [g.mul(of())],
    );
    // After one iteration the factor, after two its square.
    const factor = await list(of());
    const found = await list(sn.grad(looped(fixed))(h));
    found.forEach((value, i) => expect(value).toBeCloseTo(1 + factor[i]! + factor[i]! ** 2, 5));
  }
});

/** What a checkpointed function makes of captured values alone is computed once, outside of the loop. */
describe('checkpoints in loops lead to what they make of captured values', () => {
  type Step = (h: sn.Tensor, w: sn.Tensor) => sn.Tensor;
  type Loop = (step: Step) => (h: sn.Tensor, w: sn.Tensor) => sn.Tensor;
  const loops: Record<string, Loop> = {
    scan: (step) => (h, w) =>
      sn.scan((c: sn.Tensor, x: sn.Tensor) => [c.add(step(x, w)), step(c, w)], h, sn.stack([h, h]))[1].sum(),
    foriLoop: (step) => (h, w) => sn.foriLoop(0, 3, (_, c: sn.Tensor) => step(c, w), h).sum(),
    'foriLoop in segments': (step) => (h, w) =>
      sn.foriLoop(0, 5, (_, c: sn.Tensor) => step(c, w), h, { checkpoint: 2 }).sum(),
    map: (step) => (h, w) => sn.map((x) => step(x, w), sn.stack([h, h])).sum(),
    'scan in scan': (step) => (h, w) =>
      sn.foriLoop(0, 2, (_, c: sn.Tensor) => sn.foriLoop(0, 2, (__, d: sn.Tensor) => step(d, w), c), h).sum(),
  };
  const plain: Step = (h, w) => h.mul(w.sin()).add(w.cast('f64').cast('f32'));
  const two = sn.checkpoint((h: sn.Tensor, w: sn.Tensor) => ({ a: h.mul(w.sin()), b: w.cast('f64') }));
  const steps: Record<string, Step> = {
    'an argument': (h, w) => sn.checkpoint(plain)(h, w),
    'a captured value': (h, w) => sn.checkpoint((x: sn.Tensor) => plain(x, w))(h),
    'one within another': (h, w) =>
      sn.checkpoint((x: sn.Tensor) => sn.checkpoint((y: sn.Tensor) => plain(y, w))(x))(h),
    'two results': (h, w) => {
      const { a, b } = two(h, w);
      return a.add(b.cast('f32'));
    },
  };
  const cases = Object.keys(loops).flatMap((loop) => Object.keys(steps).map((step) => [loop, step] as const));
  test.each(cases)('%s, %s', async (loop, step) => {
    await sn.setDevice('interpreter');
    const [h, w] = [sn.tensor([0.5, -1]), sn.tensor([2, 0.75])];
    const [found, expected] = [steps[step]!, plain].map((each) => loops[loop]!(each));
    const closeTo = async (a: sn.Tensor, b: sn.Tensor): Promise<void> => {
      const right = await list(b);
      expect(right.every((value) => value !== 0)).toBe(true);
      (await list(a)).forEach((value, i) => expect(value / right[i]!).toBeCloseTo(1, 4));
    };
    const both = { argnums: [0, 1] } as const;
    const [given, wanted] = [sn.grad(found!, both)(h, w), sn.grad(expected!, both)(h, w)];
    for (const i of [0, 1] as const) await closeTo(given[i], wanted[i]);
    const along = [sn.tensor([1, 2]), sn.tensor([-1, 1])] as const;
    await closeTo(sn.jvp(found!, [h, w], [...along]).tangent, sn.jvp(expected!, [h, w], [...along]).tangent);
    const second = (f: NonNullable<typeof found>) =>
      sn.grad((v: sn.Tensor) =>
        sn
          .grad((u: sn.Tensor) => f(h, u))(v)
          .square()
          .sum(),
      );
    await closeTo(second(found!)(w), second(expected!)(w));
  });
});

test('a rule in a loop may checkpoint what was computed outside of the loop as well', async () => {
  await sn.setDevice('interpreter');
  const run = (wrap: (f: (x: sn.Tensor) => sn.Tensor) => (x: sn.Tensor) => sn.Tensor) => (w: sn.Tensor) => {
    const made = w.sin();
    const step = sn.customVjp(
      (h) => h.mul(2),
      (g, [h]) => [g.mul(h!).mul(wrap((v) => v.sin())(w))],
    );
    const loop = (h: sn.Tensor): sn.Tensor =>
      sn.scan((c: sn.Tensor) => [step(c), undefined], h, undefined, { length: 2 })[0].sum();
    return sn
      .grad(loop)(sn.tensor([0.5, -1]))
      .mul(made)
      .sum();
  };
  const w = sn.tensor([2, 0.75]);
  const right = await list(sn.grad(run((f) => f))(w));
  (await list(sn.grad(run((f) => sn.checkpoint(f)))(w))).forEach((value, i) =>
    expect(value / right[i]!).toBeCloseTo(1, 4),
  );
});

describe('a rule in a loop takes derivatives of its own, whose values lead on', () => {
  const cube = (v: sn.Tensor): sn.Tensor => v.mul(v).mul(v);
  // Each gives 2v³, whose derivative is 6v².
  const partials: Record<string, (v: sn.Tensor) => sn.Tensor> = {
    vjp: (v) => {
      const { value, vjp } = sn.vjp((u: sn.Tensor) => u.mul(2), v);
      return vjp(value.mul(v).mul(v).mul(0.5))[0];
    },
    jvp: (v) => {
      const { value, tangent } = sn.jvp((u: sn.Tensor) => u.mul(2), [v], [v.mul(v)]);
      return value.mul(tangent).mul(0.5);
    },
    linearize: (v) => {
      const { value, jvp } = sn.linearize((u: sn.Tensor) => u.mul(2), v);
      return jvp(value.mul(v).mul(v).mul(0.5));
    },
    valueAndGrad: (v) =>
      sn
        .valueAndGrad((u: sn.Tensor) => cube(u).sum(), { argnums: 0 })(v)
        .value.mul(2)
        .reshape([1]),
    aux: (v) =>
      sn
        .grad((u: sn.Tensor) => [u.sum(), cube(u)] as const, { hasAux: true })(v)
        .aux.mul(2),
    'a rule within': (v) =>
      sn
        .customVjp(cube, (g, [u]) => [g.mul(u!.square().mul(3))])(
          sn.grad((u: sn.Tensor) => u.square().mul(0.5).sum())(v),
        )
        .mul(2),
  };
  const loops: Record<string, (step: (v: sn.Tensor) => sn.Tensor) => (v: sn.Tensor) => sn.Tensor> = {
    foriLoop: (step) => (v) => sn.foriLoop(0, 1, (_, c: sn.Tensor) => step(c), v).sum(),
    cond: (step) => (v) => sn.cond(v.sum().gt(0), step, (c) => c, v).sum(),
    'vmap of a loop': (step) => (v) =>
      sn
        .vmap((u: sn.Tensor) => sn.foriLoop(0, 1, (_, c: sn.Tensor) => step(c), u))(v.reshape([1, 1]))
        .sum(),
  };
  const cases = Object.keys(partials).flatMap((partial) =>
    Object.keys(loops).map((loop) => [partial, loop] as const),
  );
  test.each(cases)('%s, %s', async (partial, loop) => {
    await sn.setDevice('interpreter');
    const by = partials[partial]!;
    const x = sn.tensor([1.5]);
    const steps = [
      sn.customVjp(
        (v) => v.sin(),
        (g, [v]) => [g.mul(by(v!))],
      ),
      sn.customJvp(
        (v) => v.sin(),
        ([v], [t]) => t!.mul(by(v!)),
      ),
    ];
    for (const step of steps) {
      const f = loops[loop]!(step);
      const first = (v: sn.Tensor): sn.Tensor => sn.grad(f)(v).sum();
      const second = (v: sn.Tensor): sn.Tensor => sn.grad(first)(v).sum();
      expect(await sn.grad(f)(x).array()).toEqual([6.75]);
      expect(await sn.grad(first)(x).array()).toEqual([13.5]);
      expect(await sn.grad(second)(x).array()).toEqual([18]);
      expect(await sn.hessian(f)(x).array()).toEqual([[13.5]]);
    }
  });

  test('what is being differentiated outside is so still when a rule has ended', async () => {
    const step = sn.customVjp(
      (v) => v.sin(),
      (g, [v]) => [g.mul(v!)],
    );
    const f = (x: sn.Tensor): sn.Tensor => {
      const before = sn.grad((v: sn.Tensor) => step(v).sum())(x);
      return before.mul(sn.valueAndGrad((v: sn.Tensor) => v.mul(x).sum())(x).value).sum();
    };
    expect(
      await sn
        .grad(f)(sn.tensor([2]))
        .array(),
    ).toEqual([12]);
    const g = (x: sn.Tensor): sn.Tensor =>
      sn
        .vjp(step, x)
        .vjp(x)[0]
        .mul(sn.vjp((v: sn.Tensor) => v.mul(x), x).value)
        .sum();
    expect(
      await sn
        .grad(g)(sn.tensor([2]))
        .array(),
    ).toEqual([32]);
  });
});
