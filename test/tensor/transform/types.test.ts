// What the type checker says of derivatives: the gradient has the type of the argument that `argnums` names. Every line under
// `@ts-expect-error` fails `npm run check` when it type-checks after all.

import { beforeAll, describe, expect, test } from 'vitest';
import * as sn from '../../../src/index.ts';
import { Linear } from '../../../src/nn/index.ts';

beforeAll(() => sn.setDevice('interpreter'));

interface Weights {
  readonly w: sn.Tensor;
  readonly rate: number;
}
const f = (x: sn.Tensor, p: Weights, layer: Linear): sn.Tensor => layer.forward(x.mul(p.w).mul(p.rate)).sum();
const args = (): [sn.Tensor, Weights, Linear] => [
  sn.ones([1, 2]),
  { w: sn.ones([2]), rate: 3 },
  new Linear(2, 1),
];

describe('the gradient', () => {
  test('is like the first argument, with tensors for numbers', () => {
    const g: sn.Tensor = sn.grad(f)(...args());
    expect(g.shape).toEqual([1, 2]);
    // @ts-expect-error: no other argument
    const other: Weights = sn.grad(f)(...args());
    expect(other).toBeInstanceOf(sn.Tensor);
  });

  test('is like the argument that argnums names', () => {
    const p: { readonly w: sn.Tensor; readonly rate: sn.Tensor } = sn.grad(f, { argnums: 1 })(...args());
    expect([p.w.shape, p.rate.shape]).toEqual([[2], []]);
    const layer: Linear = sn.valueAndGrad(f, { argnums: 2 })(...args()).grad;
    expect(layer.weight.shape).toEqual([1, 2]);
    // @ts-expect-error: that is the second argument's
    const wrong: sn.Tensor = sn.grad(f, { argnums: 1 })(...args());
    expect(wrong).not.toBeInstanceOf(sn.Tensor);
  });

  test('is a list of them for a list of places, in its order', async () => {
    const { value, grad } = sn.valueAndGrad(f, { argnums: [2, 0] })(...args());
    const [layer, x]: [Linear, sn.Tensor] = grad;
    expect([value.shape, layer.weight.shape, x.shape]).toEqual([[], [1, 2], [1, 2]]);
    // @ts-expect-error: the other way round
    const [a, b]: [sn.Tensor, Linear] = grad;
    expect([a, b].length).toBe(2);
  });
});

describe('argnums in any order', () => {
  const product = (x: sn.Tensor, y: sn.Tensor, z: sn.Tensor): sn.Tensor => x.mul(y).mul(z).sum();
  test.each([
    { places: [0, 1, 2], expected: [15, 10, 6] },
    { places: [1, 0], expected: [10, 15] },
    { places: [2, 0, 1], expected: [6, 15, 10] },
    { places: [1, 1], expected: [10, 10] },
    { places: [], expected: [] },
  ])('$places', async ({ places, expected }) => {
    const [x, y, z] = [sn.tensor([2]), sn.tensor([3]), sn.tensor([5])];
    const list: readonly sn.Tensor[] = sn.grad(product, { argnums: places })(x, y, z);
    expect(await Promise.all(list.map((g) => g.item()))).toEqual(expected);
  });
});
