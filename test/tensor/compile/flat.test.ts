// Whether a result requires gradients is the same of a function and of the function compiled, also where no step of it has a slope.

import { beforeAll, expect, test } from 'vitest';
import * as sn from '../../../src/index.ts';
import type { Tensor } from '../../../src/index.ts';

beforeAll(() => sn.setDevice('interpreter'));

const ones = (): Tensor => sn.ones([3]);

const steps: Readonly<Record<string, (x: Tensor) => Tensor>> = {
  'pow 0': (x) => x.pow(0),
  'floatPower 0': (x) => sn.floatPower(x, 0),
  'matrixPower 0': (x) => sn.linalg.matrixPower(x.mul(sn.ones([3, 3])), 0),
  heaviside: (x) => sn.heaviside(x, 0),
  copysign: (x) => sn.copysign(ones(), x),
  chebyshev: (x) => sn.special.chebyshevPolynomialT(x, 0),
  dist: (x) => sn.dist(x, ones(), 0),
  floor: (x) => x.floor(),
  'mul 0': (x) => x.mul(0),
  'sin of pow 0': (x) => x.pow(0).sin(),
  comparison: (x) => x.gt(0),
  mask: (x) => sn.where(x.gt(0), 1, 0),
  detach: (x) => x.detach(),
  like: (x) => sn.onesLike(x),
};

const gradientOf = (x: Tensor): Promise<unknown> | undefined => x.grad?.array();

test.each(Object.entries(steps))('%s', async (_, step) => {
  for (const wanted of [true, false]) {
    const x = sn.tensor([1, 2, 3]).requiresGrad_(wanted);
    let inside: boolean | undefined;
    const compiled = sn.compile((y: Tensor) => {
      const result = step(y);
      inside = result.requiresGrad;
      return result;
    });
    const [plain, called] = [step(x), compiled(x)];
    expect([inside, called.requiresGrad]).toEqual([plain.requiresGrad, plain.requiresGrad]);
    expect(await called.array()).toEqual(await plain.array());
    if (!plain.requiresGrad) continue;
    plain.sum().backward();
    const { grad } = x;
    x.grad = undefined;
    called.sum().backward();
    expect(await gradientOf(x)).toEqual(await grad?.array());
  }
});

test('x⁰ requires gradients as any power does, and has none to give', async () => {
  const x = sn.tensor([1, 2]).requiresGrad_();
  const y = x.pow(0);
  expect(y.requiresGrad).toBe(true);
  y.sum().backward();
  expect(x.grad).toBeUndefined();
  expect(await (sn.grad((z: Tensor) => z.pow(0).sum())(x) as Tensor).array()).toEqual([0, 0]);
  expect(await sn.jvp((z: Tensor) => z.pow(0).add(z), [x], [sn.ones([2])]).tangent.array()).toEqual([1, 1]);
});
