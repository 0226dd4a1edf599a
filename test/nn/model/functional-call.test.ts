// A model called with other tensors in the places of its own.

import { beforeAll, expect, test } from 'vitest';
import * as sn from '../../../src/index.ts';
import {
  BatchNorm,
  functionalCall,
  Linear,
  namedParameters,
  Sequential,
  train,
} from '../../../src/nn/index.ts';

beforeAll(() => sn.setDevice('interpreter'));

type T = sn.Tensor;
const x = (): T =>
  sn.tensor([
    [1, 2],
    [3, 4],
  ]);

test('computes with what is given, and leaves the model as it is', async () => {
  const model = new Sequential(new Linear(2, 2), new Linear(2, 1));
  const before = await model.forward(x()).array();
  const zeros = Object.fromEntries([...namedParameters(model)].map(([name, p]) => [name, sn.zerosLike(p)]));
  expect(await functionalCall(model, zeros, x()).array()).toEqual([[0], [0]]);
  const last = [...namedParameters(model).keys()].at(-1)!;
  const first = [...namedParameters(model).keys()][0]!;
  expect(last).not.toBe(first);
  expect(
    await functionalCall(model, { [first]: sn.zerosLike(namedParameters(model).get(first)!) }, x()).array(),
  ).not.toEqual(before);
  expect(await functionalCall(model, {}, x()).array()).toEqual(before);
  expect(await model.forward(x()).array()).toEqual(before);
});

test('is differentiated with respect to what is given, and maps over ensembles', async () => {
  const model = new Linear(2, 1);
  const params = { weight: sn.tensor([[2, 3]]), bias: sn.tensor([1]) };
  const f = (p: { weight: T; bias: T }, y: T): T => functionalCall(model, p, y).sum();
  const grad = sn.grad(f)(params, x());
  expect([await grad.weight.array(), await grad.bias.array()]).toEqual([[[4, 6]], [2]]);
  const ensemble = { weight: sn.stack([params.weight, params.weight.mul(2)]), bias: sn.zeros([2, 1]) };
  const each = sn.vmap((p: typeof params, y: T) => functionalCall(model, p, y), { inAxes: [0, null] });
  expect(await each(ensemble, x()).array()).toEqual([
    [[8], [18]],
    [[16], [36]],
  ]);
});

test('replaces tied tensors everywhere, and state', async () => {
  const shared = new Linear(2, 2);
  const tied = new Sequential(shared, new Linear(2, 2));
  (tied as unknown as { layers: Linear[] }).layers[1]!.weight = shared.weight;
  const [name] = [...namedParameters(tied)].find(([, p]) => p === shared.weight)!;
  const biases = [...namedParameters(tied).keys()].filter((key) => key.endsWith('bias'));
  const given = Object.fromEntries([
    [name, sn.eye(2).mul(2)],
    ...biases.map((key) => [key, sn.zeros([2])]),
  ] as [string, T][]);
  expect(await functionalCall(tied, given, x()).array()).toEqual([
    [4, 8],
    [12, 16],
  ]);
  const norm = train(new BatchNorm(2), false);
  const moved = functionalCall(norm, { runningMean: sn.tensor([1, 2]) }, x());
  expect(Number(await moved.select(0, 0).sum().item())).toBeCloseTo(0, 5);
  expect(await norm.runningMean!.array()).toEqual([0, 0]);
});

test('refuses what the model lacks, and tensors unlike its own', () => {
  const model = new Linear(2, 1);
  expect(() => functionalCall(model, { wieght: sn.zeros([1, 2]) }, x())).toThrow(
    /no tensor 'wieght'[^]*weight/,
  );
  expect(() => functionalCall(model, { weight: sn.zeros([2]) }, x())).toThrow(
    /weight is f32\[1,2\] in the model/,
  );
  expect(() => functionalCall(model, { weight: 1 as never }, x())).toThrow(/weight must be a tensor/);
});

test('stopGradient ends derivatives of every kind, in a tree', async () => {
  const f = (y: T): T => {
    const [still] = sn.stopGradient([y, 'a'] as const);
    return y.mul(still).sum();
  };
  const at = sn.tensor([1, 2]);
  expect(await sn.grad(f)(at).array()).toEqual([1, 2]);
  expect(await sn.jvp(f, [at], [sn.ones([2])]).tangent.item()).toBe(3);
  expect(
    await sn
      .vmap(sn.grad(f))(sn.stack([at, at]))
      .array(),
  ).toEqual([
    [1, 2],
    [1, 2],
  ]);
});
