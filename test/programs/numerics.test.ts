// Numerical work as its authors write it: least squares, factorisations, transforms, fusion groups, Newton's method. Each result is held
// against what defines it.

import { beforeAll, expect, test } from 'vitest';
import * as sn from '../../src/index.ts';

beforeAll(() => {
  sn.setDevice('wasm');
  sn.manualSeed(7);
});

const largest = async (x: sn.Tensor): Promise<number> => Number(await x.abs().max().item());
const f64 = { dtype: 'f64' } as const;

test('least squares by factors, by normal equations and by singular values agree', async () => {
  const a = sn.randn([40, 5], f64);
  const b = sn.randn([40, 1], f64);
  const { solution } = sn.linalg.lstsq(a, b);
  const normal = sn.linalg.choleskySolve(a.T.matmul(b), sn.linalg.cholesky(a.T.matmul(a)));
  const inverse = sn.linalg.pinv(a).matmul(b);
  expect(await largest(solution.sub(normal))).toBeLessThan(1e-12);
  expect(await largest(solution.sub(inverse))).toBeLessThan(1e-12);
  expect(await largest(a.T.matmul(a.matmul(solution).sub(b)))).toBeLessThan(1e-12);
});

test('principal components are those of the covariance', async () => {
  const x = sn.randn([200, 6], f64).mul(sn.arange(6).add(1).cast('f64'));
  const centred = x.sub(x.mean(0, { keepdim: true }));
  const [, s, v] = sn.linalg.svd(centred, { fullMatrices: false });
  const [values] = sn.linalg.eigh(centred.T.matmul(centred).div(199));
  expect(await largest(s.square().div(199).flip(0).sub(values))).toBeLessThan(1e-10);
  const scores = centred.matmul(v.T);
  const gram = scores.T.matmul(scores).div(199);
  expect(await largest(gram.sub(sn.diag(gram.diagonal())))).toBeLessThan(1e-10);
});

test('a convolution is a product of transforms', async () => {
  const [signal, filter] = [sn.randn([100], f64), sn.randn([9], f64)];
  const n = 108;
  const product = sn.fft.irfft(sn.fft.rfft(signal, { n }).mul(sn.fft.rfft(filter, { n })), { n });
  const direct = sn.conv1d(signal.reshape([1, 1, 100]), filter.flip(0).reshape([1, 1, 9]), undefined, {
    padding: 8,
  });
  expect(await largest(product.sub(direct.reshape([108])))).toBeLessThan(1e-12);
});

test('k-means moves every centre to the mean of its points', async () => {
  const truth = sn.tensor([
    [0, 0],
    [10, 0],
    [0, 10],
  ]);
  const points = sn.cat([0, 1, 2].map((i) => truth.narrow(0, i, 1).add(sn.randn([50, 2]).mul(0.5))));
  const step = sn.compile((centres: sn.Tensor) => {
    const nearest = sn.cdist(points, centres).argmin(1);
    const member = sn.oneHot(nearest, 3, { dtype: 'f32' });
    return member.T.matmul(points).div(member.sum(0).unsqueeze(1).maximum(1));
  });
  let centres: sn.Tensor = points.indexSelect(0, sn.tensor([0, 60, 120], { dtype: 'i32' }));
  for (let i = 0; i < 8; i++) centres = step(centres);
  expect(await largest(centres.sub(step(centres)))).toBeLessThan(1e-5);
  expect(await largest(centres.sub(truth))).toBeLessThan(0.5);
});

test("Newton's method finds the minimum with products of the Hessian and vectors", async () => {
  const rosenbrock = (x: sn.Tensor): sn.Tensor => {
    const [a, b] = [x.narrow(0, 0, 3), x.narrow(0, 1, 3)];
    return b.sub(a.square()).square().mul(100).add(a.sub(1).square()).sum();
  };
  const gradient = sn.grad(rosenbrock);
  const product = (x: sn.Tensor, v: sn.Tensor): sn.Tensor =>
    sn.grad((y: sn.Tensor) => gradient(y).mul(v).sum())(x);
  const basis = sn.eye(4, 4, f64);
  const step = sn.compile((x: sn.Tensor) => {
    const hessian = sn.stack([0, 1, 2, 3].map((i) => product(x, basis.select(0, i))));
    return x.sub(sn.linalg.solve(hessian, gradient(x).unsqueeze(1)).squeeze(1));
  });
  let x: sn.Tensor = sn.tensor([0.9, 0.8, 0.7, 0.5], f64);
  for (let i = 0; i < 20; i++) x = step(x);
  expect(await largest(x.sub(1))).toBeLessThan(1e-9);
});

test('the gradient of each sample is that of the sample alone', async () => {
  const [x, y, w] = [sn.randn([6, 3]), sn.randn([6]), sn.randn([3])];
  const loss = (weights: sn.Tensor, rows: sn.Tensor, targets: sn.Tensor): sn.Tensor =>
    rows.mul(weights).sum(-1).sub(targets).square().sum();
  // A copy of the weights for each sample: the gradient of the sum has a row a sample.
  const rows = sn.grad(loss)(w.expand([6, 3]), x, y);
  const one = sn.grad(loss)(w, x.narrow(0, 4, 1), y.narrow(0, 4, 1));
  expect(await largest(rows.select(0, 4).sub(one))).toBeLessThan(1e-5);
});
