// Derivatives at tensors whose elements are all equal: `zeros`, `ones`, weights that start so, seeds. What is known of such a value
// must not be built into a derivative: it would no longer depend on the tensor, and the next derivative would lack a term.

import { beforeAll, describe, expect, test } from 'vitest';
import * as sn from '../../src/index.ts';
import { LayerNorm } from '../../src/nn/index.ts';

type Fn = (x: sn.Tensor) => sn.Tensor;

beforeAll(() => sn.setDevice('interpreter'));

const sized = { dtype: 'f64' } as const;
const close = async (actual: sn.Tensor, expected: readonly number[]): Promise<void> => {
  const values = [...((await actual.data()) as Float64Array)];
  expect(values.length).toBe(expected.length);
  values.forEach((value, i) => expect(value).toBeCloseTo(expected[i]!, 9));
};

/** The same point as constants, as views of them, and as elements in memory, which nothing is known of. */
const points = (value: number): [string, () => sn.Tensor][] => [
  ['full', () => sn.full([2], value, sized)],
  ['a view of full', () => sn.full([1, 2], value, sized).transpose().reshape([2])],
  ['an expanded scalar', () => sn.full([], value, sized).expand([2])],
  ['tensor', () => sn.tensor([value, value], sized)],
];

const functions: [string, Fn, (x: number) => number][] = [
  ['x²', (x) => x.square().sum(), () => 2],
  ['x·x', (x) => x.mul(x).sum(), () => 2],
  ['eˣ', (x) => x.exp().sum(), Math.exp],
  ['x² + 3x', (x) => x.square().add(x.mul(3)).sum(), () => 2],
  ['x·x as a dot', (x) => x.dot(x), () => 2],
  ['x³', (x) => x.pow(3).sum(), (x) => 6 * x],
  ['sin x', (x) => x.sin().sum(), (x) => -Math.sin(x)],
  ['x/(x + 2)', (x) => x.div(x.add(2)).sum(), (x) => -4 / (x + 2) ** 3],
  // Both operands of a select depend on x, whichever is taken.
  ['where', (x) => sn.where(x.gt(-3), x.mul(x), x).mul(x).sum(), (x) => 6 * x],
];

describe('second derivatives do not depend on how a tensor was made', () => {
  for (const value of [0, 1, -1, 2]) {
    for (const [kind, point] of points(value)) {
      test.each(functions)(`%s at ${value} from ${kind}`, async (_, f, second) => {
        const expected = [second(value), second(value)];
        const gradSum: Fn = (x) => sn.grad(f)(x).sum();
        await close(sn.grad(gradSum)(point()), expected);
        await close(sn.vjp(gradSum, point()).vjp(sn.ones([], sized))[0], expected);
        await close(
          sn.grad((x: sn.Tensor) => sn.vjp(f, x).vjp(sn.ones([], sized))[0].sum())(point()),
          expected,
        );
        await close(sn.compile(sn.grad(gradSum))(point()), expected);
        const leaf = point().requiresGrad_();
        gradSum(leaf).backward();
        await close(leaf.grad!, expected);
        const [first] = sn.gradients(f(leaf), [leaf]);
        await close(sn.gradients(first!.sum(), [leaf])[0]!, expected);
        // A weight that is given such a value later.
        const moved = sn.tensor([5, 7], sized).requiresGrad_();
        sn.noGrad(() => moved.assign(point()));
        gradSum(moved).backward();
        await close(moved.grad!, expected);
      });
    }
  }
});

describe('a product of derivatives', () => {
  const hvp = (f: Fn) => (w: sn.Tensor, v: sn.Tensor) =>
    sn.grad((at: sn.Tensor) => sn.grad(f)(at).mul(v).sum())(w);

  test('of Hessian and vector at zeros is that of a least-squares loss', async () => {
    const x = sn.tensor([[1, 2], [3, 4]], sized); // prettier-ignore
    const loss: Fn = (w) =>
      x
        .matmul(w)
        .sub(sn.tensor([1, 2], sized))
        .square()
        .sum();
    await close(hvp(loss)(sn.zeros([2], sized), sn.ones([2], sized)), [48, 68]);
  });

  test('is differentiable in the vector, whatever it is', async () => {
    const f: Fn = (x) => x.pow(3).sum();
    const product = (v: sn.Tensor): sn.Tensor => hvp(f)(sn.tensor([1, 2], sized), v).sum();
    for (const v of [sn.zeros([2], sized), sn.ones([2], sized)]) await close(sn.grad(product)(v), [6, 12]);
  });
});

describe('a pullback is a function of its seed', () => {
  const g: Fn = (x) => x.sin().mul(x);
  const x = (): sn.Tensor => sn.tensor([1, 2], sized);
  const slopes = [1, 2].map((at) => Math.sin(at) + at * Math.cos(at));

  test.each([0, 1])('its derivative at seeds of %d is the product of Jacobian and vector', async (value) => {
    const pulled = (u: sn.Tensor): sn.Tensor => sn.vjp(g, x()).vjp(u)[0].sum();
    await close(sn.grad(pulled)(sn.full([2], value, sized)), slopes);
    const seed = sn.full([2], value, sized).requiresGrad_();
    pulled(seed).backward();
    await close(seed.grad!, slopes);
  });

  test('also by gradients() of given seeds', async () => {
    const [at, seed] = [x().requiresGrad_(), sn.zeros([2], sized).requiresGrad_()];
    const [first] = sn.gradients([g(at)], [at], [seed]);
    await close(sn.gradients([first!.sum()], [seed])[0]!, slopes);
  });
});

describe('equal tensors are different variables', () => {
  test('a constant in the function is not the argument of the same value', async () => {
    // d/dx (x·1·x) at x = ones, where the inner derivative is with respect to y = ones.
    const f: Fn = (x) =>
      sn
        .grad((y: sn.Tensor) =>
          y
            .mul(x)
            .mul(sn.ones([2], sized))
            .sum(),
        )(sn.ones([2], sized))
        .mul(x)
        .sum();
    await close(sn.grad(f)(sn.ones([2], sized)), [2, 2]);
  });

  test('one tensor given for two arguments counts once for each', async () => {
    const f = (x: sn.Tensor, y: sn.Tensor): sn.Tensor => x.square().mul(y).sum();
    const mixed = (x: sn.Tensor, y: sn.Tensor): sn.Tensor =>
      sn
        .grad((z: sn.Tensor) => f(z, y))(x)
        .sum();
    const one = sn.ones([2], sized);
    await close(sn.grad(mixed, { argnums: 0 })(one, one) as sn.Tensor, [2, 2]);
    await close(sn.grad(mixed, { argnums: 1 })(one, one) as unknown as sn.Tensor, [2, 2]);
  });

  test('a rule by hand that differentiates its arguments sees these alone', async () => {
    // The function again, differentiated where the rule is needed: what saves memory by computing twice.
    const again = (fn: (x: sn.Tensor, y: sn.Tensor) => sn.Tensor) =>
      sn.customVjp(fn as never, (seed, args) =>
        sn.gradients([fn(args[0]!, args[1]!)], args, [seed]),
      ) as typeof fn;
    const f = (x: sn.Tensor, y: sn.Tensor): sn.Tensor =>
      x
        .square()
        .mul(y)
        .mul(sn.ones([2], sized));
    for (const make of [() => sn.ones([2], sized), () => sn.tensor([1, 1], sized)]) {
      const [x, y] = [make(), make()];
      const direct = sn.vjp(f, x, y).vjp(sn.ones([2], sized));
      const recomputed = sn.vjp(again(f), x, y).vjp(sn.ones([2], sized));
      await close(direct[0], [2, 2]);
      await close(recomputed[0], [2, 2]);
      await close(recomputed[1], [1, 1]);
      const second = (h: typeof f): sn.Tensor =>
        sn.grad((at: sn.Tensor) =>
          sn
            .vjp(h, at, y)
            .vjp(sn.ones([2], sized))[1]
            .sum(),
        )(x);
      await close(second(f), [2, 2]);
      await close(second(again(f)), [2, 2]);
    }
  });
});

test('a rule by hand may differentiate with respect to the cotangent it is given', async () => {
  // What the pullback of x·y adds for each unit of cotangent, at a cotangent of ones beside other ones.
  const rule = (seed: sn.Tensor, [x]: readonly sn.Tensor[]): sn.Tensor[] => {
    const pulled = seed.mul(sn.ones([2], sized)).mul(x!);
    return sn.gradients([pulled], [seed], [sn.ones([2], sized)]);
  };
  const double = sn.customVjp((x) => x.square().div(2), rule);
  await close(sn.grad((x: sn.Tensor) => double(x).sum())(sn.tensor([3, 5], sized)), [3, 5]);
});

describe('weights that start as ones or zeros', () => {
  test('a gradient penalty reaches the weight of a fresh norm', async () => {
    const x = sn.tensor([[1, 2, 4]]);
    const penalty = (layer: LayerNorm): sn.Tensor =>
      sn
        .grad((at: sn.Tensor) => layer.forward(at).pow(3).sum())(x)
        .square()
        .sum();
    const [fresh, set] = [new LayerNorm(3), new LayerNorm(3)];
    set.weight!.assign(sn.tensor([1, 1, 1]));
    for (const layer of [fresh, set]) penalty(layer).backward();
    const [actual, expected] = [await fresh.weight!.grad!.data(), await set.weight!.grad!.data()];
    expect([...actual]).toEqual([...expected]);
    expect(Number(actual[0])).toBeCloseTo(21.86045, 4);
  });

  test('a penalty on Σ x²w has the derivative 8x²w', async () => {
    const x = sn.tensor([[1, 2, 4]], sized);
    const penalty: Fn = (w) =>
      sn
        .grad((at: sn.Tensor) => at.square().mul(w).sum())(x)
        .square()
        .sum();
    await close(sn.grad(penalty)(sn.ones([3], sized)), [8, 32, 128]);
  });
});
