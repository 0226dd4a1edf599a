// State dictionaries under PyTorch's names, in both directions.

import { readFileSync } from 'node:fs';
import { beforeAll, expect, test } from 'vitest';
import * as sn from '../../src/index.ts';
import { loadTorch } from '../../src/io/index.ts';
import {
  BatchNorm,
  evalMode,
  Linear,
  loadTorchStateDict,
  Module,
  MultiHeadAttention,
  Sequential,
  stateDict,
  torchStateDict,
} from '../../src/nn/index.ts';

beforeAll(() => sn.setDevice('wasm'));

const file = new URL('../fixtures/torch-files/model.pt', import.meta.url);

function network(): Sequential {
  return new Sequential(new Linear(3, 2), new BatchNorm(2), sn.relu, new Linear(2, 2, { bias: false }));
}

test("a Sequential takes PyTorch's file as it is, and gives its names back", async () => {
  const tensors = await loadTorch(new Uint8Array(readFileSync(file)));
  const model = evalMode(network());
  const { missing, unexpected } = loadTorchStateDict(model, tensors);
  expect([missing, unexpected]).toEqual([[], []]);
  const given = torchStateDict(model);
  expect(Object.keys(given).toSorted()).toEqual(
    Object.keys(tensors)
      .filter((name) => !name.endsWith('num_batches_tracked'))
      .toSorted(),
  );
  for (const [name, tensor] of Object.entries(given))
    expect(await tensor.array(), name).toEqual(await tensors[name]!.array());
});

test('names that are on one side only are errors, as of loadStateDict', async () => {
  const tensors = await loadTorch(new Uint8Array(readFileSync(file)));
  const { '0.bias': _, ...rest } = tensors;
  expect(() => loadTorchStateDict(network(), rest)).toThrow(/lacks layers\.0\.bias/);
  expect(() => loadTorchStateDict(network(), { ...tensors, other: tensors['0.bias']! })).toThrow(
    /the model lacks other/,
  );
});

class Encoder extends Module {
  readonly selfAttention = new MultiHeadAttention(4, 2);
  readonly outNorm = new BatchNorm(4);

  forward(x: sn.Tensor): sn.Tensor {
    return this.selfAttention.forward(x);
  }
}

test('projections of attention are one tensor there, and own names are in snake_case', async () => {
  const [model, other] = [new Encoder(), new Encoder()];
  const given = torchStateDict(model);
  expect(Object.entries(given).map(([name, { shape }]) => `${name} [${shape.join(',')}]`)).toEqual([
    'self_attention.in_proj_weight [12,4]',
    'self_attention.in_proj_bias [12]',
    'self_attention.out_proj.weight [4,4]',
    'self_attention.out_proj.bias [4]',
    'out_norm.weight [4]',
    'out_norm.bias [4]',
    'out_norm.running_mean [4]',
    'out_norm.running_var [4]',
  ]);
  loadTorchStateDict(other, given);
  for (const [name, tensor] of Object.entries(stateDict(model)))
    expect(await stateDict(other)[name]!.array(), name).toEqual(await tensor.array());
});
