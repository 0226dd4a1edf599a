// Operations that ONNX has one node for: they are exported as that node, and what only looks like them is not.

import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import * as sn from '../../src/index.ts';
import { setDevice, type Tensor } from '../../src/index.ts';
import { exportOnnx } from '../../src/onnx/index.ts';
import { expectOutputs, opsOf } from '../support/onnx/exported.ts';

beforeAll(() => {
  setDevice('interpreter');
  sn.manualSeed(5);
});
afterAll(() => setDevice(undefined));

const steep = [-100, -20, -3.5, -3, -1, -0.5, 0, 0.25, 1, 3, 6, 7, 50, 100, NaN, Infinity];
const line = (): Tensor => sn.tensor(steep, { shape: [2, 8] });
const image = (): Tensor => sn.randn([2, 4, 7, 6]);
const ofChannels = (): Tensor => sn.rand([4]).add(0.5);

type Row = readonly [
  name: string,
  fn: (...inputs: Tensor[]) => Tensor,
  inputs: () => readonly Tensor[],
  nodes: readonly string[],
];

const rows: readonly Row[] = [
  ['relu', (x) => sn.relu(x!), () => [line()], ['Relu']],
  ['sigmoid', (x) => sn.sigmoid(x!), () => [line()], ['Sigmoid']],
  ['silu', (x) => sn.silu(x!), () => [sn.randn([3, 5])], ['Sigmoid', 'Mul']],
  ['leakyRelu', (x) => sn.leakyRelu(x!, 0.2), () => [line()], ['LeakyRelu']],
  ['elu', (x) => sn.elu(x!), () => [line()], ['Elu']],
  ['softplus', (x) => sn.softplus(x!), () => [line()], ['Softplus']],
  ['gelu', (x) => sn.gelu(x!), () => [sn.randn([3, 5])], ['Gelu']],
  ['gelu by tanh', (x) => sn.gelu(x!, { approximate: 'tanh' }), () => [sn.randn([3, 5])], ['Gelu']],
  ['clamp', (x) => sn.clamp(x!, -2, 3), () => [line()], ['Clip']],
  ['relu6', (x) => sn.relu6(x!), () => [line()], ['Clip']],
  ['isInf', (x) => sn.isInf(x!), () => [line()], ['IsInf']],
  ['isFinite', (x) => sn.isFinite(x!), () => [line()], ['IsInf', 'IsNaN', 'Or', 'Not']],
  ['softmax', (x) => sn.softmax(x!, 1), () => [sn.randn([2, 5, 3])], ['Softmax']],
  ['logSoftmax', (x) => sn.logSoftmax(x!), () => [sn.randn([2, 5])], ['LogSoftmax']],
  ['layerNorm', (x) => sn.layerNorm(x!, 6), () => [sn.randn([2, 6])], ['LayerNormalization']],
  [
    'layerNorm with a weight and a bias, over two axes',
    (x, w, b) => sn.layerNorm(x!, [3, 4], w, b, { eps: 1e-3 }),
    () => [sn.randn([2, 3, 4]), sn.randn([3, 4]), sn.randn([3, 4])],
    ['LayerNormalization'],
  ],
  [
    'batchNorm',
    (x, m, v, w, b) => sn.batchNorm(x!, m, v, w, b)[0],
    () => [image(), ofChannels(), ofChannels(), ofChannels(), ofChannels()],
    ['BatchNormalization'],
  ],
  ['mean', (x) => sn.mean(x!, [1], { keepdim: true }), () => [sn.randn([2, 7])], ['ReduceMean']],
  ['maxPool', (x) => sn.maxPool2d(x!, 3, { stride: 2, padding: 1 }), () => [image()], ['MaxPool']],
  ['avgPool', (x) => sn.avgPool2d(x!, 2), () => [image()], ['AveragePool']],
  [
    'conv with a bias',
    (x, w, b) => sn.conv2d(x!, w!, b, { padding: 1 }),
    () => [image(), sn.randn([3, 4, 3, 3]), sn.randn([3])],
    ['Conv'],
  ],
  [
    'convTranspose with a bias',
    (x, w, b) =>
      sn.convTranspose2d(x!, w!, b, { stride: [2, 3], padding: 1, outputPadding: [1, 0], groups: 2 }),
    () => [image(), sn.randn([4, 3, 3, 3]), sn.randn([6])],
    ['ConvTranspose'],
  ],
  [
    'linear',
    (x, w, b) => sn.linear(x!, w!, b),
    () => [sn.randn([2, 5]), sn.randn([3, 5]), sn.randn([3])],
    ['Gemm'],
  ],
  [
    'scores of attention',
    (q, k, v) => sn.scaledDotProductAttention(q!, k!, v!),
    () => [sn.randn([2, 3, 4]), sn.randn([2, 5, 4]), sn.randn([2, 5, 4])],
    ['Transpose', 'MatMul', 'Mul', 'Softmax', 'MatMul'],
  ],
  [
    'scores of attention under a mask that hides all from some',
    (q, k, v, mask) => sn.scaledDotProductAttention(q!, k!, v!, { mask: mask! }),
    () => [
      sn.randn([2, 3, 4]),
      sn.randn([2, 5, 4]),
      sn.randn([2, 5, 4]),
      sn.tensor([1, 0, 1, 1, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0], { shape: [3, 5] }).cast('bool'),
    ],
    ['Transpose', 'MatMul', 'Mul', 'Where', 'Softmax', 'Where', 'MatMul'],
  ],
];

describe.each(rows)('%s', (_, fn, inputs, nodes) => {
  test(`is ${nodes.join(', ')}`, async () => {
    const given = inputs();
    const named = Object.fromEntries(given.map((x, i) => [`x[${i}]`, x]));
    const call = (x: Tensor[]): Tensor => fn(...x);
    const model = await exportOnnx(call, [given]);
    expect(opsOf(model)).toEqual(nodes);
    await expectOutputs(model, named, { output: fn(...given) });
  });
});

describe('what only looks like it is written out', () => {
  const near: readonly (readonly [string, (x: Tensor) => Tensor])[] = [
    ['a sum of other exponentials', (x) => x.exp().div(x.mul(2).exp().sum(1, { keepdim: true }))],
    ['a threshold that is not zero', (x) => sn.where(sn.le(x, 0.5), sn.zerosLike(x), x)],
    ['a maximum of other windows', (x) => sn.where(sn.lt(x, 0), x.neg(), x.mul(0.1))],
    ['a choice between a value and itself', (x) => sn.where(sn.lt(0, x), x, x.mul(1)).add(x)],
    ['a quotient by a sum over an axis of its own', (x) => x.div(sn.stack([x, x], 2).square().sum(2))],
    ['a mean by a wrong count', (x) => x.sum(1).div(5)],
    ['a norm over rows, scaled by columns', (x) => sn.layerNorm(x, 4).mul(sn.arange(3).reshape([3, 1]))],
  ];
  const compact = new Set(['Softmax', 'Relu', 'LeakyRelu', 'ReduceMean', 'MaxPool']);

  test.each(near)('%s', async (_, fn) => {
    const x = sn.randn([3, 4]);
    const model = await exportOnnx(fn, [x]);
    expect(opsOf(model).filter((op) => compact.has(op))).toEqual([]);
    await expectOutputs(model, { x }, { output: fn(x) });
  });
});
