// Replay: once a compiled step has run, running it again makes no object on the GPU and submits once. Counted on the GPUDevice
// itself, with everything a training loop does: donated state, new batches, a loss that is read now and then.

import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { adam } from '../../src/optim/index.ts';
import { registerBackend } from '../../src/runtime/registry.ts';
import { setDevice, synchronize } from '../../src/tensor/device.ts';
import { compile } from '../../src/tensor/compile/compile.ts';
import { add, crossEntropy, matmul, mul, relu, sum } from '../../src/operations/index.ts';
import { tensor } from '../../src/tensor/ops/creation/creation.ts';
import type { Tensor } from '../../src/tensor/tensor.ts';
import { valueAndGrad } from '../../src/tensor/derivative/transform.ts';
import { finalized } from '../support/collector.ts';
import { openWithGpu } from '../runtime/devices.ts';

/** What a GPUDevice and its queue were asked for. */
type Calls = Record<(typeof creations)[number] | 'createCommandEncoder' | 'submit' | 'writeBuffer', number>;

const creations = [
  'createBuffer',
  'createBindGroup',
  'createBindGroupLayout',
  'createPipelineLayout',
  'createShaderModule',
  'createComputePipeline',
  'createComputePipelineAsync',
] as const;

const calls = { createCommandEncoder: 0, submit: 0, writeBuffer: 0 } as Calls;

/** Members of the largest pack of a program loaded. */
let packs = 0;

/** Counts calls of a method of `object`. */
function count<K extends keyof Calls>(object: Record<K, (...args: never[]) => unknown>, name: K): void {
  const call = object[name].bind(object);
  calls[name] = 0;
  object[name] = (...args: never[]): unknown => {
    calls[name] += 1;
    return call(...args);
  };
}

beforeAll(async () => {
  const { device, gpu } = await openWithGpu();
  for (const name of [...creations, 'createCommandEncoder'] as const) count(gpu as never, name);
  for (const name of ['submit', 'writeBuffer'] as const) count(gpu.queue as never, name);
  const load = device.load.bind(device);
  device.load = (program) => {
    packs = Math.max(packs, ...program.packs.map(({ members }) => members.length));
    return load(program);
  };
  registerBackend({ name: 'counted', open: () => Promise.resolve(device) });
  setDevice('counted');
});

afterAll(async () => {
  await synchronize();
  setDevice(undefined);
});

type Layer = { readonly weight: Tensor; readonly bias: Tensor };

/** Layers, and tensors that are only decayed: their updates are kernels of their own, merged over packs. */
type Model = { readonly layers: readonly [Layer, Layer]; readonly decayed: readonly Tensor[] };

function perceptron(): Model {
  const decayed = [3, 257, 20].map((size) => tensor(new Float32Array(size).fill(1)));
  return { layers: [layer(50, 24, 1), layer(24, 10, 2)], decayed };
}

function lossOf({ layers: [hidden, out], decayed }: Model, images: Tensor, labels: Tensor): Tensor {
  const activations = relu(add(matmul(images, hidden.weight), hidden.bias));
  const loss = crossEntropy(add(matmul(activations, out.weight), out.bias), labels);
  return decayed.reduce((total, part) => add(total, sum(mul(part, part))), loss);
}

function layer(inputs: number, outputs: number, seed: number): Layer {
  const values = Float32Array.from({ length: inputs * outputs }, (_, i) => Math.sin(seed + 7 * i) / 8);
  return {
    weight: tensor(values, { shape: [inputs, outputs] }),
    bias: tensor(new Float32Array(outputs), { shape: [outputs] }),
  };
}

function batch(step: number): [images: Tensor, labels: Tensor] {
  const images = Float32Array.from({ length: 16 * 50 }, (_, i) => Math.cos(step + i * i));
  return [
    tensor(images, { shape: [16, 50] }),
    tensor(Int32Array.from({ length: 16 }, (_, i) => (i + step) % 10)),
  ];
}

describe.each([true, false])('a train step of a perceptron, state donated: %s', (isDonated) => {
  test('makes nothing on the GPU and submits once, from the third run on', async () => {
    const { init, update } = adam({ lr: 1e-2 });
    const step = compile(
      (model: Model, state: ReturnType<typeof init>, images: Tensor, labels: Tensor) => {
        const { value, grad } = valueAndGrad((m: Model) => lossOf(m, images, labels))(model);
        return [value, ...update(model, grad, state)] as const;
      },
      isDonated ? { donate: [0, 1] } : {},
    );
    // What came before gives its memory back now: places that come free meanwhile are other places to bind.
    await finalized();
    let model = perceptron();
    let state = init(model);
    const run = (at: number): Tensor => {
      const [images, labels] = batch(at);
      const before = [model, state] as const;
      const [value, nextModel, nextState] = step(model, state, images, labels);
      [model, state] = [nextModel, nextState];
      if (!isDonated) for (const old of leavesOf(before)) old.dispose();
      images.dispose();
      labels.dispose();
      return value;
    };
    const losses: number[] = [];
    for (let i = 0; i < 6; i++) {
      const value = run(i % 3);
      losses.push(Number(await value.item()));
      value.dispose();
    }
    expect(packs).toBeGreaterThan(1);
    const before = { ...calls };
    const steps = 20;
    for (let i = 0; i < steps; i++) run(i % 3).dispose();
    const after = { ...calls };
    const last = run(0);
    expect(Number(await last.item())).toBeLessThan(losses[0]!);
    for (const name of creations) expect([name, after[name]]).toEqual([name, before[name]]);
    expect(after.submit - before.submit).toBe(steps);
    expect(after.createCommandEncoder - before.createCommandEncoder).toBe(steps);
    // Two uploads a step, and the scalars where they change.
    expect(after.writeBuffer - before.writeBuffer).toBeLessThanOrEqual(3 * steps);
  });
});

function leavesOf(tree: unknown): Tensor[] {
  if (Array.isArray(tree)) return tree.flatMap(leavesOf);
  const item = tree as Tensor | Record<string, unknown>;
  return 'dispose' in item && typeof item.dispose === 'function'
    ? [item as Tensor]
    : Object.values(item).flatMap(leavesOf);
}
