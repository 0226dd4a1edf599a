// What the type checker says of functions that are compiled. Every line under `@ts-expect-error` fails `npm run check` when it
// type-checks after all.

import { describe, expect, test } from 'vitest';
import * as sn from '../../../src/index.ts';
import { Linear } from '../../../src/nn/index.ts';

describe('a compiled function declares tensors where it is given numbers', () => {
  test('callers pass numbers, alone and in trees', async () => {
    const f = sn.compile((x: sn.Tensor, { rate }: { readonly rate: sn.Tensor }, list: readonly sn.Tensor[]) =>
      x.mul(rate).add(list[0]!),
    );
    const y: sn.Tensor = f(sn.ones([1]), { rate: 0.5 }, [1]);
    expect(await y.array()).toEqual([1.5]);
  });

  test('a declared number does not type-check, wherever it stands', () => {
    // @ts-expect-error: a number arrives as a tensor
    sn.compile((x: sn.Tensor, rate: number) => x.mul(rate));
    // @ts-expect-error: in an object too
    sn.compile((x: sn.Tensor, options: { rate: number }) => x.mul(options.rate));
    // @ts-expect-error: and in an array
    sn.compile((rates: number[]) => sn.tensor(rates));
    // @ts-expect-error: and where it may be left out
    sn.compile((x: sn.Tensor, rate?: number) => x.mul(rate ?? 1));
    expect(true).toBe(true);
  });

  test("JavaScript's operators on what is declared do not type-check either", () => {
    const body = (x: sn.Tensor, n: sn.Tensor): unknown[] => [
      // @ts-expect-error: no order between a tensor and a number
      () => n > 0.5,
      // @ts-expect-error: no product
      () => n * 2,
      // @ts-expect-error: no number
      () => Math.min(n, 3),
      // @ts-expect-error: never equal
      () => n === 0,
      x,
    ];
    expect(body(sn.ones([1]), sn.ones([])).length).toBe(5);
  });

  test('settings of layers, strings and booleans are what they are', async () => {
    const f = sn.compile(
      (net: Linear, x: sn.Tensor, mode: 'a' | 'b', twice: boolean, like: sn.TensorLike) => {
        const y = net.forward(x).add(like);
        return mode === 'a' && twice ? y.mul(2) : y;
      },
    );
    const y: sn.Tensor = f(new Linear(2, 2), sn.ones([1, 2]), 'a', true, 3);
    expect(y.shape).toEqual([1, 2]);
    // @ts-expect-error: no string for a tensor
    expect(() => f(new Linear(2, 2), 'x', 'a', true, 3)).toThrow();
  });

  test('the gradient for a number is a tensor', async () => {
    const slope = sn.grad((x: sn.Tensor | number) => sn.square(sn.add(x, 0)).sum());
    const g: sn.Tensor = slope(3);
    expect(await g.item()).toBe(6);
    const h: sn.Tensor = sn.grad(sn.compile((x: sn.Tensor) => x.square().sum()))(sn.tensor([3]));
    expect(await h.array()).toEqual([6]);
  });
});
