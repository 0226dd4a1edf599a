// Decompositions on every device, by what LAPACK's tests measure: how far the factors are from making the matrix again, and how
// far from orthonormal they are, in units of n·ε. Values must be sorted.

import { beforeAll, describe, expect, test } from 'vitest';
import * as linalg from '../../../../src/operations/linalg.ts';
import * as sn from '../../../../src/operations/index.ts';
import { setDevice } from '../../../../src/tensor/device.ts';
import type { Tensor } from '../../../../src/tensor/tensor.ts';
import { everyDevice } from '../../../support/devices.ts';
import {
  complexMatrix,
  matrix,
  miss,
  spectra,
  tilt,
  transposed,
  withValues,
  type Float,
} from './matrices.ts';

const shapes: readonly (readonly number[])[] = [
  [1, 1],
  [6, 6],
  [9, 4],
  [3, 7],
  [2, 3, 5, 5],
  [20, 33],
  [0, 4],
  [4, 0],
  [0, 3, 3],
];

async function isSorted(x: Tensor, descending: boolean): Promise<boolean> {
  const values = Array.from(await x.data(), Number);
  const n = x.shape.at(-1)!;
  return values.every(
    (value, i) => i % n === 0 || (descending ? value <= values[i - 1]! : value >= values[i - 1]!),
  );
}

/** Of U·diag(s)·Vᴴ. */
async function checkSvd(a: Tensor): Promise<void> {
  const [m, n] = a.shape.slice(-2) as [number, number];
  const side = Math.max(m, n);
  const [u, s, vh] = linalg.svd(a, { fullMatrices: false });
  const made = sn.matmul(sn.mul(u, sn.unsqueeze(s, -2)), vh);
  expect(await miss(made, a, a, side), 'U·diag(s)·Vᴴ − A').toBeLessThan(10);
  expect(await tilt(u), 'UᴴU − 1').toBeLessThan(10);
  expect(await tilt(transposed(vh)), 'VᴴV − 1').toBeLessThan(10);
  expect(await isSorted(s, true)).toBe(true);
  expect(await miss(linalg.svdvals(a), s, s, side), 'values alone').toBeLessThan(10);
}

async function checkFull(a: Tensor): Promise<void> {
  const [m, n] = a.shape.slice(-2) as [number, number];
  const [u, s, vh] = linalg.svd(a);
  expect([u.shape.at(-1), vh.shape.at(-2)]).toEqual([m, n]);
  expect(await tilt(u), 'whole UᴴU − 1').toBeLessThan(10);
  expect(await tilt(transposed(vh)), 'whole VᴴV − 1').toBeLessThan(10);
  const k = Math.min(m, n);
  const made = sn.matmul(sn.mul(sn.narrow(u, -1, 0, k), sn.unsqueeze(s, -2)), sn.narrow(vh, -2, 0, k));
  expect(await miss(made, a, a, Math.max(m, n))).toBeLessThan(10);
}

async function checkEigh(h: Tensor): Promise<void> {
  const n = h.shape.at(-1)!;
  const [w, v] = linalg.eigh(h);
  expect(await miss(sn.matmul(h, v), sn.mul(v, sn.unsqueeze(w, -2)), h, n), 'H·V − V·w').toBeLessThan(10);
  expect(await tilt(v), 'VᴴV − 1').toBeLessThan(10);
  expect(await isSorted(w, false)).toBe(true);
  expect(await miss(linalg.eigvalsh(h), w, h, n), 'values alone').toBeLessThan(10);
}

/** x·V = V·diag(w), with vectors of length 1 and values that sum to the trace. */
async function checkEig(a: Tensor): Promise<void> {
  const n = a.shape.at(-1)!;
  const [w, v] = linalg.eig(a);
  if (a.size === 0) return expect(v.shape).toEqual(a.shape);
  const wide = sn.cast(a, v.dtype);
  expect(await miss(sn.matmul(wide, v), sn.mul(v, sn.unsqueeze(w, -2)), a, n), 'A·V − V·w').toBeLessThan(10);
  const lengths = linalg.vectorNorm(v, 2, -2);
  expect(await miss(lengths, sn.onesLike(lengths), lengths, n), 'lengths').toBeLessThan(10);
  const trace = sn.sum(linalg.diagonal(wide), -1);
  expect(await miss(sn.sum(w, -1), trace, a, n * n), 'trace').toBeLessThan(10);
  expect(await miss(linalg.eigvals(a), w, a, n), 'values alone').toBe(0);
}

describe.each(everyDevice)('%s', (device) => {
  beforeAll(() => setDevice(device));
  // Each size is a kernel of its own: where compilers take long, a few stand for all.
  const isQuick = device === 'interpreter' || device === 'wasm';
  const dtypes: readonly Float[] = isQuick ? ['f32', 'f64'] : ['f32'];

  test.each(dtypes)('singular values and vectors in %s', async (dtype) => {
    for (const shape of isQuick ? shapes : shapes.slice(2, 4)) {
      const a = matrix(shape, 3, dtype);
      if (a.size === 0 && shape.length > 2) {
        expect(linalg.svd(a)[0].shape).toEqual(shape);
        continue;
      }
      await checkSvd(a);
      if (shape.length === 2) await checkFull(a);
    }
  });

  test.each(dtypes)('eigenvalues and eigenvectors of symmetric matrices in %s', async (dtype) => {
    const some = [
      [6, 6],
      [1, 1],
      [2, 3, 5, 5],
      [24, 24],
    ];
    for (const shape of isQuick ? some : some.slice(0, 1)) {
      const a = matrix(shape, 7, dtype);
      await checkEigh(sn.add(a, transposed(a)));
    }
  });

  test.each(dtypes)('complex matrices of %s', async (dtype) => {
    for (const shape of isQuick
      ? [
          [5, 5],
          [7, 3],
          [2, 4],
          [2, 3, 3],
          [1, 1],
        ]
      : [[5, 3]]) {
      const a = complexMatrix(shape, 15, dtype);
      await checkSvd(a);
      if (shape.length === 2) await checkFull(a);
      if (shape.at(-1) === shape.at(-2)) await checkEigh(sn.add(a, transposed(a)));
    }
    const narrow = complexMatrix([4, 2], 17, dtype);
    await checkFull(sn.matmul(narrow, transposed(narrow)));
  });

  test.each(dtypes)('eigenvalues and eigenvectors of any matrix in %s', async (dtype) => {
    for (const shape of isQuick
      ? [
          [1, 1],
          [2, 2],
          [5, 5],
          [2, 3, 3],
          [17, 17],
          [0, 0],
        ]
      : [[4, 4]]) {
      await checkEig(matrix(shape, 19, dtype));
      await checkEig(complexMatrix(shape, 23, dtype));
    }
    // A turn, a cycle, a triangle with equal values, one that is far from normal, and nothing.
    const hard = [
      [
        [0, -1],
        [1, 0],
      ],
      [
        [0, 0, 1],
        [1, 0, 0],
        [0, 1, 0],
      ],
      [
        [2, 1, 0],
        [0, 2, 1],
        [0, 0, 2],
      ],
      [
        [1, 1e4, 0],
        [0, 2, 1e4],
        [0, 0, 3],
      ],
      [
        [0, 0],
        [0, 0],
      ],
    ];
    for (const rows of isQuick ? hard : []) await checkEig(sn.tensor(rows, { dtype }));
  });

  test.each(dtypes)('values that are easy to get wrong, in %s', async (dtype) => {
    const hard = Object.values(spectra);
    for (const values of isQuick ? hard : hard.slice(0, 2)) {
      await checkSvd(withValues(values, dtype, false));
      await checkEigh(
        withValues(
          values.map((value, i) => (i % 2 === 0 ? value : -value)),
          dtype,
          true,
        ),
      );
    }
    const zero = sn.zeros([3, 2], { dtype });
    await checkSvd(zero);
    await checkFull(zero);
    await checkEigh(sn.zeros([3, 3], { dtype }));
    expect(await linalg.matrixRank(withValues(spectra['rank-deficient']!, dtype, false)).item()).toBe(3);
  });
});

describe('interpreter', () => {
  beforeAll(() => setDevice('interpreter'));

  test('small singular values of graded columns keep their digits', async () => {
    const a = sn.matmul(
      matrix([4, 4], 9, 'f64'),
      sn.diag(sn.tensor([1, 1e-6, 1e-12, 1e-20], { dtype: 'f64' })),
    );
    const s = Array.from(await linalg.svdvals(a).data(), Number);
    // The product of all is the determinant, whose factor of the graded ones is exact.
    const whole = Array.from(await linalg.svdvals(matrix([4, 4], 9, 'f64')).data(), Number);
    const product = (values: readonly number[]): number => values.reduce((p, value) => p * value, 1);
    expect(product(s) / (product(whole) * 1e-38)).toBeCloseTo(1, 9);
  });

  test('what is not finite gives NaN, not numbers', async () => {
    for (const value of [NaN, Infinity]) {
      const a = sn.tensor([
        [1, 2],
        [value, 3],
      ]);
      for (const x of [...linalg.svd(a), ...linalg.eigh(a)])
        expect(Array.from(await x.data(), Number).every(Number.isNaN)).toBe(true);
    }
  });

  test('one triangle stands for both', async () => {
    const [lower, upper] = [
      sn.tensor([
        [2, 9],
        [1, 3],
      ]),
      sn.tensor([
        [2, 1],
        [9, 3],
      ]),
    ];
    const [a, b] = [linalg.eigvalsh(lower), linalg.eigvalsh(upper, { uplo: 'U' })];
    expect(await a.array()).toEqual(await b.array());
    expect(await sn.sum(a).item()).toBeCloseTo(5, 5);
  });

  test('of no singular values the rank is 0 and the exponential is 1', async () => {
    expect(await linalg.matrixRank(sn.zeros([2, 0, 3])).array()).toEqual([0, 0]);
    expect(await sn.matrixExp(sn.zeros([2, 2])).array()).toEqual([
      [1, 0],
      [0, 1],
    ]);
  });

  test.each([1e-3, 1, 30, 3000])('the exponential of a rotation by %s turns by it', async (angle) => {
    const turned = sn.matrixExp(
      sn.tensor(
        [
          [0, -angle],
          [angle, 0],
        ],
        { dtype: 'f64' },
      ),
    );
    const [cosine, sine] = [Math.cos(angle), Math.sin(angle)];
    const expected = [cosine, -sine, sine, cosine];
    Array.from(await turned.data(), Number).forEach((x, i) => expect(x).toBeCloseTo(expected[i]!, 9));
  });

  test('zeros are as ill-conditioned as can be', async () => {
    expect(await linalg.cond(sn.zeros([2, 2])).item()).toBe(Infinity);
    expect(await linalg.cond(sn.tensor([[NaN]])).item()).toBeNaN();
  });

  test('an exponential of what is too large is NaN', async () => {
    expect(await sn.matrixExp(sn.tensor([[1e9]])).array()).toEqual([[NaN]]);
  });

  test('half precision is refused, and the way out is named', () => {
    const half = sn.zeros([2, 2], { dtype: 'f16' });
    for (const call of [linalg.svd, linalg.eigh, linalg.pinv, linalg.matrixRank, sn.matrixExp] as const)
      expect(() => call(half)).toThrow(/expects f32, f64, c64 or c128: f16\[2,2\][^]*cast\('f32'\)/);
  });
});
