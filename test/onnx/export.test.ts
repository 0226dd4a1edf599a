// Functions and models exported to ONNX: what their files say, and that ONNX Runtime computes from them what the functions do.

import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import * as sn from '../../src/index.ts';
import { setDevice, type Tensor } from '../../src/index.ts';
import { unpackBytes } from '../../src/ir/value.ts';
import { Conv2d, Linear, Module, ReLU, Sequential, TransformerBlock } from '../../src/nn/index.ts';
import type { Initializer } from '../../src/onnx/export/emitter.ts';
import { writeModel } from '../../src/onnx/export/file.ts';
import { exportOnnx, loadOnnx, UnsupportedOpsError, type ExportedModel } from '../../src/onnx/index.ts';
import { readTensorProto } from '../../src/onnx/tensor-file.ts';
import { expectOutputs, graphOf, hostOf, hostsOf, opsOf } from '../support/onnx/exported.ts';
import { runInPeer } from '../support/onnx/runtime.ts';
import { expectClose } from '../support/random/graph.ts';

beforeAll(() => {
  setDevice('interpreter');
  sn.manualSeed(11);
});
afterAll(() => setDevice(undefined));

describe('names', () => {
  const w = sn.randn([4, 3]);

  test('of inputs and outputs are those of arguments and results', async () => {
    const fn = (x: Tensor, { bias }: { bias: Tensor }): { sum: Tensor; parts: [Tensor, Tensor] } => ({
      sum: x.matmul(w).add(bias),
      parts: [x.neg(), x.abs()],
    });
    const [x, bias] = [sn.randn([2, 4]), sn.randn([3])];
    const model = await exportOnnx(fn, [x, { bias }]);
    const { sum, parts } = fn(x, { bias });
    const outputs = { sum, 'parts[0]': parts[0], 'parts[1]': parts[1] };
    await expectOutputs(model, { x, bias }, outputs);
    expect(graphOf(model).input.map(({ name }) => name)).toEqual(['x', 'bias']);
    expect(graphOf(model).initializer.map(({ name }) => name)).toEqual(['weight0']);
  });

  test('of initializers are those of a module, or given', async () => {
    const layer = new Sequential(new Linear(4, 3), new ReLU());
    const x = sn.randn([2, 4]);
    const names = (model: ExportedModel): string[] =>
      graphOf(model)
        .initializer.map(({ name }) => name!)
        .filter((name) => !name.startsWith('constant'))
        .sort();
    const ofModule = await exportOnnx(layer, [x]);
    expect(names(ofModule)).toEqual(['layers.0.bias', 'layers.0.weight']);
    const given = await exportOnnx((x: Tensor) => x.matmul(w), [x], { parameters: { table: w } });
    expect(names(given)).toEqual(['table']);
    await expectOutputs(ofModule, { x }, { output: layer.forward(x) });
  });

  test('that clash are told apart', async () => {
    const fn = (x: Tensor): { x: Tensor; same: Tensor; again: Tensor } => {
      const y = x.neg();
      return { x: y, same: y, again: x };
    };
    const x = sn.randn([3]);
    const model = await exportOnnx(fn, [x]);
    await expectOutputs(model, { x }, { x_1: x.neg(), same: x.neg(), again: x });
  });

  test('of numbers are inputs of rank 0, and arguments that nothing reads stay', async () => {
    const fn = (x: Tensor, factor: number, unused: Tensor): Tensor => {
      expect(unused.rank).toBe(1);
      return x.mul(factor);
    };
    const x = sn.randn([3]);
    const model = await exportOnnx(fn, [x, 2, x]);
    const factor = sn.tensor(2);
    await expectOutputs(model, { x, factor, unused: x }, { output: x.mul(2) });
  });
});

test('the way back of a transform has all digits of doubles', async () => {
  const fn = (x: Tensor): Tensor => sn.fft.irfft(sn.fft.rfft(x), { n: 6 });
  const x = sn.tensor(Float64Array.of(1, 1 / 3, -2, 0.1, 5, -1 / 7));
  const { output } = await runInPeer((await exportOnnx(fn, [x])).bytes, await hostsOf({ x }));
  expectClose(output!, await hostOf(x), 1e-13);
});

describe('weights', () => {
  const layer = new Linear(64, 16, { bias: false });
  const x = sn.randn([3, 64]);

  test.each([
    ['f32', 1, 4096, 1e-5],
    ['f16', 10, 2048, 1e-2],
    ['q8_0', 3, 1024, 5e-2],
    ['q4_0', 22, 512, 0.5],
  ] as const)('of %s lie in the file as they are stored', async (dtype, code, bytes, tolerance) => {
    const model = await exportOnnx(layer, [x], { dtype });
    const stored = graphOf(model).initializer.find(({ name }) => name!.startsWith('weight'))!;
    expect([stored.dataType, stored.rawData!.length]).toEqual([code, bytes]);
    expect(model.bytes.length).toBeLessThan(bytes + 128 + 1000);
    const [found] = Object.values(await runInPeer(model.bytes, await hostsOf({ x })));
    expectClose(found!, await hostOf(layer.forward(x)), tolerance);
    // Whatever was rounded was rounded when it was stored: readers agree.
    const [again] = Object.values(await (await loadOnnx(model.bytes)).run({ x }));
    expectClose(await hostOf(again!), found!, 1e-5);
  });

  test('of f16 stay in 16 bits', async () => {
    const half = layer.weight.detach().cast('f16');
    const fn = (x: Tensor): Tensor => x.matmul(half.transpose());
    const given = x.cast('f16');
    const model = await exportOnnx(fn, [given]);
    expect(graphOf(model).initializer[0]!.dataType).toBe(10);
    await expectOutputs(model, { x: given }, { output: fn(given) }, 1e-2);
  });

  test('lie in files beside the model where that is asked for', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'export-'));
    try {
      const model = await exportOnnx(layer, [x], { externalData: 'layer.bin' });
      expect(Object.keys(model.externalData)).toEqual(['layer.bin']);
      expect(model.externalData['layer.bin']!.length).toBe(4096);
      const path = join(folder, 'layer.onnx');
      await model.save(path);
      expect(readdirSync(folder).sort()).toEqual(['layer.bin', 'layer.onnx']);
      const expected = await hostOf(layer.forward(x));
      const [found] = Object.values(await runInPeer(path, await hostsOf({ x })));
      expectClose(found!, expected, 1e-5);
      const again = await loadOnnx(model.bytes, { externalData: model.externalData });
      expectClose(await hostOf(Object.values(await again.run({ x }))[0]!), expected, 1e-5);
    } finally {
      rmSync(folder, { recursive: true });
    }
  });
});

test('elements that do not fit into a message lie in as many files as it takes', async () => {
  const initializer = (name: string, count: number): Initializer => {
    const data = new Uint8Array(Float32Array.from({ length: count }, (_, i) => i).buffer);
    return { name, type: 'float', shape: [count], data };
  };
  const initializers = [
    initializer('a', 600),
    initializer('b', 300),
    initializer('c', 1000),
    initializer('d', 2),
  ];
  const outputs = initializers.map(({ name, shape }) => ({ name: `${name}y`, dtype: 'f32', shape }) as const);
  const nodes = initializers.map(({ name }) => ({ opType: 'Identity', input: [name], output: [`${name}y`] }));
  const parts = { name: 'large', opset: 21, inputs: [], outputs, nodes, initializers };
  const { bytes, externalData } = writeModel(parts, undefined, 6000);
  const sizes = Object.entries(externalData).map(([name, { length }]) => [name, length]);
  expect(sizes).toEqual([
    ['weights.bin', 4096 + 1200],
    ['weights.bin.1', 4000],
  ]);
  const found = await hostsOf(await (await loadOnnx(bytes, { externalData })).run({}));
  for (const [name, { data }] of Object.entries(found))
    expect([name, data.at(-1)]).toEqual([name, data.length - 1]);
});

describe('refused is', () => {
  const x = sn.randn([4]);

  test('what ONNX has no words for, all of it at once', async () => {
    const fn = (x: Tensor): Tensor => x.add(sn.randn([4])).add(sn.bitcast(x, 'i32').cast('f32'));
    const error = await exportOnnx(fn, [x]).catch((problem: unknown) => problem);
    expect(error).toBeInstanceOf(UnsupportedOpsError);
    expect((error as UnsupportedOpsError).ops.map(({ op }) => op).sort()).toEqual(['bitcast', 'randomBits']);
    expect((error as Error).message).toMatch(/\n {2}bitcast to i32\[4\]: the bits of floats/);
  });

  test('a function that assigns, or returns no tensor', async () => {
    const total = sn.zeros([4]);
    const assigns = (x: Tensor): Tensor => {
      total.assign(total.add(x));
      return x.neg();
    };
    await expect(exportOnnx(assigns, [x])).rejects.toThrow('exportOnnx: the function assigns to a tensor');
    await expect(exportOnnx(assigns, [x])).rejects.toThrow('try: evalMode(model)');
    await expect(exportOnnx(() => 3, [x])).rejects.toThrow('returns 3, which is not a tensor');
    await expect(exportOnnx(() => ({}), [x])).rejects.toThrow('returns no tensor');
  });

  test('an option that means nothing', async () => {
    const fn = (x: Tensor): Tensor => x.neg();
    await expect(exportOnnx(fn, [x], { opset: 12 })).rejects.toThrow('opset 12');
    await expect(exportOnnx(fn, [x], { externalData: '../w.bin' })).rejects.toThrow("'../w.bin'");
    await expect(exportOnnx(fn, [x], { dtype: 'q2' as 'f16' })).rejects.toThrow("'q2'");
    await expect(exportOnnx(3 as never, [x])).rejects.toThrow('expects a function, got 3');
  });
});

class Images extends Module {
  readonly first = new Conv2d(3, 8, 3, { stride: 2, padding: 1 });
  readonly second = new Conv2d(8, 8, 3, { groups: 2, padding: 1 });
  readonly head = new Linear(8 * 4, 5);

  forward(x: Tensor): Tensor {
    const seen = sn.maxPool2d(sn.relu(this.first.forward(x)), 3, { stride: 2, padding: 1 });
    const again = sn.avgPool2d(sn.silu(this.second.forward(seen)), 2);
    return sn.softmax(this.head.forward(again.reshape([x.shape[0]!, 8 * 4])));
  }
}

describe('exported', () => {
  test('a convolutional net', async () => {
    const net = new Images();
    const x = sn.randn([2, 3, 16, 16]);
    const model = await exportOnnx(net, [x]);
    expect(opsOf(model).filter((op) => op === 'Conv').length).toBe(2);
    await expectOutputs(model, { x }, { output: net.forward(x) });
  });

  test('a transformer block over tokens, causal', async () => {
    const block = new TransformerBlock(16, 2, { causal: true });
    const table = sn.randn([20, 16]);
    const fn = (tokens: Tensor): Tensor => block.forward(sn.embedding(tokens, table));
    const tokens = sn.tensor([[3, 1, 4, 1, 5, 19]], { dtype: 'i32' });
    const model = await exportOnnx(fn, [tokens], { parameters: { block, table } });
    expect(graphOf(model).initializer.map(({ name }) => name)).toContain('block.feedForward.up.weight');
    await expectOutputs(model, { tokens }, { output: fn(tokens) }, 2e-5);
  });

  test('a step of training, with its gradients', async () => {
    interface Layers {
      readonly w1: Tensor;
      readonly w2: Tensor;
    }
    const loss = ({ w1, w2 }: Layers, x: Tensor, labels: Tensor): Tensor =>
      sn.crossEntropy(sn.gelu(x.matmul(w1)).matmul(w2), labels);
    const step = (
      layers: Layers,
      x: Tensor,
      labels: Tensor,
      rate: number,
    ): { loss: Tensor; next: Layers } => {
      const { value, grad } = sn.valueAndGrad(loss)(layers, x, labels);
      const next = { w1: layers.w1.sub(grad.w1.mul(rate)), w2: layers.w2.sub(grad.w2.mul(rate)) };
      return { loss: value, next };
    };
    const layers = { w1: sn.randn([6, 8]), w2: sn.randn([8, 3]) };
    const [x, labels] = [sn.randn([5, 6]), sn.tensor([0, 2, 1, 1, 0], { dtype: 'i32' })];
    const model = await exportOnnx(step, [layers, x, labels, 0.1]);
    const inputs = { 'layers.w1': layers.w1, 'layers.w2': layers.w2, x, labels, rate: sn.tensor(0.1) };
    const { loss: value, next } = step(layers, x, labels, 0.1);
    await expectOutputs(model, inputs, { loss: value, 'next.w1': next.w1, 'next.w2': next.w2 }, 2e-5);
  });

  const folder = resolve(import.meta.dirname, '../../../shared/onnx/models/squeezenet');
  test('an imported model gives what its files expect', async ({ skip }) => {
    if (!existsSync(folder)) skip('there are no models beside the repository');
    setDevice('wasm');
    const imported = await loadOnnx(join(folder, 'model.onnx'));
    const [given, wanted] = ['input_0.pb', 'output_0.pb'].map((file) => {
      const { dtype, shape, data } = readTensorProto(readFileSync(join(folder, file)));
      return unpackBytes(data, dtype, shape);
    });
    const fn = imported.toFunction();
    const name = imported.inputs[0]!.name;
    const x = sn.zeros(given!.shape);
    const model = await exportOnnx((inputs: Record<string, Tensor>) => fn(inputs), [{ [name]: x }], {
      parameters: imported.parameters,
    });
    expect(graphOf(model).initializer.map((one) => one.name)).toEqual(
      expect.arrayContaining(Object.keys(imported.parameters)),
    );
    const [found] = Object.values(await runInPeer(model.bytes, { [graphOf(model).input[0]!.name!]: given! }));
    expectClose(found!, wanted!, 1e-4);
    setDevice('interpreter');
  });
});
