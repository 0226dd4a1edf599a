// Derivatives of decompositions, norms and distances against central differences in double precision; second derivatives too.

import { beforeAll, describe, expect, test } from 'vitest';
import { grad } from '../../../../src/tensor/derivative/transform.ts';
import * as linalg from '../../../../src/operations/linalg.ts';
import * as sn from '../../../../src/operations/index.ts';
import { setDevice } from '../../../../src/tensor/device.ts';
import type { Tensor } from '../../../../src/tensor/tensor.ts';
import { matrix, sequence, transposed } from './matrices.ts';

beforeAll(() => setDevice('interpreter'));

/** Σ of all elements, each with a weight of its own. */
function weighed(x: Tensor): Tensor {
  const draw = sequence(21);
  const weights = sn.tensor(Float64Array.from({ length: x.size }, draw), { dtype: 'f64' });
  return sn.sum(sn.mul(sn.reshape(x, [x.size]), weights));
}

const made = (u: Tensor, s: Tensor, vh: Tensor): Tensor => {
  const k = s.shape.at(-1)!;
  const left = sn.mul(sn.narrow(u, -1, 0, k), sn.unsqueeze(sn.exp(s), -2));
  return sn.matmul(left, sn.narrow(vh, -2, 0, k));
};
const square = (x: Tensor): Tensor => sn.matmul(x, transposed(x));

/** Two real matrices as a complex one, and a complex result as a real one. */
const paired = (a: Tensor): Tensor => sn.complex(sn.select(a, 0, 0), sn.select(a, 0, 1));
const apart = (z: Tensor): Tensor => sn.viewAsReal(z);
const hermitian = (z: Tensor): Tensor => sn.add(z, sn.adjoint(z));

/** Functions of matrices that do not depend on the signs of vectors. */
const functions: Readonly<Record<string, readonly [readonly number[], (a: Tensor) => Tensor]>> = {
  svdvals: [[2, 4, 3], (a) => linalg.svdvals(a)],
  svd: [[4, 4], (a) => made(...linalg.svd(a))],
  'svd of a tall matrix': [[5, 3], (a) => made(...linalg.svd(a))],
  'svd of a wide matrix': [[3, 5], (a) => made(...linalg.svd(a, { fullMatrices: false }))],
  'left vectors alone': [
    [5, 3],
    (a) => square(sn.narrow(linalg.svd(a, { fullMatrices: false })[0], -1, 0, 2)),
  ],
  'right vectors alone': [[3, 5], (a) => square(transposed(sn.narrow(linalg.svd(a)[2], -2, 0, 2)))],
  eigvalsh: [[4, 4], (a) => linalg.eigvalsh(sn.add(a, transposed(a)))],
  eigh: [
    [4, 4],
    (a) => {
      const [w, v] = linalg.eigh(sn.add(a, transposed(a)), { uplo: 'U' });
      return sn.matmul(sn.mul(v, sn.unsqueeze(sn.sin(w), -2)), transposed(v));
    },
  ],
  'svd of a complex matrix': [[2, 3, 3], (a) => apart(made(...linalg.svd(paired(a))))],
  'svd of a tall complex matrix': [
    [2, 4, 2],
    (a) => apart(made(...linalg.svd(paired(a), { fullMatrices: false }))),
  ],
  'eigh of a complex matrix': [
    [2, 3, 3],
    (a) => {
      const [w, v] = linalg.eigh(hermitian(paired(a)));
      return apart(sn.matmul(sn.mul(v, sn.unsqueeze(sn.sin(w), -2)), sn.adjoint(v)));
    },
  ],
  eigvals: [[2, 3, 3], (a) => apart(sn.sum(sn.exp(linalg.eigvals(a)), -1))],
  eig: [
    [3, 3],
    (a) => {
      const [w, v] = linalg.eig(a);
      return apart(sn.matmul(sn.mul(v, sn.unsqueeze(sn.exp(w), -2)), linalg.pinv(v)));
    },
  ],
  'eigvals of a complex matrix': [[2, 3, 3], (a) => apart(sn.sum(sn.exp(linalg.eigvals(paired(a)))))],
  'pinv of a complex matrix': [[2, 3, 2], (a) => apart(linalg.pinv(paired(a)))],
  'matrixExp of a complex matrix': [[2, 2, 2], (a) => apart(sn.matrixExp(paired(a)))],
  'norms of complex numbers': [
    [2, 2, 3],
    (a) =>
      sn.stack([
        linalg.norm(paired(a)),
        linalg.matrixNorm(paired(a), 'nuc'),
        linalg.matrixNorm(paired(a), 1),
      ]),
  ],
  pinv: [[4, 3], (a) => linalg.pinv(a)],
  'pinv of a wide matrix': [[2, 3, 4], (a) => linalg.pinv(a)],
  'pinv of a symmetric matrix': [[3, 3], (a) => linalg.pinv(sn.add(a, transposed(a)), { hermitian: true })],
  cond: [[3, 3], (a) => linalg.cond(a)],
  'cond by sums': [[3, 3], (a) => linalg.cond(a, 1)],
  matrixExp: [[2, 3, 3], (a) => sn.matrixExp(sn.mul(a, 3))],
  'nuclear norm': [[2, 3, 4], (a) => linalg.matrixNorm(a, 'nuc')],
  'matrix norms': [
    [4, 3],
    (a) => sn.stack([1, -1, 2, -2, Infinity, -Infinity].map((ord) => linalg.matrixNorm(a, ord))),
  ],
  'vector norms': [
    [5],
    (a) => sn.stack([-3, -1, 0.5, 1, 2.5, Infinity].map((ord) => linalg.vectorNorm(a, ord))),
  ],
  cdist: [[2, 4, 3], (a) => sn.stack([1, 1.5, 2, 3, Infinity].map((p) => sn.cdist(a, sn.mul(a, -1.5), p)))],
  pdist: [[5, 2], (a) => sn.stack([1, 2, 4].map((p) => sn.pdist(a, p)))],
  pairwiseDistance: [[4, 3], (a) => sn.pairwiseDistance(a, sn.mul(a, 2))],
  cross: [[2, 3], (a) => linalg.cross(a, sn.exp(a))],
  vander: [[4], (a) => linalg.vander(a, { n: 5 })],
};

/** Central differences of a function of one matrix. */
async function differences(f: (a: Tensor) => Tensor, at: Tensor): Promise<number[]> {
  const data = Array.from(await at.data(), Number);
  const found: number[] = [];
  for (let i = 0; i < data.length; i++) {
    const [more, less] = [1e-5, -1e-5].map((step) =>
      f(sn.reshape(sn.tensor(Float64Array.from(data.with(i, data[i]! + step)), { dtype: 'f64' }), at.shape)),
    );
    found.push((Number(await more!.item()) - Number(await less!.item())) / 2e-5);
  }
  return found;
}

async function expectNear(found: Tensor, expected: readonly number[], digits: number): Promise<void> {
  const scale = Math.max(1, ...expected.map(Math.abs));
  Array.from(await found.data(), Number).forEach((x, i) =>
    expect(x / scale).toBeCloseTo(expected[i]! / scale, digits),
  );
}

describe.each(Object.entries(functions))('%s', (_, [shape, of]) => {
  const f = (a: Tensor): Tensor => weighed(of(a));

  test('has the derivative that differences show', async () => {
    const at = matrix(shape, 13, 'f64');
    await expectNear(grad(f)(at), await differences(f, at), 6);
  });

  test('has the second derivative that differences show', async () => {
    const at = matrix(shape, 13, 'f64');
    const slope = (a: Tensor): Tensor => weighed(sn.mul(grad(f)(a), 1));
    await expectNear(grad(slope)(at), await differences(slope, at), 5);
  });
});

test('equal vectors have no distance, and pull nowhere', async () => {
  const x = sn.tensor([[1, 2]]);
  for (const p of [0, 1, 1.5, 2, 3, Infinity]) {
    const pull = grad((a: Tensor) => sn.sum(sn.cdist(a, x, p)))(x);
    expect(await pull.array()).toEqual([[0, 0]]);
  }
});

test('of several greatest differences each has the whole derivative', async () => {
  const pull = grad((a: Tensor) => sn.sum(sn.cdist(a, sn.tensor([[0, 0, 0]]), Infinity)))(
    sn.tensor([[2, -2, 1]]),
  );
  expect(await pull.array()).toEqual([[1, -1, 0]]);
});
