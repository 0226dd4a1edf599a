import { afterAll, beforeAll, describe, expect, test } from 'vitest';

import * as sn from '../../../src/index.ts';
import { everyDevice } from '../../support/devices.ts';

/** Numbers of a generator that tests can repeat, in [−1, 1). */
function numbers(seed: number): () => number {
  let state = seed >>> 0 || 1;
  return () => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return state / 2 ** 31 - 1;
  };
}

type Float = 'f32' | 'f64';
const unit: Readonly<Record<Float, number>> = { f32: 2 ** -24, f64: 2 ** -53 };

function random(shape: readonly number[], dtype: Float, seed = 1): sn.Tensor {
  const next = numbers(seed);
  const size = shape.reduce((product, dim) => product * dim, 1);
  const data = Array.from({ length: size }, next);
  const typed = dtype === 'f32' ? Float32Array.from(data) : Float64Array.from(data);
  return sn.tensor(typed, { dtype }).reshape(shape);
}

/** The largest sum of the moduli of a row, of any matrix of a stack, in double precision. */
async function norm(x: sn.Tensor): Promise<number> {
  const columns = x.shape.at(-1)!;
  const data = await x.data();
  let most = 0;
  for (let at = 0; at < data.length; at += columns) {
    let sum = 0;
    for (let j = 0; j < columns; j++) sum += Math.abs(Number(data[at + j]));
    most = Number.isNaN(sum) ? NaN : Math.max(most, sum);
  }
  return most;
}

/** LAPACK's measure: ‖found − wanted‖ / (n·‖of‖·ε). */
async function ratio(found: sn.Tensor, wanted: sn.Tensor, of: sn.Tensor, n: number): Promise<number> {
  const [off, size] = [await norm(found.sub(wanted)), await norm(of)];
  return off === 0 ? 0 : off / (n * size * 2 * unit[of.dtype as Float]);
}

/** What LAPACK's own tests let pass. */
const threshold = 30;

const identity = (n: number, dtype: Float): sn.Tensor => sn.eye(n, n, { dtype });

/** Matrices that are hard on elimination: graded, ill-conditioned, with equal columns, by name. */
const shaped: Readonly<Record<string, (n: number, dtype: Float) => sn.Tensor>> = {
  random: (n, dtype) => random([n, n], dtype),
  'graded by rows': (n, dtype) =>
    random([n, n], dtype).mul(
      sn.tensor(
        Array.from({ length: n }, (_, i) => [10 ** (-6 * (i / n))]),
        { dtype },
      ),
    ),
  'graded by columns': (n, dtype) =>
    random([n, n], dtype).mul(
      sn.tensor([Array.from({ length: n }, (_, i) => 10 ** (6 * (i / n)))], { dtype }),
    ),
  'of Hilbert': (n, dtype) =>
    sn.tensor(
      Array.from({ length: n }, (_, i) => Array.from({ length: n }, (__, j) => 1 / (i + j + 1))),
      { dtype },
    ),
  'a transpose': (n, dtype) => random([n, n], dtype, 3).transpose(0, 1),
};

afterAll(() => sn.setDevice(undefined));

describe.each(everyDevice)('on %s', (device) => {
  beforeAll(() => sn.setDevice(device));
  const dtypes: readonly Float[] = device === 'webgpu:software' ? ['f32'] : ['f32', 'f64'];
  // Matrices of several panels; a tracer, or an interpreter, takes its time for them.
  const sizes = device === 'wasm' ? [1, 2, 40, 150] : [1, 70];
  const hard = Object.entries(shaped).slice(0, device === 'wasm' ? undefined : 2);

  describe.each(dtypes)('%s', (dtype) => {
    test.each(sizes)('L·Lᵀ is the matrix that cholesky factors, n = %i', async (n) => {
      const x = random([2, n, n], dtype);
      const a = x.matmul(x.transpose(1, 2)).add(identity(n, dtype).mul(0.1));
      const l = sn.cholesky(a);
      expect(await ratio(l.matmul(l.transpose(1, 2)), a, a, n)).toBeLessThan(threshold);
      expect(await norm(l.sub(l.tril()))).toBe(0);
      const u = sn.cholesky(a, { upper: true });
      expect(await ratio(u.transpose(1, 2).matmul(u), a, a, n)).toBeLessThan(threshold);
      const b = random([2, n, 3], dtype, 5);
      const solved = sn.choleskySolve(b, l);
      expect(
        await ratio(
          a.matmul(solved),
          b,
          a
            .abs()
            .sum(2, { keepdim: true })
            .mul(solved.abs().amax(1, { keepdim: true })),
          n,
        ),
      ).toBeLessThan(threshold);
    });

    for (const [name, make] of hard) {
      test.each(sizes)(`P·L·U, Q·R and X are good factors and solutions, ${name}, n = %i`, async (n) => {
        const a = make(n, dtype);
        const [p, l, u] = sn.linalg.lu(a);
        expect(await ratio(p.matmul(l).matmul(u), a, a, n)).toBeLessThan(threshold);
        expect(await norm(l.abs().amax().reshape([1, 1]))).toBeLessThanOrEqual(1);
        const [q, r] = sn.qr(a);
        expect(await ratio(q.matmul(r), a, a, n)).toBeLessThan(threshold);
        expect(
          await ratio(q.transpose(0, 1).matmul(q), identity(n, dtype), identity(n, dtype), n),
        ).toBeLessThan(threshold);
        expect(await norm(r.sub(r.triu()))).toBe(0);
        const b = random([n, 2], dtype, 9);
        const x = sn.linalg.solve(a, b);
        const [residual, size, length] = [await norm(a.matmul(x).sub(b)), await norm(a), await norm(x)];
        expect(residual / (n * size * length * 2 * unit[dtype])).toBeLessThan(threshold);
      });
    }

    test('tall and wide matrices have factors too', async () => {
      for (const [m, n] of [
        [90, 20],
        [20, 90],
        [33, 65],
        [65, 33],
        [3, 1],
        [1, 3],
      ] as const) {
        const a = random([2, m, n], dtype, m);
        const size = Math.max(m, n);
        const [p, l, u] = sn.linalg.lu(a);
        expect(await ratio(p.matmul(l).matmul(u), a, a, size)).toBeLessThan(threshold);
        const [q, r] = sn.qr(a);
        expect(await ratio(q.matmul(r), a, a, size)).toBeLessThan(threshold);
        const [whole] = sn.qr(a, { mode: 'complete' });
        const gram = whole.transpose(1, 2).matmul(whole);
        expect(await ratio(gram, identity(m, dtype), identity(m, dtype), m)).toBeLessThan(threshold);
        const [packed, tau] = sn.geqrf(a);
        expect(
          await ratio(
            sn.ormqr(packed, tau, a, { transpose: true }),
            sn.qr(a, { mode: 'complete' })[1],
            a,
            size,
          ),
        ).toBeLessThan(threshold);
        const [lu, pivots] = sn.linalg.luFactor(a);
        const parts = sn.luUnpack(lu, pivots);
        expect(await ratio(parts[0].matmul(parts[1]).matmul(parts[2]), a, a, size)).toBeLessThan(threshold);
      }
    });
  });

  test('the first minor that is not positive is told, and fails the next read', async () => {
    const a = sn.tensor([
      [
        [4, 0, 0],
        [0, -1, 0],
        [0, 0, 1],
      ],
      [
        [1, 0, 0],
        [0, 1, 0],
        [0, 0, 1],
      ],
    ]);
    const [, info] = sn.linalg.choleskyEx(a);
    expect(await info.array()).toEqual([2, 0]);
    const l = sn.cholesky(a);
    await expect(l.data()).rejects.toThrow(
      /cholesky: matrix 0 of the stack is not positive definite: its leading minor of order 2/,
    );
  });

  test('a singular matrix is told, and fails the next read', async () => {
    const a = sn.tensor([
      [1, 2],
      [2, 4],
    ]);
    expect(await sn.linalg.invEx(a)[1].item()).toBe(2);
    expect(await sn.linalg.solveEx(a, sn.ones([2]))[1].item()).toBe(2);
    expect(await sn.linalg.luFactorEx(a)[2].item()).toBe(2);
    await expect(sn.linalg.inv(a).data()).rejects.toThrow(
      /inv: the matrix is singular: pivot 2 of its U is 0/,
    );
    await expect(sn.linalg.solve(a, sn.ones([2])).data()).rejects.toThrow(/solve: the matrix is singular/);
    await expect(sn.linalg.invEx(a, { checkErrors: true })[0].data()).rejects.toThrow(/invEx: /);
    expect(Math.abs(Number(await sn.det(a).item()))).toBe(0);
    expect(await sn.ones([2]).array()).toEqual([1, 1]);
  });
});

describe('complex matrices', () => {
  beforeAll(() => sn.setDevice('wasm'));

  test('have inverses, triangles and solutions', async () => {
    const a = sn.complex(random([2, 5, 5], 'f64'), random([2, 5, 5], 'f64', 2));
    const b = sn.complex(random([2, 5, 3], 'f64', 3), random([2, 5, 3], 'f64', 4));
    const size = async (x: sn.Tensor): Promise<number> => norm(x.abs());
    expect(await size(a.matmul(sn.inverse(a)).sub(sn.eye(5, 5, { dtype: 'f64' })))).toBeLessThan(1e-11);
    expect(await size(a.matmul(sn.linalg.solve(a, b)).sub(b))).toBeLessThan(1e-11);
    expect(
      await size(sn.linalg.solve(a, b.transpose(1, 2), { left: false }).matmul(a).sub(b.transpose(1, 2))),
    ).toBeLessThan(1e-11);
    const positive = a.matmul(sn.adjoint(a)).add(sn.eye(5, 5, { dtype: 'f64' }));
    const l = sn.cholesky(positive);
    expect(await size(l.matmul(sn.adjoint(l)).sub(positive))).toBeLessThan(1e-11);
    expect(await size(positive.matmul(sn.choleskySolve(b, l)).sub(b))).toBeLessThan(1e-10);
    const x = sn.linalg.solveTriangular(a.triu(), b, { upper: true });
    expect(await size(a.triu().matmul(x).sub(b))).toBeLessThan(1e-10);
  });
});

describe('shapes', () => {
  beforeAll(() => sn.setDevice('wasm'));

  test('nothing has factors of nothing', async () => {
    const none = sn.zeros([2, 0, 0]);
    expect(sn.cholesky(none).shape).toEqual([2, 0, 0]);
    expect(await sn.det(none).array()).toEqual([1, 1]);
    expect(await sn.slogdet(none)[1].array()).toEqual([0, 0]);
    expect(sn.inverse(none).shape).toEqual([2, 0, 0]);
    expect(await sn.inverse(none).array()).toEqual([[], []]);
    expect(sn.linalg.solve(none, sn.zeros([2, 0, 3])).shape).toEqual([2, 0, 3]);
    expect(sn.qr(sn.zeros([4, 0]))[0].shape).toEqual([4, 0]);
    expect(await sn.qr(sn.zeros([2, 0]), { mode: 'complete' })[0].array()).toEqual([
      [1, 0],
      [0, 1],
    ]);
    expect(await sn.linalg.lu(sn.zeros([2, 0]))[0].array()).toEqual([
      [1, 0],
      [0, 1],
    ]);
    expect(sn.linalg.luFactor(sn.zeros([0, 3, 2]))[1].shape).toEqual([0, 2]);
  });

  test('vectors and batches of right-hand sides broadcast', async () => {
    const a = random([3, 1, 4, 4], 'f64');
    const vector = random([4], 'f64', 2);
    const x = sn.linalg.solve(a, vector);
    expect(x.shape).toEqual([3, 1, 4]);
    const many = sn.linalg.solve(a, random([2, 4, 2], 'f64', 3));
    expect(many.shape).toEqual([3, 2, 4, 2]);
    const right = sn.linalg.solve(a, random([5, 4], 'f64', 3), { left: false });
    expect(await norm(right.matmul(a).sub(random([5, 4], 'f64', 3)))).toBeLessThan(1e-12);
  });

  test('integers, halves and vectors are refused by name', () => {
    expect(() => sn.cholesky(sn.zeros([2, 2], { dtype: 'i32' }))).toThrow(
      /cholesky: expects f32 or f64: i32\[2,2\]/,
    );
    expect(() => sn.det(sn.zeros([2, 2], { dtype: 'f16' }))).toThrow(/det: expects f32 or f64/);
    expect(() => sn.inverse(sn.zeros([3]))).toThrow(/inverse: expects matrices/);
    expect(() => sn.inverse(sn.zeros([2, 3]))).toThrow(/inverse: expects square matrices: f32\[2,3\]/);
    expect(() => sn.linalg.solve(sn.eye(3), sn.zeros([2, 2]))).toThrow(
      /solve: the right-hand sides do not fit/,
    );
    expect(() => sn.linalg.multiDot([sn.eye(2)])).toThrow(/multiDot: expects two matrices at least, got 1/);
  });
});

describe('compiled functions', () => {
  beforeAll(() => sn.setDevice('wasm'));

  test('tell at each call whether a matrix is singular', async () => {
    const solve = sn.compile((a: sn.Tensor, b: sn.Tensor) => sn.linalg.solve(a, b));
    const b = sn.tensor([2, 4]);
    expect(
      await solve(
        sn.tensor([
          [2, 0],
          [0, 4],
        ]),
        b,
      ).array(),
    ).toEqual([1, 1]);
    await expect(
      solve(
        sn.tensor([
          [2, 0],
          [0, 0],
        ]),
        b,
      ).array(),
    ).rejects.toThrow(/solve: the matrix is singular/);
    expect(
      await solve(
        sn.tensor([
          [1, 0],
          [0, 2],
        ]),
        b,
      ).array(),
    ).toEqual([2, 2]);
  });

  test('products take the order with the fewest multiplications', async () => {
    const [x, y, z] = [random([2, 30], 'f64'), random([30, 20], 'f64', 2), random([20], 'f64', 3)];
    const found = await sn.linalg.multiDot([x, y, z]).data();
    const wanted = await x.matmul(y).matmul(z).data();
    found.forEach((value, i) => expect(Number(value)).toBeCloseTo(Number(wanted[i]), 10));
    const scaled = (a: sn.Tensor): sn.Tensor => sn.matrixPower(a, -3).matmul(sn.matrixPower(a, 3));
    const eye = scaled(
      sn
        .eye(4, 4, { dtype: 'f64' })
        .mul(2)
        .add(random([4, 4], 'f64').mul(0.1)),
    );
    expect(await norm(eye.sub(identity(4, 'f64')))).toBeLessThan(1e-12);
  });
});

describe('derivatives', () => {
  beforeAll(() => sn.setDevice('interpreter'));

  const lower = (a: sn.Tensor): sn.Tensor => a.tril().add(sn.eye(3, 3, { dtype: 'f64' }));
  const positive = (a: sn.Tensor): sn.Tensor =>
    a.matmul(a.transpose(0, 1)).add(sn.eye(3, 3, { dtype: 'f64' }));
  const functions: Readonly<Record<string, (a: sn.Tensor) => sn.Tensor>> = {
    cholesky: (a) => sn.cholesky(positive(a)),
    choleskySolve: (a) => sn.choleskySolve(a, lower(a)),
    choleskyInverse: (a) => sn.choleskyInverse(lower(a)),
    solve: (a) => sn.linalg.solve(a, a.mul(a)),
    'solve from the right': (a) => sn.linalg.solve(a, a.square(), { left: false }),
    solveTriangular: (a) => sn.linalg.solveTriangular(a, a.square(), { upper: true }),
    inv: (a) => sn.linalg.inv(a),
    det: (a) => sn.det(a),
    slogdet: (a) => sn.slogdet(a)[1],
    logdet: (a) => sn.logdet(positive(a)),
    'factors of lu': (a) => sn.linalg.luFactor(a)[0],
    'Q and R': (a) => sn.cat([sn.qr(a)[0], sn.qr(a)[1]], 0),
    'wide Q and R': (a) => sn.qr(a.slice(0, 0, 2))[1],
    householderProduct: (a) => sn.linalg.householderProduct(a, a.slice(0, 0, 1).reshape([3])),
    lstsq: (a) => sn.linalg.lstsq(sn.cat([a, a.square()], 0), sn.cat([a.sin(), a], 0)).solution,
    matrixPower: (a) => sn.matrixPower(a, -2),
  };

  test.each(Object.entries(functions))('%s: first and second ones equal differences', async (_, f) => {
    const a = random([3, 3], 'f64', 11).add(
      sn.tensor(
        [
          [3, 0, 0],
          [0, -2, 0],
          [0, 0, 4],
        ],
        { dtype: 'f64' },
      ),
    );
    const [along, weights] = [random([3, 3], 'f64', 12), random([9, 3], 'f64', 13)];
    const loss = (x: sn.Tensor): sn.Tensor => {
      const y = f(x);
      const flat = y.reshape([y.size]);
      return flat.mul(weights.reshape([27]).slice(0, 0, y.size)).sum();
    };
    const slope = (x: sn.Tensor): sn.Tensor => sn.grad(loss)(x).mul(along).sum();
    const step = 1e-5;
    for (const [whole, derivative] of [
      [loss, slope],
      [slope, (x: sn.Tensor) => sn.grad(slope)(x).mul(along).sum()],
    ] as const) {
      const [up, down] = [
        await whole(a.add(along.mul(step))).item(),
        await whole(a.sub(along.mul(step))).item(),
      ];
      const difference = (Number(up) - Number(down)) / (2 * step);
      const found = Number(await derivative(a).item());
      expect(Math.abs(found - difference)).toBeLessThan(1e-6 * Math.max(1, Math.abs(difference)));
    }
  });

  test('det has the adjugate as derivative where it is 0', async () => {
    const singular = [
      [
        [1, 2, 3],
        [2, 4, 6],
        [0, 1, 5],
      ],
      [
        [1, 2, 3, 0],
        [2, 4, 6, 0],
        [0, 1, 5, 0],
        [0, 0, 0, 2],
      ],
    ];
    const adjugate = [14, -10, 2, -7, 5, -1, 0, 0, 0];
    for (const [i, rows] of singular.entries()) {
      const found = sn.grad((x: sn.Tensor) => sn.det(x))(sn.tensor(rows, { dtype: 'f64' }));
      const corner = found
        .narrow(0, 0, 3)
        .narrow(1, 0, 3)
        .div(i + 1);
      expect(
        await corner
          .sub(sn.tensor(adjugate).reshape([3, 3]))
          .abs()
          .amax()
          .item(),
      ).toBeLessThan(1e-9);
    }
  });

  test('det of up to three rows has second derivatives whatever its rank', async () => {
    const det = (x: sn.Tensor): sn.Tensor => sn.det(x);
    const rankOne = sn.tensor([1, 2, 3, 2, 4, 6, 3, 6, 9], { dtype: 'f64' }).reshape([3, 3]);
    // jax.hessian(jnp.linalg.det) there: rows 0 and 4 of nine.
    const hessian = sn.hessian(det)(rankOne).reshape([9, 9]);
    const rows = hessian.indexSelect(0, sn.tensor([0, 4], { dtype: 'i32' }));
    expect(Array.from(await rows.data(), Number)).toEqual([
      0, 0, 0, 0, 9, -6, 0, -6, 4, 9, 0, -3, 0, 0, 0, -3, 0, 1,
    ]);
    const z = sn.zeros([2, 2], { dtype: 'f64' });
    const signs = [0, 0, 0, 1, 0, 0, -1, 0, 0, -1, 0, 0, 1, 0, 0, 0];
    const atZero = await sn.hessian(det)(z).data();
    expect(Array.from(atZero, Number).map((x) => x + 0)).toEqual(signs);
    expect(
      await sn
        .hessian(det)(sn.ones([1, 1]))
        .reshape([1])
        .array(),
    ).toEqual([0]);
    const third = sn.jacfwd(sn.hessian(det))(sn.zeros([3, 3], { dtype: 'f64' }));
    // The signs of the six permutations, each in every order of its three places.
    expect(await third.abs().sum().item()).toBe(36);
  });
});
