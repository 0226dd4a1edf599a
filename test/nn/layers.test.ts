import { beforeAll, describe, expect, test } from 'vitest';
import * as nn from '../../src/nn/index.ts';
import { setDevice } from '../../src/tensor/device.ts';
import '../../src/operations/methods.ts';
import { manualSeed } from '../../src/tensor/generator.ts';
import { gelu } from '../../src/tensor/ops/elementwise/activation.ts';
import { scaledDotProductAttention } from '../../src/tensor/ops/product/attention.ts';
import { arange, ones, tensor, zeros } from '../../src/tensor/ops/creation/creation.ts';
import { cat } from '../../src/tensor/ops/shape/join.ts';
import { randn } from '../../src/tensor/ops/creation/random.ts';
import type { Tensor } from '../../src/tensor/tensor.ts';
import { close, numbers } from '../optim/support.ts';

beforeAll(() => setDevice('interpreter'));

test('a transposed convolution over three axes is the adjoint of the convolution', async () => {
  manualSeed(4);
  const [conv, back] = [
    new nn.Conv3d(2, 3, 2, { stride: 2 }),
    new nn.ConvTranspose3d(3, 2, 2, { stride: 2 }),
  ];
  back.weight = conv.weight;
  const [x, y] = [randn([1, 2, 4, 4, 4]), randn([1, 3, 2, 2, 2])];
  const flat = (bias: Tensor | undefined): Tensor => bias!.reshape([1, -1, 1, 1, 1]);
  const forward = conv.forward(x).sub(flat(conv.bias)).mul(y).sum();
  const backward = back.forward(y).sub(flat(back.bias)).mul(x).sum();
  expect(Number(await forward.item())).toBeCloseTo(Number(await backward.item()), 3);
});

describe('initial values', () => {
  const stats = async (x: Tensor): Promise<{ mean: number; std: number; most: number }> => {
    const values = await numbers(x);
    const mean = values.reduce((a, b) => a + b, 0) / values.length;
    const std = Math.sqrt(values.reduce((a, b) => a + (b - mean) ** 2, 0) / values.length);
    return { mean, std, most: Math.max(...values.map(Math.abs)) };
  };

  test.each([
    ['linear', () => new nn.Linear(25, 100), 1 / 5],
    ['conv2d', () => new nn.Conv2d(4, 30, 5), 1 / 10],
    ['grouped conv2d', () => new nn.Conv2d(8, 40, 5, { groups: 2 }), 1 / 10],
    ['transposed conv1d', () => new nn.ConvTranspose1d(50, 5, 5), 1 / 5],
    ['transposed conv3d', () => new nn.ConvTranspose3d(60, 2, [2, 5, 5]), 1 / 10],
  ] as const)('of %s are uniform in ±1/√fanIn', async (_, make, bound) => {
    manualSeed(1);
    const { weight, bias } = make();
    const { mean, std, most } = await stats(weight);
    expect(most).toBeLessThanOrEqual(bound);
    expect(most).toBeGreaterThan(bound * 0.99);
    expect(Math.abs(mean)).toBeLessThan(bound * 0.1);
    expect(std / (bound / Math.sqrt(3))).toBeCloseTo(1, 1);
    expect((await stats(bias!)).most).toBeLessThanOrEqual(bound);
  });

  test('of embeddings are standard normal, with zeros for padding', async () => {
    manualSeed(2);
    const table = new nn.Embedding(50, 40, { paddingIdx: -2 });
    const { mean, std } = await stats(table.weight);
    expect(Math.abs(mean)).toBeLessThan(0.1);
    expect(std).toBeCloseTo(1, 1);
    expect(await numbers(table.weight.narrow(0, 48, 1))).toEqual(new Array(40).fill(0));
  });

  test.each([
    ['xavierUniform', () => nn.xavierUniform([60, 40]), Math.sqrt(2 / 100)],
    ['xavierNormal', () => nn.xavierNormal([60, 40], { gain: 2 }), 2 * Math.sqrt(2 / 100)],
    ['kaimingUniform', () => nn.kaimingUniform([60, 40]), Math.sqrt(2 / 40)],
    ['kaimingUniform, √5', () => nn.kaimingUniform([60, 40], { a: Math.sqrt(5) }), Math.sqrt(1 / 120)],
    [
      'kaimingNormal',
      () => nn.kaimingNormal([60, 40], { mode: 'fanOut', nonlinearity: 'tanh' }),
      5 / 3 / Math.sqrt(60),
    ],
  ])('%s has its standard deviation', async (_, make, expected) => {
    manualSeed(3);
    const { mean, std } = await stats(make());
    expect(std / expected).toBeCloseTo(1, 1);
    expect(Math.abs(mean)).toBeLessThan(0.1 * expected);
  });

  test('follow from the seed', async () => {
    const values = async (): Promise<number[][]> => {
      manualSeed(7);
      const block = new nn.TransformerBlock(8, 2);
      return Promise.all(nn.parameters(block).map(numbers));
    };
    expect(await values()).toEqual(await values());
  });

  test('have the dtype asked for', () => {
    for (const dtype of ['f16', 'bf16', 'f64'] as const) {
      const model = [
        new nn.TransformerBlock(4, 2, { dtype }),
        new nn.Conv1d(1, 1, 1, { dtype }),
        new nn.BatchNorm(2, { dtype }),
        new nn.GroupNorm(1, 2, { dtype }),
        new nn.RMSNorm(2, { dtype }),
        new nn.Embedding(2, 2, { dtype, paddingIdx: 0 }),
      ];
      expect(new Set(nn.parameters(model).map((parameter) => parameter.dtype))).toEqual(new Set([dtype]));
    }
  });
});

test('an embedding gives rows, and none of the gradient to its padding', async () => {
  const table = new nn.Embedding(3, 2, { paddingIdx: 1 });
  table.weight.assign(tensor([1, 2, 0, 0, 5, 6], { shape: [3, 2] }));
  const rows = table.forward(tensor([[2, 1, 2]], { dtype: 'i32' }));
  expect(await rows.array()).toEqual([
    [
      [5, 6],
      [0, 0],
      [5, 6],
    ],
  ]);
  rows.sum().backward();
  expect(await numbers(table.weight.grad!)).toEqual([0, 0, 0, 0, 2, 2]);
});

describe('dropout', () => {
  test('keeps the mean in training, and everything in use', async () => {
    manualSeed(4);
    const layer = new nn.Dropout(0.75);
    const values = await numbers(layer.forward(ones([4000])));
    expect(new Set(values)).toEqual(new Set([0, 4]));
    expect(values.filter((value) => value === 0).length / 4000).toBeCloseTo(0.75, 1);
    expect(await numbers(nn.evalMode(layer).forward(ones([4])))).toEqual([1, 1, 1, 1]);
  });

  test('refuses what is no probability', () => {
    expect(() => new nn.Dropout(1.5)).toThrow('Dropout: p must be a number in [0, 1], got 1.5');
  });
});

test('batch norm without running statistics always uses the batch', async () => {
  const layer = nn.evalMode(new nn.BatchNorm(1, { trackRunningStats: false, eps: 0 }));
  close(await numbers(layer.forward(tensor([[1], [3]]))), [-1, 1], 1e-6);
  expect(nn.namedBuffers(layer).size).toBe(0);
});

test('sequential applies modules and functions in order', async () => {
  const model = new nn.Sequential(
    new nn.MaxPool2d(2),
    new nn.Flatten(),
    (x) => x.mul(10),
    new nn.LeakyReLU(0.5),
  );
  const x = tensor([-1, -2, 3, 4, -5, -6, 7, -8], { shape: [1, 2, 2, 2] });
  expect(await model.forward(x).array()).toEqual([[40, 70]]);
  const mean = new nn.AvgPool2d(2);
  expect(await mean.forward(x).array()).toEqual([[[[1]], [[-3]]]]);
});

describe('activations are their functions', () => {
  const x = [-2, -0.5, 0, 1, 3];
  const sigmoid = (v: number): number => 1 / (1 + Math.exp(-v));
  const exps = x.map(Math.exp);
  const total = exps.reduce((a, b) => a + b);
  test.each([
    ['ReLU', new nn.ReLU(), x.map((v) => Math.max(v, 0))],
    ['LeakyReLU', new nn.LeakyReLU(), x.map((v) => (v > 0 ? v : v * 0.01))],
    ['SiLU', new nn.SiLU(), x.map((v) => v * sigmoid(v))],
    ['Tanh', new nn.Tanh(), x.map(Math.tanh)],
    ['Sigmoid', new nn.Sigmoid(), x.map(sigmoid)],
    ['GELU', new nn.GELU('sigmoid'), x.map((v) => v * sigmoid(1.702 * v))],
    ['Softmax', new nn.Softmax(), exps.map((e) => e / total)],
  ] as const)('%s', async (_, layer, expected) => {
    close(await numbers(layer.forward(tensor(x))), expected, 2e-6);
  });
});

describe('multi-head attention', () => {
  /** Head by head from the layer's own weights, with plain operations. */
  function naive(layer: nn.MultiHeadAttention, x: Tensor, context: Tensor, mask?: Tensor): Tensor {
    const { heads, kvHeads } = layer;
    const d = x.shape.at(-1)! / heads;
    const [q, k, v] = [layer.query.forward(x), layer.key.forward(context), layer.value.forward(context)];
    const outputs = Array.from({ length: heads }, (_, head) => {
      const shared = Math.floor(head / (heads / kvHeads));
      return scaledDotProductAttention(
        q.narrow(-1, head * d, d),
        k.narrow(-1, shared * d, d),
        v.narrow(-1, shared * d, d),
        {
          isCausal: layer.causal,
          ...(mask === undefined ? {} : { mask }),
        },
      );
    });
    return layer.output.forward(cat(outputs, -1));
  }

  test.each([
    ['one head', 1, {}],
    ['several heads', 4, {}],
    ['causal', 2, { causal: true }],
    ['grouped queries', 4, { kvHeads: 2 }],
    ['one head of keys and values', 4, { kvHeads: 1, causal: true, bias: false }],
  ] as const)('%s agrees with one head after another', async (_, heads, options) => {
    manualSeed(heads);
    const layer = new nn.MultiHeadAttention(8, heads, options);
    const x = randn([2, 3, 8]);
    const y = layer.forward(x);
    expect(y.shape).toEqual([2, 3, 8]);
    close(await numbers(y), await numbers(naive(layer, x, x)), 1e-5);
  });

  test('attends to a context of another length, under a mask', async () => {
    manualSeed(9);
    const layer = new nn.MultiHeadAttention(4, 2);
    const [x, context] = [randn([3, 4]), randn([5, 4])];
    const mask = arange(5).lt(4).reshape([1, 5]);
    const y = layer.forward(x, { context, mask });
    close(await numbers(y), await numbers(naive(layer, x, context, mask)), 1e-5);
    // The hidden key has no influence.
    const changed = cat([context.narrow(0, 0, 4), zeros([1, 4])], 0);
    close(await numbers(layer.forward(x, { context: changed, mask })), await numbers(y), 0);
  });

  test('causal: what comes later has no influence', async () => {
    manualSeed(10);
    const layer = nn.evalMode(
      new nn.TransformerBlock(8, 2, { causal: true, dropout: 0.5, activation: gelu }),
    );
    const x = randn([4, 8]);
    const first = await numbers(layer.forward(x).narrow(0, 0, 3));
    const changed = cat([x.narrow(0, 0, 3), randn([1, 8])], 0);
    close(await numbers(layer.forward(changed).narrow(0, 0, 3)), first, 1e-6);
  });

  test('drops weights in training only', async () => {
    manualSeed(11);
    const layer = new nn.MultiHeadAttention(4, 1, { dropout: 0.5 });
    const x = randn([6, 4]);
    expect(await numbers(layer.forward(x))).not.toEqual(await numbers(layer.forward(x)));
    nn.evalMode(layer);
    expect(await numbers(layer.forward(x))).toEqual(await numbers(layer.forward(x)));
  });

  test.each([
    ['heads that do not divide the width', () => new nn.MultiHeadAttention(6, 4)],
    [
      'key and value heads that do not divide the heads',
      () => new nn.MultiHeadAttention(8, 4, { kvHeads: 3 }),
    ],
  ])('refuses %s', (_, make) => expect(make).toThrow('do not divide'));
});

test.each([
  ['a linear layer of no inputs', () => new nn.Linear(0, 1), 'Linear: the number of inputs'],
  [
    'groups that do not fit',
    () => new nn.Conv2d(3, 4, 3, { groups: 2 }),
    '3 channels do not split into 2 groups',
  ],
  ['a kernel of another rank', () => new nn.Conv1d(1, 1, [3, 3]), 'Conv1d: the kernel size takes 1 values'],
  ['a padding index outside', () => new nn.Embedding(3, 1, { paddingIdx: 3 }), 'Embedding'],
  [
    'fans of a vector',
    () => nn.xavierUniform([3]),
    'xavierUniform: expects a weight of at least two axes: [3]',
  ],
])('refuses %s', (_, make, message) => expect(make).toThrow(message));
