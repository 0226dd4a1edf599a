// Norms, convolutions, pools, attention and losses where PyTorch's figures do not reach.

import { beforeAll, describe, expect, test } from 'vitest';
import { nodeOf } from '../../../src/tensor/record.ts';
import { topological } from '../../../src/ir/graph.ts';
import * as sn from '../../../src/operations/index.ts';
import { setDevice } from '../../../src/tensor/device.ts';
import type { Tensor } from '../../../src/tensor/tensor.ts';
import { build, plain, ramp, read, toTensor } from './support.ts';

beforeAll(() => setDevice('interpreter'));

const used = (x: Tensor): string[] => topological([nodeOf(x)]).map((node) => node.op);

describe('attention', () => {
  const rows = (...shape: number[]): Tensor => sn.sub(sn.div(toTensor(ramp(shape)), 7), 1);

  test('a query that sees no key gives zeros, and gradients of zero, not NaN', async () => {
    const [q, k, v] = [rows(2, 3), rows(4, 3), rows(4, 2)].map((x) => x.detach().requiresGrad_()) as [
      Tensor,
      Tensor,
      Tensor,
    ];
    const mask = sn.tensor([
      [true, false, true, true],
      [false, false, false, false],
    ]);
    const y = sn.scaledDotProductAttention(q, k, v, { mask });
    const found = await read(y);
    expect(found.slice(2)).toEqual([0, 0]);
    expect(found.slice(0, 2).every((n) => n !== 0)).toBe(true);
    sn.sum(y).backward();
    for (const x of [q, k, v]) expect((await read(x.grad!)).every(Number.isFinite)).toBe(true);
    expect((await read(q.grad!)).slice(3)).toEqual([0, 0, 0]);
  });

  test('an additive mask of −∞ is the boolean mask', async () => {
    const [q, k, v] = [rows(2, 3), rows(4, 3), rows(4, 2)];
    const seen = sn.tensor([
      [true, false, true, true],
      [false, false, false, false],
    ]);
    const bias = sn.where(seen, sn.zeros([2, 4]), -Infinity);
    expect(await read(sn.scaledDotProductAttention(q, k, v, { mask: bias }))).toEqual(
      await read(sn.scaledDotProductAttention(q, k, v, { mask: seen })),
    );
  });

  test('causal attention of the first query is the first value, also with a mask on top', async () => {
    const [q, k, v] = [rows(3, 2), rows(3, 2), rows(3, 2)];
    const causal = await read(sn.scaledDotProductAttention(q, k, v, { isCausal: true }));
    expect(causal.slice(0, 2)).toEqual((await read(v)).slice(0, 2));
    const both = sn.scaledDotProductAttention(q, k, v, {
      isCausal: true,
      mask: sn.tensor([[false, true, true]]),
    });
    expect((await read(both)).slice(0, 4)).toEqual([0, 0, ...(await read(v)).slice(2, 4)]);
  });

  test('heads of keys and values broadcast', async () => {
    const [q, k, v] = [rows(2, 4, 3, 2), rows(2, 1, 5, 2), rows(2, 1, 5, 2)];
    const shared = sn.scaledDotProductAttention(q, k, v);
    const spread = sn.scaledDotProductAttention(q, sn.expand(k, [2, 4, 5, 2]), sn.expand(v, [2, 4, 5, 2]));
    expect(shared.shape).toEqual([2, 4, 3, 2]);
    const [a, c] = [await read(shared), await read(spread)];
    a.forEach((value, i) => expect(value).toBeCloseTo(c[i]!, 5));
  });

  test('is matmul, softmax, matmul and nothing else that contracts', () => {
    const ops = used(sn.scaledDotProductAttention(rows(3, 2), rows(3, 2), rows(3, 2), { isCausal: true }));
    expect(ops.filter((op) => op === 'dot')).toHaveLength(2);
    expect(ops.filter((op) => op === 'reduce')).toHaveLength(2);
  });
});

describe('losses', () => {
  test('cross-entropy picks its target without a gather', () => {
    const loss = sn.crossEntropy(sn.rand([4, 3]), sn.tensor([0, 1, 2, 0], { dtype: 'i32' }));
    expect(used(loss)).not.toContain('gather');
    expect(loss.shape).toEqual([]);
  });

  test('ignored targets count for nothing, with weights too', async () => {
    const logits = toTensor({ shape: [3, 2], data: [1, 2, 0, 3, -1, 1] });
    const kept = sn.at(logits, [0, 2]);
    const target = sn.tensor([0, -100, 1], { dtype: 'i32' });
    const keptTarget = sn.tensor([0, 1], { dtype: 'i32' });
    const weight = sn.tensor([2, 0.5]);
    for (const options of [{}, { weight }, { weight, labelSmoothing: 0.1 }]) {
      const [all] = await read(sn.crossEntropy(logits, target, { ...options, ignoreIndex: -100 }));
      const [some] = await read(sn.crossEntropy(kept, keptTarget, options));
      expect(all).toBeCloseTo(some!, 6);
    }
  });

  test('one-hot probabilities give the loss of their classes, smoothing and weights included', async () => {
    const logits = toTensor({ shape: [2, 3], data: [1, 2, 0.5, 0, 3, -1] });
    const target = sn.tensor([2, 0], { dtype: 'i32' });
    const hot = sn.oneHot(target, 3, { dtype: 'f32' });
    const weight = sn.tensor([1, 2, 3]);
    for (const options of [{ labelSmoothing: 0.3 }, { weight }] as const) {
      const given = { ...options, reduction: 'sum' } as const;
      const [a] = await read(sn.crossEntropy(logits, target, given));
      const [c] = await read(sn.crossEntropy(logits, hot, given));
      expect(a).toBeCloseTo(c!, 5);
    }
  });

  test('a vector of logits takes one class', async () => {
    const [one] = await read(sn.crossEntropy(sn.tensor([1, 2]), sn.tensor(1, { dtype: 'i32' })));
    expect(one).toBeCloseTo(Math.log(1 + Math.exp(-1)), 6);
  });

  test('posWeight scales the loss of positive targets', async () => {
    const [x, t] = [sn.tensor([0.3, -2, 1]), sn.tensor([1, 0, 0.5])];
    const none = { reduction: 'none' } as const;
    const plainLoss = await read(sn.bceWithLogits(x, t, none));
    const heavy = await read(sn.bceWithLogits(x, t, { ...none, posWeight: sn.tensor([3, 3, 3]) }));
    expect(heavy[0]! / plainLoss[0]!).toBeCloseTo(3, 5);
    expect(heavy[1]).toBeCloseTo(plainLoss[1]!, 6);
    expect(await read(sn.bceWithLogits(x, t, { ...none, posWeight: 1 }))).toEqual(
      (await read(sn.bceWithLogits(x, t, none))).map((n) => expect.closeTo(n, 6) as number),
    );
  });

  test('klDiv by a target below 0 is NaN, by one of 0 is 0', async () => {
    const [x, target] = [sn.tensor([-1, -2, -0.5, 1]), sn.tensor([-0.25, 0, -0, 0.5])];
    const found = await read(sn.klDiv(x, target, { reduction: 'none' }));
    expect(found[0]).toBeNaN();
    expect(found.slice(1, 3).map(Math.abs)).toEqual([0, 0]);
    expect(found[3]).toBeCloseTo(0.5 * (Math.log(0.5) - 1), 6);
  });

  test('hinge and zero-beta losses', async () => {
    const target = sn.tensor([1, -1, -1]);
    expect(await read(sn.hingeEmbeddingLoss(sn.tensor([2, 0.25, 3]), target, { reduction: 'none' }))).toEqual(
      [2, 0.75, 0],
    );
    expect(await read(sn.smoothL1Loss(sn.tensor([2, -1]), 0, { beta: 0, reduction: 'none' }))).toEqual([
      2, 1,
    ]);
    expect(await read(sn.klDiv(sn.tensor([-1, -2]), sn.tensor([0, 1]), { reduction: 'none' }))).toEqual([
      0, 2,
    ]);
  });
});

describe('convolution', () => {
  test("padding 'same' keeps sizes, the odd element at the end", async () => {
    const x = toTensor(ramp([1, 1, 5]));
    const pair = sn.ones([1, 1, 2]);
    expect(await read(sn.conv1d(x, pair, undefined, { padding: 'same' }))).toEqual([1, 3, 5, 7, 4]);
    expect(
      sn.conv2d(sn.ones([2, 1, 6, 7]), sn.ones([3, 1, 3, 2]), undefined, { padding: 'same', dilation: 2 })
        .shape,
    ).toEqual([2, 3, 6, 7]);
    expect(await read(sn.conv1d(x, pair, undefined, { padding: 'valid' }))).toEqual([1, 3, 5, 7]);
  });

  test('takes inputs without a batch axis', async () => {
    const [x, w] = [toTensor(ramp([2, 4, 4])), toTensor(ramp([3, 2, 2, 2]))];
    const single = await plain(sn.conv2d(x, w, sn.ones([3])));
    const batched = await plain(sn.conv2d(sn.unsqueeze(x, 0), w, sn.ones([3])));
    expect(single).toEqual({ shape: batched.shape.slice(1), data: batched.data });
  });

  test('the transposed convolution is the adjoint: ⟨conv(x), y⟩ = ⟨x, convT(y)⟩', async () => {
    for (const [stride, padding, dilation, groups] of [
      [1, 0, 1, 1],
      [2, 1, 1, 2],
      [2, 0, 2, 1],
    ] as const) {
      const options = { stride, padding, dilation, groups };
      const x = sn.randn([2, 4, 7, 7]);
      const w = sn.randn([6, 4 / groups, 3, 3]);
      const forward = sn.conv2d(x, w, undefined, options);
      const y = sn.randnLike(forward);
      const back = sn.convTranspose2d(y, w, undefined, options);
      const short = back.shape[2]! - 7;
      expect(short).toBeLessThanOrEqual(0);
      const [left] = await read(sn.sum(sn.mul(forward, y)));
      const [right] = await read(
        sn.sum(sn.mul(sn.at(x, ':', ':', { stop: back.shape[2]! }, { stop: back.shape[3]! }), back)),
      );
      expect(left! / right!).toBeCloseTo(1, 3);
    }
  });

  test('convTranspose3d undoes the shape of conv3d', () => {
    const y = sn.conv3d(sn.ones([1, 2, 5, 6, 7]), sn.ones([3, 2, 2, 2, 2]), undefined, { stride: 2 });
    expect(y.shape).toEqual([1, 3, 2, 3, 3]);
    expect(sn.convTranspose3d(y, sn.ones([3, 2, 2, 2, 2]), undefined, { stride: 2 }).shape).toEqual([
      1, 2, 4, 6, 6,
    ]);
  });
});

describe('pools', () => {
  test.each([1, 2, 2.5, 3])('the lpPool of negatives folds absolute values, by the power %d', async (p) => {
    const x = sn.tensor([[[-1, -2, 3, -4]]]).requiresGrad_();
    const y = sn.lpPool1d(x, 2, { p });
    const near = (found: readonly number[], wanted: readonly number[]): void =>
      wanted.forEach((value, i) => expect(found[i]).toBeCloseTo(value, 5));
    const norm = (a: number, b: number): number => (a ** p + b ** p) ** (1 / p);
    near(await read(y), [norm(1, 2), norm(3, 4)]);
    sn.sum(y).backward();
    const slope = (sign: number, a: number, n: number): number => sign * (a / n) ** (p - 1);
    const [left, right] = [norm(1, 2), norm(3, 4)];
    const slopes = [slope(-1, 1, left), slope(-1, 2, left), slope(1, 3, right), slope(-1, 4, right)];
    near(await read(x.grad!), slopes);
  });

  test('the gradient of a maximum goes to the first of equals', async () => {
    const x = sn.ones([1, 1, 2, 2]).requiresGrad_();
    sn.sum(sn.maxPool2d(x, 2)).backward();
    expect(await read(x.grad!)).toEqual([1, 0, 0, 0]);
  });

  test('places point at the maxima in their plane', async () => {
    const x = toTensor(build([1, 2, 5, 6], ([, c, i, j]) => ((i! * 7 + j! * 5 + c! * 3) * 11) % 31));
    const [values, places] = sn.maxPool2dWithIndices(x, 3, { stride: 2, padding: 1 });
    const flat = sn.flatten(x, 2);
    const again = sn.gather(flat, 2, sn.flatten(places, 2));
    expect(await read(again)).toEqual(await read(values));
    expect(await read(values)).toEqual(await read(sn.maxPool2d(x, 3, { stride: 2, padding: 1 })));
  });

  test('adaptive pooling averages the windows that PyTorch names, even or not', async () => {
    const x = ramp([1, 5, 4]);
    for (const [rows, columns] of [
      [5, 2],
      [3, 4],
      [2, 3],
      [1, 1],
      [7, 4],
    ] as const) {
      const expected = build([1, rows, columns], ([, i, j]) => {
        const range = (at: number, count: number, size: number): number[] => {
          const [from, to] = [Math.floor((at * size) / count), Math.ceil(((at + 1) * size) / count)];
          return Array.from({ length: to - from }, (_, k) => from + k);
        };
        const cells = range(i!, rows, 5).flatMap((r) => range(j!, columns, 4).map((c) => r * 4 + c));
        return cells.reduce((a, b) => a + b, 0) / cells.length;
      });
      const found = await plain(sn.adaptiveAvgPool2d(toTensor(x), [rows, columns]));
      expect(found.shape).toEqual(expected.shape);
      found.data.forEach((value, i) => expect(value).toBeCloseTo(expected.data[i]!, 4));
    }
    expect(await read(sn.globalAvgPool(toTensor(ramp([2, 1, 3]))))).toEqual([1, 4]);
  });
});

describe('norms', () => {
  test('batchNorm gives its statistics without gradient, in training the biased ones', async () => {
    const x = toTensor(ramp([4, 1])).requiresGrad_();
    const [y, mean, variance] = sn.batchNorm(x, undefined, undefined, undefined, undefined, {
      training: true,
    });
    expect([await read(mean), await read(variance)]).toEqual([[1.5], [1.25]]);
    expect(y.shape).toEqual([4, 1]);
    const [m, v] = sn.batchNormUpdate([sn.zeros([1]), sn.ones([1])], [mean, variance], 4, 0.5);
    expect(await read(m)).toEqual([0.75]);
    expect((await read(v))[0]).toBeCloseTo(0.5 + 0.5 * ((1.25 * 4) / 3), 6);
  });

  test("rmsNorm's eps is that of what it computes in, which small 16-bit values are not lost beside", async () => {
    // PyTorch 2.13's figures.
    const expected = {
      f16: [0.68701171875, 1.3740234375, -0.68701171875],
      bf16: [0.6875, 1.375, -0.6875],
      f32: [0.6869308948516846, 1.3738617897033691, -0.6869308948516846],
      f64: [0.7071067811472953, 1.4142135622945906, -0.7071067811472953],
    } as const;
    for (const dtype of ['f16', 'bf16', 'f32', 'f64'] as const) {
      const found = await read(sn.rmsNorm(sn.tensor([1e-3, 2e-3, -1e-3], { dtype }), 3));
      found.forEach((value, i) => expect(value, dtype).toBeCloseTo(expected[dtype][i]!, 6));
    }
  });

  test('localResponseNorm has the mirrored window in its gradient for even sizes', async () => {
    // gx_i = g_i·d_i^−β − (2αβ/n)·x_i·Σ_c g_c·x_c·d_c^(−β−1), over the channels c whose window holds i.
    const [n, alpha, beta, k] = [4, 0.5, 0.75, 2];
    const values = [0.3, -1.2, 0.8, 2, -0.4];
    const seeds = [1, -2, 0.5, 3, 1.5];
    const holdsChannel = (c: number, i: number): boolean => i >= c - 2 && i <= c + 1;
    const d = values.map(
      (_, c) => k + (alpha * values.reduce((s, x, i) => s + (holdsChannel(c, i) ? x * x : 0), 0)) / n,
    );
    const x = sn.tensor(values, { shape: [1, 5] }).requiresGrad_();
    const y = sn.localResponseNorm(x, n, { alpha, beta, k });
    sn.sum(sn.mul(y, sn.tensor(seeds))).backward();
    const grad = await read(x.grad!);
    values.forEach((xi, i) => {
      const spill = values.reduce(
        (s, xc, c) => s + (holdsChannel(c, i) ? seeds[c]! * xc * d[c]! ** (-beta - 1) : 0),
        0,
      );
      expect(grad[i]).toBeCloseTo(seeds[i]! * d[i]! ** -beta - ((2 * alpha * beta) / n) * xi * spill, 5);
    });
  });

  test('softmax is plain reduce, broadcast and elementwise nodes', () => {
    const ops = new Set(used(sn.softmax(toTensor(ramp([2, 3])))));
    expect([...ops].toSorted()).toEqual([
      'broadcast',
      'div',
      'exp',
      'parameter',
      'reduce',
      'reshape',
      'stopGradient',
      'sub',
    ]);
  });

  test('softmax2d works on channels, softmin on the smallest, several axes at once', async () => {
    const x = toTensor(ramp([1, 2, 2, 2]));
    expect(await read(sn.softmax2d(x))).toEqual(await read(sn.softmax(x, 1)));
    expect(await read(sn.softmin(sn.tensor([1, 2])))).toEqual(await read(sn.softmax(sn.tensor([-1, -2]))));
    const [total] = await read(sn.sum(sn.softmax(x, [0, 1, 2, 3])));
    expect(total).toBeCloseTo(1, 6);
  });
});
