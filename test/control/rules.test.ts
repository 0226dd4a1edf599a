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
