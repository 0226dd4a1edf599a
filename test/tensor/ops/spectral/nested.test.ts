// Derivatives of singular values, eigenvalues and vectors, forwards and of second order: forwards and backwards they are each other's
// transposes, and both are differences of the function, whichever way derivatives are nested. (L. Dieci and T. Eirola, "On smooth
// decompositions of matrices", 1999; M. Giles, 2008.)

import { describe, expect, test } from 'vitest';
import * as sn from '../../../../src/index.ts';

type T = sn.Tensor;

/** Numbers that are spread, so that values are apart. */
const entries = (count: number, from: number): number[] =>
  Array.from({ length: count }, (_, i) => Math.sin(1.7 * i + from) + 0.3 * Math.cos(5.1 * i * from));

const square = (): T =>
  sn
    .tensor(entries(9, 1), { dtype: 'f64' })
    .reshape([3, 3])
    .add(
      sn.tensor(
        [
          [1, 0, 0],
          [0, 3, 0],
          [0, 0, -2],
        ],
        { dtype: 'f64' },
      ),
    );
const tall = (): T => sn.tensor(entries(12, 2), { dtype: 'f64' }).reshape([4, 3]);
const wide = (): T => sn.tensor(entries(6, 3), { dtype: 'f64' }).reshape([2, 3]);
const stack = (): T => sn.tensor(entries(18, 4), { dtype: 'f64' }).reshape([2, 3, 3]);

const symmetric = (x: T): T => x.add(x.mT).div(2);
const hermitian = (x: T): T => {
  const c = sn.complex(x, x.mul(x).sin());
  return c.add(sn.conj(c).mT).div(2);
};
const { linalg } = sn;
const sizes = (z: T): T => z.abs().square();

/** Functions whose value does not depend on signs, phases or orders of vectors. */
const functions: Readonly<Record<string, readonly [f: (x: T) => T, at: () => T]>> = {
  'eigh, values': [(x) => linalg.eigh(symmetric(x))[0].sin(), square],
  'eigh, vectors': [(x) => linalg.eigh(symmetric(x))[1].square(), square],
  'eigh, values and vectors, a stack': [
    (x) => {
      const [w, v] = linalg.eigh(symmetric(x));
      return v.mul(w.exp().unsqueeze(-2)).matmul(v.mT);
    },
    stack,
  ],
  'eigh, the upper triangle': [(x) => linalg.eigh(symmetric(x), { uplo: 'U' })[1].square(), square],
  'eigh, complex values': [(x) => linalg.eigh(hermitian(x))[0], square],
  'eigh, complex vectors': [(x) => sizes(linalg.eigh(hermitian(x))[1]), square],
  eigvalsh: [(x) => linalg.eigvalsh(symmetric(x)), square],
  'svd, all of it': [
    (x) => {
      const [u, s, vh] = linalg.svd(x, { fullMatrices: false });
      return u.mul(s.square().unsqueeze(-2)).matmul(vh);
    },
    tall,
  ],
  'svd, left vectors': [(x) => linalg.svd(x, { fullMatrices: false })[0].square(), tall],
  'svd, right vectors': [(x) => linalg.svd(x, { fullMatrices: false })[2].square(), wide],
  'svd, values': [(x) => linalg.svd(x)[1], stack],
  'svd, complex': [(x) => sizes(linalg.svd(sn.complex(x, x.sin()), { fullMatrices: false })[0]), square],
  svdvals: [(x) => linalg.svdvals(x), wide],
  cond: [(x) => linalg.cond(x), square],
  'matrixNorm, 2': [(x) => linalg.matrixNorm(x, 2), tall],
  'matrixNorm, −2': [(x) => linalg.matrixNorm(x, -2), tall],
  'matrixNorm, nuclear': [(x) => linalg.matrixNorm(x, 'nuc'), stack],
  pinv: [(x) => linalg.pinv(x), tall],
  'eig, values': [
    (x) =>
      linalg
        .eig(x)[0]
        .sum()
        .real()
        .add(sizes(linalg.eig(x)[0]).sum()),
    square,
  ],
  'eig, vectors': [
    (x) =>
      sizes(linalg.eig(x)[1])
        .mul(sizes(linalg.eig(x)[0]).unsqueeze(-2))
        .sum(),
    square,
  ],
  eigvals: [(x) => sizes(linalg.eigvals(x)).square().sum(), square],
};

async function numbers(x: T): Promise<number[]> {
  return [...((await x.data()) as Float64Array)];
}

function expectClose(found: readonly number[], expected: readonly number[], digits: number): void {
  expect(found.length).toBe(expected.length);
  const scale = Math.max(1, ...expected.map(Math.abs));
  found.forEach((value, i) => expect(value / scale).toBeCloseTo(expected[i]! / scale, digits));
}

describe.each(Object.entries(functions))('%s', (_, [f, at]) => {
  const direction = (x: T): T => sn.tensor(entries(x.size, 7), { dtype: 'f64' }).reshape(x.shape);
  /** Central differences of a function along a direction. */
  const difference = async (g: (x: T) => T, x: T, d: T, by = 1e-5): Promise<number[]> => {
    const [above, below] = [await numbers(g(x.add(d.mul(by)))), await numbers(g(x.sub(d.mul(by))))];
    return above.map((value, i) => (value - below[i]!) / (2 * by));
  };
  const weighed = (x: T): T => {
    const y = f(x);
    return y.mul(sn.tensor(entries(y.size, 5), { dtype: 'f64' }).reshape(y.shape)).sum();
  };

  test('the derivative forwards is that of differences, and the transpose of that backwards', async () => {
    const [x, d] = [at(), direction(at())];
    const { tangent } = sn.jvp(f, [x], [d]);
    expectClose(await numbers(tangent), await difference(f, x, d), 6);
    const slope = await sn.jvp(weighed, [x], [d]).tangent.item();
    expectClose([(await sn.grad(weighed)(x).mul(d).sum().item()) as number], [slope as number], 8);
    expectClose(await numbers(sn.linearize(f, x).jvp(d)), await numbers(tangent), 8);
    const compiled = sn.compile((a: T, b: T) => sn.jvp(f, [a], [b]).tangent);
    expectClose(await numbers(compiled(x, d)), await numbers(tangent), 8);
  });

  test('second derivatives are differences of the gradient, however they are nested', async () => {
    const [x, d] = [at(), direction(at())];
    const expected = await difference(sn.grad(weighed), x, d);
    const ways: Readonly<Record<string, T>> = {
      hvp: sn.hvp(weighed, [x], [d]).hvp[0],
      'backwards over backwards': sn.grad((a: T) => sn.grad(weighed)(a).mul(d).sum())(x),
      'backwards over forwards': sn.grad((a: T) => sn.jvp(weighed, [a], [d]).tangent)(x),
    };
    for (const found of Object.values(ways)) expectClose(await numbers(found), expected, 4);
    const twice = sn.jvp((a: T) => sn.jvp(weighed, [a], [d]).tangent, [x], [d]).tangent;
    const curve = (await numbers(d)).reduce((sum, value, i) => sum + value * expected[i]!, 0);
    expectClose(await numbers(twice), [curve], 4);
    const hessian = await numbers(sn.hessian(weighed)(x).reshape([x.size, x.size]).matmul(d.flatten()));
    expectClose(hessian, expected, 4);
  });
});
