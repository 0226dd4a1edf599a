// Mixed precision: which operations take which dtype, eager, compiled and differentiated, and that
// figures are PyTorch's.

import { readFileSync } from 'node:fs';
import { beforeAll, describe, expect, test } from 'vitest';
import * as sn from '../../src/index.ts';
import * as nn from '../../src/nn/index.ts';
import { Muon } from '../../src/optim/index.ts';
import { close, numbers } from '../optim/support.ts';

beforeAll(() => sn.setDevice('wasm'));

const f32 = (...shape: number[]): sn.Tensor => sn.ones(shape);
const f16 = (...shape: number[]): sn.Tensor => sn.ones(shape, { dtype: 'f16' });

/** Operations whose operands become 16 bits, given f32. */
const narrow: Readonly<Record<string, () => sn.Tensor>> = {
  matmul: () => f32(2, 3).matmul(f32(3, 2)),
  mm: () => sn.mm(f32(2, 3), f32(3, 2)),
  mv: () => sn.mv(f32(2, 3), f32(3)),
  bmm: () => sn.bmm(f32(1, 2, 3), f32(1, 3, 2)),
  linear: () => sn.linear(f32(2, 3), f32(4, 3), f32(4)),
  einsum: () => sn.einsum('ij,jk->ik', f32(2, 3), f32(3, 2)),
  conv1d: () => sn.conv1d(f32(1, 2, 4), f32(2, 2, 3), f32(2)),
  conv2d: () => sn.conv2d(f32(1, 2, 4, 4), f32(2, 2, 3, 3)),
  convTranspose2d: () => sn.convTranspose2d(f32(1, 2, 4, 4), f32(2, 2, 3, 3)),
  scaledDotProductAttention: () => sn.scaledDotProductAttention(f32(1, 2, 4), f32(1, 2, 4), f32(1, 2, 4)),
  addmm: () => sn.addmm(f32(2, 2), f32(2, 3), f32(3, 2)),
  addbmm: () => sn.addbmm(f32(2, 2), f32(2, 2, 3), f32(2, 3, 2)),
  prelu: () => sn.prelu(f32(2, 3), f32(1)),
  'an LSTM': () => new nn.LSTM(3, 2).forward(f32(4, 1, 3))[0],
  'a GRU cell': () => new nn.GRUCell(3, 2).forward(f32(1, 3)),
  'multi-head attention': () => new nn.MultiHeadAttention(4, 2).forward(f32(1, 3, 4)),
};

/** Operations whose operands become f32, given 16 bits. */
const wide: Readonly<Record<string, () => sn.Tensor>> = {
  exp: () => f16(2).exp(),
  log: () => f16(2).log(),
  log10: () => f16(2).log10(),
  pow: () => f16(2).pow(3),
  'pow of a number': () => sn.pow(2, f16(2)),
  rsqrt: () => f16(2).rsqrt(),
  reciprocal: () => f16(2).reciprocal(),
  erfinv: () => sn.erfinv(f16(2).mul(0.5)),
  softplus: () => sn.softplus(f16(2)),
  softmax: () => f16(2, 3).softmax(),
  logSoftmax: () => f16(2, 3).logSoftmax(),
  softmin: () => sn.softmin(f16(2, 3)),
  sum: () => f16(2, 3).sum(),
  prod: () => f16(2, 3).prod(),
  cumsum: () => f16(2, 3).cumsum(1),
  cumprod: () => f16(2, 3).cumprod(1),
  norm: () => sn.norm(f16(2, 3)),
  renorm: () => sn.renorm(f16(2, 3), 2, 0, 1),
  normalize: () => sn.normalize(f16(2, 3)),
  layerNorm: () => sn.layerNorm(f16(2, 3), [3], f32(3), f32(3)),
  groupNorm: () => sn.groupNorm(f16(2, 4), 2),
  cosineSimilarity: () => sn.cosineSimilarity(f16(2, 3), f16(2, 3)),
  cdist: () => sn.cdist(f16(2, 3), f16(2, 3)),
  pdist: () => sn.pdist(f16(2, 3)),
  mseLoss: () => sn.mseLoss(f16(2), f16(2)),
  l1Loss: () => sn.l1Loss(f16(2), f16(2)),
  smoothL1Loss: () => sn.smoothL1Loss(f16(2), f16(2)),
  bceWithLogits: () => sn.bceWithLogits(f16(2), f16(2)),
  klDiv: () => sn.klDiv(f16(2), f16(2)),
  crossEntropy: () => sn.crossEntropy(f16(2, 3), sn.tensor([0, 1], { dtype: 'i32' })),
  'crossEntropy of shares': () => sn.crossEntropy(f16(2, 3), f16(2, 3)),
  nllLoss: () => sn.nllLoss(f16(2, 3), sn.tensor([0, 1], { dtype: 'i32' })),
  multiMarginLoss: () => sn.multiMarginLoss(f16(2, 3), sn.tensor([0, 1], { dtype: 'i32' })),
  tripletMarginLoss: () => sn.tripletMarginLoss(f16(2, 3), f16(2, 3), f16(2, 3)),
};

test('types are those of the call outside, and their arrays those that are given', async () => {
  const halves = sn.ones([2, 3], { dtype: 'f16' });
  const shares: sn.Tensor<'f16'> = sn.autocast(() => halves.softmax());
  const product: sn.Tensor<'f32'> = sn.autocast(() => sn.ones([2, 2]).matmul(sn.ones([2, 2])));
  expect([shares.dtype, product.dtype]).toEqual(['f32', 'f16']);
  const arrays: readonly Float32Array[] = [await shares.data(), await product.data()];
  expect(arrays.map((array) => array.constructor)).toEqual([Float32Array, Float32Array]);
  const number: number = await shares.sum().item();
  expect(number).toBeCloseTo(2, 5);
});

describe('in autocast', () => {
  test.each(Object.entries(narrow))('%s takes 16 bits, outside f32', (_, make) => {
    expect(make().dtype).toBe('f32');
    expect(sn.autocast(make).dtype).toBe('f16');
    expect(sn.autocast(make, { dtype: 'bf16' }).dtype).toBe('bf16');
    expect(sn.autocast(() => sn.autocast(make, { enabled: false })).dtype).toBe('f32');
  });

  test.each(Object.entries(wide))('%s takes f32, outside 16 bits', (_, make) => {
    expect(make().dtype).toBe('f16');
    expect(sn.autocast(make).dtype).toBe('f32');
  });

  test('everything else promotes as ever, and f64, integers and complex numbers stay', () => {
    sn.autocast(() => {
      expect(f16(2).add(f16(2)).dtype).toBe('f16');
      expect(f16(2).add(f32(2)).dtype).toBe('f32');
      expect(f16(2).relu().dtype).toBe('f16');
      const wide = sn.ones([2, 2], { dtype: 'f64' });
      expect([wide.matmul(wide).dtype, wide.matmul(f32(2, 2)).dtype, wide.sum().dtype]).toEqual([
        'f64',
        'f64',
        'f64',
      ]);
      const whole = sn.ones([2, 2], { dtype: 'i32' });
      expect([whole.matmul(whole).dtype, whole.sum().dtype]).toEqual(['i32', 'i32']);
      expect(f32(2, 2).matmul(f32(2, 2), { dtype: 'f32' }).dtype).toBe('f32');
    });
  });

  test('probabilities of 16 bits are refused where their logarithms are wanted', () => {
    expect(() => sn.autocast(() => sn.bceLoss(f16(2), f16(2)))).toThrow(/bceWithLogits/);
    expect(sn.autocast(() => sn.bceLoss(f32(2), f32(2))).dtype).toBe('f32');
  });

  test('the scope ends with its function, also by an error, and waits for none', () => {
    expect(() => sn.autocast(() => new Error().message.at(0)!.length)).toThrow();
    expect(f32(2, 2).matmul(f32(2, 2)).dtype).toBe('f32');
    expect(() => sn.autocast(async () => f32(1))).toThrow(/asynchronous/);
    const wrapped = sn.withAutocast((x: sn.Tensor) => x.matmul(x), { dtype: 'bf16' });
    expect([wrapped(f32(2, 2)).dtype, f32(2, 2).matmul(f32(2, 2)).dtype]).toEqual(['bf16', 'f32']);
  });

  test('initial values and optimizers stay exact', async () => {
    expect(sn.autocast(() => nn.orthogonal([2, 2])).dtype).toBe('f32');
    const weight = sn
      .tensor([
        [1, 2],
        [3, 4],
      ])
      .requiresGrad_();
    const steps = [false, true].map((enabled) => {
      const copy = sn
        .tensor([
          [1, 2],
          [3, 4],
        ])
        .requiresGrad_();
      copy.grad = weight.detach().mul(0.3);
      const optimizer = new Muon([copy]);
      sn.autocast(() => optimizer.step(), { enabled });
      return copy;
    });
    expect(await steps[0]!.array()).toEqual(await steps[1]!.array());
  });
});

describe('compiled functions', () => {
  test('are compiled for the scope that they are called in', () => {
    const product = sn.compile((x: sn.Tensor) => x.matmul(x).softmax());
    const x = f32(2, 2);
    const dtypes = (): string[] => [
      product(x).dtype,
      sn.autocast(() => sn.compile((y: sn.Tensor) => y.matmul(y))(x)).dtype,
    ];
    expect(dtypes()).toEqual(['f32', 'f16']);
    const inner = sn.compile((y: sn.Tensor) => y.matmul(y));
    expect([
      inner(x).dtype,
      sn.autocast(() => inner(x)).dtype,
      sn.autocast(() => inner(x), { dtype: 'bf16' }).dtype,
      inner(x).dtype,
    ]).toEqual(['f32', 'f16', 'bf16', 'f32']);
  });

  test('with the scope inside give what eager ones give', async () => {
    const model = new nn.Sequential(new nn.Linear(4, 8), new nn.LayerNorm(8), sn.gelu, new nn.Linear(8, 3));
    const x = sn.randn([5, 4]);
    const target = sn.tensor([0, 1, 2, 1, 0], { dtype: 'i32' });
    const loss = (m: nn.Sequential): sn.Tensor =>
      sn.autocast(() => sn.crossEntropy(m.forward(x), target), { dtype: 'bf16' });
    const eager = sn.grad(loss)(model);
    const compiled = sn.compile((m: nn.Sequential) => sn.grad(loss)(m))(model);
    for (const [name, gradient] of nn.namedParameters(eager)) {
      expect(gradient.dtype).toBe('f32');
      close(await numbers(nn.getParameter(compiled, name)), await numbers(gradient), 1e-2);
    }
  });
});

interface Stored {
  readonly shape: readonly number[];
  readonly data: readonly number[];
  readonly dtype?: string;
}

test("two layers in bf16 agree with PyTorch's in outputs and gradients", async () => {
  const file = new URL('../fixtures/training.json', import.meta.url);
  const { autocast: torch } = JSON.parse(readFileSync(file, 'utf8')) as {
    autocast: Record<'x' | 'y' | 'hidden' | 'out' | 'loss', Stored> & Record<'weights' | 'grads', Stored[]>;
  };
  const given = ({ shape, data }: Stored): sn.Tensor => sn.tensor(Float32Array.from(data), { shape });
  const [w, b, u, c] = torch.weights.map((at) => given(at).requiresGrad_());
  const [hidden, out, loss] = sn.autocast(
    () => {
      const hidden = sn.linear(given(torch.x), w!, b);
      const out = sn.linear(hidden.relu(), u!, c);
      return [hidden, out, sn.mseLoss(out, given(torch.y))] as const;
    },
    { dtype: 'bf16' },
  );
  loss.backward();
  expect([hidden.dtype, loss.dtype, torch.hidden.dtype]).toEqual(['bf16', 'f32', 'torch.bfloat16']);
  close(await numbers(hidden), torch.hidden.data, 2 ** -8);
  close(await numbers(out), torch.out.data, 2 ** -7);
  close(await numbers(loss), torch.loss.data, 2 ** -7);
  for (const [i, param] of [w, b, u, c].entries()) {
    expect(param!.grad!.dtype).toBe('f32');
    close(await numbers(param!.grad!), torch.grads[i]!.data, 2 ** -6);
  }
});
