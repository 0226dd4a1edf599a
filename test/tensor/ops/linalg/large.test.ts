import { afterAll, beforeAll, expect, test } from 'vitest';

import * as sn from '../../../../src/index.ts';

/** ‖x‖ by row sums. */
const norm = async (x: sn.Tensor): Promise<number> => Number(await x.abs().sum(-1).max().item());

/** LAPACK's measure, ‖found − wanted‖ / (n·‖of‖·ε), of f64. */
async function ratio(found: sn.Tensor, wanted: sn.Tensor, of: sn.Tensor, n: number): Promise<number> {
  return (await norm(found.sub(wanted))) / (n * (await norm(of)) * 2 ** -52);
}

/** What LAPACK's own tests let pass. */
const threshold = 30;

beforeAll(() => sn.setDevice('wasm'));
afterAll(() => sn.setDevice(undefined));

/** Numbers in [−1, 1) that tests can repeat. */
function random(m: number, n: number): sn.Tensor {
  let state = 7;
  const data = Float64Array.from({ length: m * n }, () => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return state / 2 ** 31 - 1;
  });
  return sn.tensor(data, { dtype: 'f64' }).reshape([m, n]);
}

// More columns than a kernel takes whole, and more rows than it has memory for.
test.each([
  [531, 531],
  [560, 530],
  [520, 545],
  [1040, 1030],
  [5000, 20],
])('%i × %i is halved, and has good factors', async (m, n) => {
  const a = random(m, n);
  const k = Math.min(m, n);
  const [p, l, u] = sn.linalg.lu(a);
  expect(await ratio(p.matmul(l).matmul(u), a, a, k)).toBeLessThan(threshold);
  const [q, r] = sn.qr(a);
  expect(await ratio(q.matmul(r), a, a, m)).toBeLessThan(threshold);
  const one = sn.eye(k, k, { dtype: 'f64' });
  expect(await ratio(q.transpose(0, 1).matmul(q), one, one, m)).toBeLessThan(threshold);
  expect(await norm(r.sub(r.triu()))).toBe(0);
});

test('Cholesky’s factors and solutions of 531 rows are good', async () => {
  const n = 531;
  const x = random(n, n);
  const a = x.matmul(x.transpose(0, 1)).add(sn.eye(n, n, { dtype: 'f64' }));
  const l = sn.cholesky(a);
  expect(await ratio(l.matmul(l.transpose(0, 1)), a, a, n)).toBeLessThan(threshold);
  expect(await norm(l.sub(l.tril()))).toBe(0);
  const b = random(n, 150);
  const found = sn.linalg.solveTriangular(l, b, { upper: false });
  const size = (await norm(l)) * (await norm(found)) * n * 2 ** -52;
  expect((await norm(l.matmul(found).sub(b))) / size).toBeLessThan(threshold);
});

test('a pivot that is not positive leaves the columns before it', async () => {
  const n = 70;
  const a = random(n, n).mul(0.01);
  const b = a
    .add(a.transpose(0, 1))
    .add(sn.eye(n, n, { dtype: 'f64' }).mul(sn.where(sn.arange(n).eq(40), -9, 3)));
  const [l, info] = sn.linalg.choleskyEx(b);
  expect(await info.item()).toBe(41);
  const columns = await l.isNan().any(0).array();
  expect(columns).toEqual(Array.from({ length: n }, (_, j) => j >= 40));
});
