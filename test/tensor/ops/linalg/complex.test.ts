// Factors of complex matrices and what is solved with them: by LAPACK's measures of backward errors on every device, and derivatives
// in PyTorch's convention against differences.

import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import * as sn from '../../../../src/index.ts';
import { everyDevice } from '../../../support/devices.ts';

type Part = 'f32' | 'f64';
const epsilon: Readonly<Record<Part, number>> = { f32: 2 ** -23, f64: 2 ** -52 };
/** What LAPACK's own tests let pass. */
const threshold = 30;

/** Numbers of a generator that tests can repeat, in [−1, 1). */
function real(shape: readonly number[], part: Part, seed: number): sn.Tensor {
  let state = seed >>> 0 || 1;
  const data = Array.from({ length: shape.reduce((n, dim) => n * dim, 1) }, () => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return state / 2 ** 31 - 1;
  });
  const typed = part === 'f32' ? Float32Array.from(data) : Float64Array.from(data);
  return sn.tensor(typed, { dtype: part }).reshape([...shape]);
}

const random = (shape: readonly number[], part: Part, seed = 1): sn.Tensor =>
  sn.complex(real(shape, part, seed), real(shape, part, seed + 100));

/** The largest sum of the moduli of a row. */
async function norm(x: sn.Tensor): Promise<number> {
  const sizes = x.abs();
  const columns = sizes.shape.at(-1)!;
  const data = Array.from(await sizes.data(), Number);
  const sums = Array.from({ length: data.length / columns }, (_, row) =>
    data.slice(row * columns, (row + 1) * columns).reduce((sum, value) => sum + value, 0),
  );
  return sums.some(Number.isNaN) ? NaN : Math.max(0, ...sums);
}

/** LAPACK's measure: ‖found − wanted‖ / (n·‖of‖·ε). */
async function ratio(found: sn.Tensor, wanted: sn.Tensor, of: sn.Tensor, part: Part): Promise<number> {
  const [off, size] = [await norm(found.sub(wanted)), await norm(of)];
  return off === 0 ? 0 : off / (Math.max(...of.shape.slice(-2)) * size * epsilon[part]);
}

const identity = (n: number, part: Part): sn.Tensor => sn.eye(n, n, { dtype: part });
const column = (n: number, value: (i: number) => number, part: Part): sn.Tensor =>
  sn.tensor(
    Array.from({ length: n }, (_, i) => [value(i)]),
    { dtype: part },
  );

const shaped: Readonly<Record<string, (n: number, part: Part) => sn.Tensor>> = {
  random: (n, part) => random([n, n], part),
  'with columns of less than full rank': (n, part) =>
    random([n, Math.ceil(n / 2)], part).matmul(random([Math.ceil(n / 2), n], part, 2)),
  'graded by rows': (n, part) => random([n, n], part).mul(column(n, (i) => 10 ** (-6 * (i / n)), part)),
  'that is imaginary': (n, part) => sn.complex(sn.zeros([n, n], { dtype: part }), real([n, n], part, 3)),
  'that is real': (n, part) => sn.complex(real([n, n], part, 3), sn.zeros([n, n], { dtype: part })),
};

afterAll(() => sn.setDevice(undefined));

describe.each(everyDevice)('on %s', (device) => {
  beforeAll(() => sn.setDevice(device));
  // Matrices of several panels; a tracer, or an interpreter, takes its time for them.
  const isFast = device === 'wasm';
  const parts: readonly Part[] = isFast ? ['f32', 'f64'] : ['f32'];
  const sizes = isFast ? [1, 2, 17, 70] : [19];
  const hard = Object.entries(shaped).filter(([name]) => isFast || name.includes('full rank'));

  describe.each(parts)('%s', (part) => {
    for (const [name, make] of hard) {
      test.each(sizes)(`P·L·U and Q·R are the matrix, ${name}, n = %i`, async (n) => {
        const a = make(n, part);
        const [p, l, u] = sn.linalg.lu(a);
        expect(await ratio(p.matmul(l).matmul(u), a, a, part)).toBeLessThan(threshold);
        // Pivots are great by |re| + |im|: no quotient is longer than √2.
        expect(Number(await l.abs().amax().item())).toBeLessThanOrEqual(1.4143);
        const [q, r] = sn.qr(a);
        expect(await ratio(q.matmul(r), a, a, part)).toBeLessThan(threshold);
        const one = identity(n, part);
        expect(await ratio(sn.adjoint(q).matmul(q), one, one, part)).toBeLessThan(threshold);
        expect(await norm(r.sub(r.triu()))).toBe(0);
        expect(await norm(sn.imag(sn.diagonal(r)).reshape([1, n]))).toBe(0);
      });
    }

    test('tall and wide matrices have factors too', async () => {
      const wide = [[3, 1], [1, 3], [40, 18], [18, 40]] as const; // prettier-ignore
      for (const [m, n] of isFast ? wide : wide.slice(0, 2)) {
        const a = random([2, m, n], part, m);
        const [p, l, u] = sn.linalg.lu(a);
        expect(await ratio(p.matmul(l).matmul(u), a, a, part)).toBeLessThan(threshold);
        const [q, r] = sn.qr(a, { mode: 'complete' });
        expect(await ratio(q.matmul(r), a, a, part)).toBeLessThan(threshold);
        const [packed, tau] = sn.geqrf(a);
        const turned = sn.ormqr(packed, tau, a, { transpose: true });
        expect(await ratio(turned, r, a, part)).toBeLessThan(threshold);
        const back = sn.ormqr(packed, tau, sn.adjoint(a), { left: false });
        expect(await ratio(back, sn.adjoint(r), a, part)).toBeLessThan(threshold);
        const [lu, pivots] = sn.linalg.luFactor(a);
        const [rows, lower, upper] = sn.luUnpack(lu, pivots);
        expect(await ratio(rows.matmul(lower).matmul(upper), a, a, part)).toBeLessThan(threshold);
      }
    });

    test('systems are solved, from both sides and with adjoints', async () => {
      const n = isFast ? 20 : 5;
      const [a, b] = [random([2, n, n], part), random([2, n, 3], part, 7)];
      const residual = async (found: sn.Tensor, wanted: sn.Tensor, x: sn.Tensor): Promise<number> =>
        (await norm(found.sub(wanted))) / (n * (await norm(a)) * (await norm(x)) * epsilon[part]);
      const x = sn.linalg.solve(a, b);
      expect(await residual(a.matmul(x), b, x)).toBeLessThan(threshold);
      const [lu, pivots] = sn.linalg.luFactor(a);
      const y = sn.linalg.luSolve(lu, pivots, b, { adjoint: true });
      expect(await residual(sn.adjoint(a).matmul(y), b, y)).toBeLessThan(threshold);
      const z = sn.linalg.luSolve(lu, pivots, sn.adjoint(b), { left: false });
      expect(await residual(z.matmul(a), sn.adjoint(b), z)).toBeLessThan(threshold);
      const tall = random([30, 5], part, 11);
      const { solution, residuals } = sn.linalg.lstsq(tall, random([30, 2], part, 12));
      const rest = tall.matmul(solution).sub(random([30, 2], part, 12));
      expect(await ratio(sn.adjoint(tall).matmul(rest), sn.zerosLike(solution), tall, part)).toBeLessThan(
        10 * threshold,
      );
      expect(await norm(residuals.sub(rest.abs().square().sum(0)).reshape([1, 2]))).toBeLessThan(
        1e3 * epsilon[part],
      );
    });

    test('det is the product of sign and modulus', async () => {
      const a = random([3, 6, 6], part);
      const [sign, logarithm] = sn.slogdet(a);
      expect(logarithm.dtype).toBe(part);
      const found = sign.mul(logarithm.exp());
      expect(await norm(found.sub(sn.det(a)).reshape([1, 3]))).toBeLessThan(1e4 * epsilon[part]);
      const again = sn.logdet(a).exp();
      expect(await norm(again.sub(found).reshape([1, 3]))).toBeLessThan(1e4 * epsilon[part]);
    });
  });

  test('a singular matrix is told, by the place of its pivot', async () => {
    const a = sn.complex(
      sn.tensor([
        [1, 2],
        [2, 4],
      ]),
      sn.tensor([
        [1, 2],
        [2, 4],
      ]),
    );
    expect(await sn.linalg.invEx(a)[1].item()).toBe(2);
    expect(await sn.linalg.luFactorEx(a)[2].item()).toBe(2);
    expect(await sn.det(a).abs().item()).toBe(0);
    await expect(sn.linalg.solve(a, a).data()).rejects.toThrow(/solve: the matrix is singular: pivot 2/);
  });
});

describe('derivatives', () => {
  beforeAll(() => sn.setDevice('interpreter'));

  const one = (): sn.Tensor => sn.eye(3, 3, { dtype: 'f64' });
  const positive = (a: sn.Tensor): sn.Tensor => a.matmul(sn.adjoint(a)).add(one());
  const functions: Readonly<Record<string, (a: sn.Tensor) => sn.Tensor>> = {
    cholesky: (a) => sn.cholesky(positive(a)),
    choleskySolve: (a) => sn.choleskySolve(a, sn.cholesky(positive(a))),
    solve: (a) => sn.linalg.solve(a, a.mul(a)),
    'solve from the right': (a) => sn.linalg.solve(a, a.mul(a), { left: false }),
    solveTriangular: (a) => sn.linalg.solveTriangular(a, a.mul(a), { upper: true }),
    inv: (a) => sn.linalg.inv(a),
    det: (a) => sn.det(a),
    'sign of the determinant': (a) => sn.slogdet(a)[0],
    'logarithm of the determinant': (a) => sn.complex(sn.slogdet(a)[1], 0),
    logdet: (a) => sn.logdet(a),
    'factors of lu': (a) => sn.linalg.luFactor(a)[0],
    'tall factors of lu': (a) => sn.linalg.luFactor(a.slice(1, 0, 2))[0],
    'wide factors of lu': (a) => sn.linalg.luFactor(a.slice(0, 0, 2))[0],
    'Q and R': (a) => sn.cat([sn.qr(a)[0], sn.qr(a)[1]], 0),
    'tall Q and R': (a) => sn.qr(a.slice(1, 0, 2))[0].matmul(sn.qr(a.slice(1, 0, 2))[1].square()),
    'wide Q and R': (a) => sn.qr(a.slice(0, 0, 2))[1],
    householderProduct: (a) => sn.linalg.householderProduct(a, a.slice(0, 0, 1).reshape([3])),
    lstsq: (a) => sn.linalg.lstsq(sn.cat([a, a.square()], 0), sn.cat([a.sin(), a], 0)).solution,
  };

  test.each(Object.entries(functions))('%s: first and second ones equal differences', async (_, f) => {
    const a = random([3, 3], 'f64', 11).add(sn.tensor([[3, 0, 0], [0, -2, 0], [0, 0, 4]], { dtype: 'f64' })); // prettier-ignore
    const [along, weights] = [random([3, 3], 'f64', 12), random([18], 'f64', 13)];
    // Of z and a direction: Re(conj(∂)·direction) is how fast a real function grows.
    const slopeOf = (g: sn.Tensor): sn.Tensor => sn.real(g.conj().mul(along)).sum();
    const loss = (z: sn.Tensor): sn.Tensor => {
      const y = f(z);
      return sn.real(y.reshape([y.size]).mul(weights.slice(0, 0, y.size))).sum();
    };
    const slope = (z: sn.Tensor): sn.Tensor => slopeOf(sn.grad(loss)(z));
    const step = 1e-5;
    for (const [whole, derivative] of [
      [loss, slope],
      [slope, (z: sn.Tensor) => slopeOf(sn.grad(slope)(z))],
    ] as const) {
      const [up, down] = [
        Number(await whole(a.add(along.mul(step))).item()),
        Number(await whole(a.sub(along.mul(step))).item()),
      ];
      const difference = (up - down) / (2 * step);
      const found = Number(await derivative(a).item());
      expect(Math.abs(found - difference)).toBeLessThan(1e-6 * Math.max(1, Math.abs(difference)));
    }
  });
});
