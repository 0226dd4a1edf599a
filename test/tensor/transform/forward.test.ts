// Derivatives forwards by the public functions: values, trees, what stays, and what is refused.

import { beforeAll, describe, expect, test } from 'vitest';
import * as sn from '../../../src/index.ts';
import { Linear } from '../../../src/nn/index.ts';

beforeAll(() => sn.setDevice('interpreter'));

const cube = (x: sn.Tensor): sn.Tensor => x.mul(x).mul(x);
const x = (): sn.Tensor => sn.tensor([1, 2]);

describe('jvp', () => {
  test('gives the value and its tangent', async () => {
    const { value, tangent } = sn.jvp(cube, [x()], [sn.tensor([1, 10])]);
    expect(await value.array()).toEqual([1, 8]);
    expect(await tangent.array()).toEqual([3, 120]);
  });

  test('takes trees and numbers, and gives a tree', async () => {
    const f = (p: { w: sn.Tensor; by: sn.Tensor | number }, y: sn.Tensor) => ({
      product: sn.mul(sn.mul(p.w, p.by), y),
      rest: [y],
    });
    const tangents = [{ w: sn.tensor([1, 0]), by: 1 }, sn.zeros([2])] as const;
    const { value, tangent } = sn.jvp(f, [{ w: x(), by: 3 }, sn.tensor([5, 7])], tangents);
    expect(await value.product.array()).toEqual([15, 42]);
    // d(w·by·y) = dw·by·y + w·dby·y
    expect(await tangent.product.array()).toEqual([15 + 5, 14]);
    expect(await tangent.rest[0]!.array()).toEqual([0, 0]);
  });

  test('gives 0 for what does not change, integers included', async () => {
    const { tangent } = sn.jvp((y: sn.Tensor) => [y.gt(1), sn.ones([1])] as const, [x()], [x()]);
    expect(await tangent[0].array()).toEqual([false, false]);
    expect(await tangent[1].array()).toEqual([0]);
  });

  test('stops at detached values, not at noGrad around the call', async () => {
    const f = (y: sn.Tensor): sn.Tensor => y.mul(y.detach());
    const { tangent } = sn.noGrad(() => sn.jvp(f, [x()], [sn.ones([2])]));
    expect(await tangent.array()).toEqual([1, 2]);
  });

  test('goes through compiled functions, and works inside one', async () => {
    const fast = sn.compile(cube);
    expect(await sn.jvp(fast, [x()], [sn.ones([2])]).tangent.array()).toEqual([3, 12]);
    const inside = sn.compile((y: sn.Tensor) => sn.jvp(cube, [y], [sn.ones([2])]).tangent);
    expect(await inside(x()).array()).toEqual([3, 12]);
    expect(
      await sn
        .grad((y: sn.Tensor) => inside(y).sum())(x())
        .array(),
    ).toEqual([6, 12]);
  });

  test('can be differentiated backwards, in the point and in the direction', async () => {
    const d = sn.tensor([1, 10]);
    const along = (y: sn.Tensor, v: sn.Tensor): sn.Tensor => sn.jvp(cube, [y], [v]).tangent.sum();
    expect(await sn.grad(along)(x(), d).array()).toEqual([6, 120]);
    expect(await sn.grad(along, { argnums: 1 })(x(), d).array()).toEqual([3, 12]);
    const leaf = x().requiresGrad_();
    sn.jvp(cube, [leaf], [d]).tangent.sum().backward();
    expect(await leaf.grad!.array()).toEqual([6, 120]);
  });

  test('takes complex numbers: d z² = 2z·dz', async () => {
    const z = sn.complex(sn.tensor([1]), sn.tensor([2]));
    const dz = sn.complex(sn.tensor([0]), sn.tensor([1]));
    const { tangent } = sn.jvp((y: sn.Tensor) => y.mul(y), [z], [dz]);
    expect(await tangent.array()).toEqual([{ re: -4, im: 2 }]);
    // d|z| = Re(conj(z)·dz)/|z|
    const size = sn.jvp((y: sn.Tensor) => y.abs(), [z], [dz]).tangent;
    expect(await size.item()).toBeCloseTo(2 / Math.sqrt(5), 6);
  });

  test('goes through rules of the user where they are linear', async () => {
    const tripled = sn.customVjp(
      (y) => y.mul(2),
      (g) => [g.mul(3)],
    );
    expect(await sn.jvp(tripled, [x()], [sn.ones([2])]).tangent.array()).toEqual([3, 3]);
    const clipped = sn.customVjp(
      (y) => y.mul(2),
      (g) => [g.clamp(-1, 1)],
    );
    expect(() => sn.jvp(clipped, [x()], [sn.ones([2])])).toThrow(/not linear in the cotangent/);
  });

  test.each([
    [
      'another shape',
      () => sn.jvp(cube, [x()], [sn.ones([3])]),
      /argument 0 must be like its value, f32\[2\]/,
    ],
    ['another dtype', () => sn.jvp(cube, [x()], [sn.ones([2], { dtype: 'f64' })]), /got f64\[2\]/],
    ['another count', () => sn.jvp(cube, [x()], [] as never), /1 argument\(s\) need as many tangents, got 0/],
    ['another tree', () => sn.jvp(cube, [x()], [[x()]] as never), /differ in structure/],
    ['integers', () => sn.jvp(cube, [x().cast('i32')], [x()]), /only floats have tangents/],
    [
      'no tensor',
      () => sn.jvp((y: sn.Tensor) => String(y.shape), [x()], [x()]),
      /the result must be a tensor/,
    ],
  ])('refuses %s', (_, call, message) => expect(call).toThrow(message));
});

test('linearize calls the function once, and its result is linear', async () => {
  let calls = 0;
  const { value, jvp } = sn.linearize((y: sn.Tensor) => ((calls += 1), cube(y)), x());
  expect(await value.array()).toEqual([1, 8]);
  expect(await jvp(sn.tensor([1, 0])).array()).toEqual([3, 0]);
  expect(await jvp(sn.tensor([0, 2])).array()).toEqual([0, 24]);
  expect(calls).toBe(1);
});

test('hvp is the Hessian times a vector, of a tree', async () => {
  // f = Σ a²·b: H·(da, db) = (2·b·da + 2·a·db, 2·a·da)
  const f = (p: { a: sn.Tensor; b: sn.Tensor }): sn.Tensor => p.a.mul(p.a).mul(p.b).sum();
  const point = { a: x(), b: sn.tensor([3, 5]) };
  const { grad, hvp } = sn.hvp(f, [point], [{ a: sn.tensor([1, 0]), b: sn.tensor([0, 1]) }]);
  expect(await grad[0].a.array()).toEqual([6, 20]);
  expect(await hvp[0].a.array()).toEqual([6, 4]);
  expect(await hvp[0].b.array()).toEqual([2, 0]);
});

test('hvp of a model leaves what is frozen alone', async () => {
  const model = new Linear(2, 1);
  model.weight.requiresGrad_(false);
  const f = (m: Linear): sn.Tensor =>
    m
      .forward(sn.ones([3, 2]))
      .pow(2)
      .sum();
  const { hvp } = sn.hvp(f, [model], [sn.treeMap((t) => sn.onesLike(t), model)]);
  expect(await hvp[0].weight.array()).toEqual([[0, 0]]);
  expect(await hvp[0].bias!.array()).toEqual([6]);
});

describe('auxiliary results', () => {
  const f = (y: sn.Tensor) => [cube(y).sum(), { squares: y.mul(y), name: 'a' }] as const;

  test('come beside the gradient and the value', async () => {
    const { value, grad, aux } = sn.valueAndGrad(f, { hasAux: true })(x());
    expect([await value.item(), await grad.array(), aux.name]).toEqual([9, [3, 12], 'a']);
    expect(await aux.squares.array()).toEqual([1, 4]);
    const alone = sn.grad(f, { argnums: [0], hasAux: true })(x());
    expect(await alone.grad[0].array()).toEqual([3, 12]);
    expect(await alone.aux.squares.array()).toEqual([1, 4]);
  });

  test('carry gradients to what is differentiated around, and none else', async () => {
    expect(sn.grad(f, { hasAux: true })(x()).aux.squares.requiresGrad).toBe(false);
    const outer = sn.grad((y: sn.Tensor) => sn.grad(f, { hasAux: true })(y).aux.squares.sum());
    expect(await outer(x()).array()).toEqual([2, 4]);
  });

  test('are asked for', () => {
    expect(() => sn.grad(f as never)(x())).toThrow(/hasAux: true/);
    expect(() => sn.grad((y: sn.Tensor) => y.sum() as never, { hasAux: true })(x())).toThrow(
      /must return \[loss, aux\]/,
    );
  });
});
