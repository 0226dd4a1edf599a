// A model in another dtype: in place, so that optimizers and compiled functions go on with it.

import { beforeAll, expect, test } from 'vitest';
import * as sn from '../../../src/index.ts';
import * as nn from '../../../src/nn/index.ts';
import { Adam, adam } from '../../../src/optim/index.ts';

beforeAll(() => sn.setDevice('wasm'));

function network(): nn.Sequential {
  return new nn.Sequential(new nn.Linear(2, 3), new nn.BatchNorm(3), sn.relu, new nn.Linear(3, 1));
}

test('floats change in place, state and gradients with them; other dtypes stay', async () => {
  const net = network();
  const layer = net.layers[0] as nn.Linear;
  const { weight } = layer;
  net.registerBuffer('steps', sn.tensor([1], { dtype: 'i32' }));
  net
    .forward(sn.ones([4, 2]))
    .sum()
    .backward();
  const values = await weight.array();
  expect(nn.to(net, 'bf16')).toBe(net);
  expect(layer.weight).toBe(weight);
  expect(new Set([...nn.parameters(net), ...nn.buffers(net)].map(({ dtype }) => dtype))).toEqual(
    new Set(['bf16', 'i32']),
  );
  expect([weight.requiresGrad, weight.grad!.dtype]).toEqual([true, 'bf16']);
  expect(await weight.array()).toEqual(
    await sn
      .tensor(values as number[][])
      .cast('bf16')
      .array(),
  );
  expect(net.forward(sn.ones([4, 2], { dtype: 'bf16' })).dtype).toBe('bf16');
});

test('tied weights stay one', () => {
  const [a, b] = [new nn.Linear(2, 2), new nn.Linear(2, 2)];
  b.weight = a.weight;
  nn.to({ a, b }, 'f64');
  expect([b.weight === a.weight, a.weight.dtype]).toEqual([true, 'f64']);
});

test('compiled functions that captured the model are made anew', async () => {
  const net = new nn.Linear(2, 1);
  const predict = sn.compile((x: sn.Tensor) => net.forward(x));
  const x = sn.ones([1, 2]);
  const [before] = (await predict(x).array()) as number[][];
  nn.to(net, 'f64');
  const after = predict(x);
  expect(after.dtype).toBe('f64');
  expect(((await after.array()) as number[][])[0]![0]).toBeCloseTo(before![0]!, 6);
});

/** Steps of Adam, with the model in other dtypes on the way. */
async function trained(dtypes: readonly sn.DType[]): Promise<{ net: nn.Linear; optimizer: Adam }> {
  sn.manualSeed(1);
  const net = new nn.Linear(2, 1);
  const optimizer = new Adam(net, { lr: 0.1 });
  for (const dtype of dtypes) {
    nn.to(net, dtype);
    net
      .forward(sn.tensor([[1, 2]], { dtype }))
      .square()
      .sum()
      .backward();
    optimizer.step();
    optimizer.zeroGrad();
    await net.weight.data();
  }
  return { net, optimizer };
}

test("an optimizer's state goes on: f32 for 16 bits, f64 for f64", async () => {
  const half = await trained(['f32', 'f16', 'bf16', 'f32']);
  expect(Object.values(half.optimizer.stateDict().tensors).map(({ dtype }) => dtype)).toEqual(
    Array.from({ length: 4 }, () => 'f32'),
  );
  const wide = await trained(['f32', 'f64', 'f64']);
  expect(new Set(Object.values(wide.optimizer.stateDict().tensors).map(({ dtype }) => dtype))).toEqual(
    new Set(['f64']),
  );
  const plain = await trained(['f32', 'f32', 'f32']);
  const [found, expected] = [await wide.net.weight.array(), await plain.net.weight.array()] as number[][][];
  found![0]!.forEach((value, i) => expect(value).toBeCloseTo(expected![0]![i]!, 5));
});

test('functional state of f32 fits 16 bits, and is refused where it does not fit', () => {
  const net = new nn.Linear(2, 1);
  const optimizer = adam();
  const state = optimizer.init(net);
  const step = (): unknown =>
    optimizer.update(
      net,
      sn.grad((m: nn.Linear) => m.forward(sn.ones([1, 2], { dtype: net.weight.dtype })).sum())(net),
      state,
    );
  nn.to(net, 'f16');
  expect(step).not.toThrow();
  nn.to(net, 'f64');
  expect(step).toThrow(/the state's mean/);
});

test('devices are not of tensors, and traces cannot convert what is outside', () => {
  expect(() => nn.to(new nn.Linear(1, 1), 'cuda' as never)).toThrow(/setDevice\('cuda'\)/);
  expect(() => nn.to(new nn.Linear(1, 1), 'i32' as never)).toThrow(/no fractions/);
  const net = new nn.Linear(1, 1);
  expect(() => sn.compile((x: sn.Tensor) => nn.to(net, 'f16').forward(x))(sn.ones([1, 1]))).toThrow(
    /cannot change the dtype/,
  );
});
