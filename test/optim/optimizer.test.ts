// Runs in a process of its own: it counts what the collector leaves in memory.

import { describe, expect, test } from 'vitest';
import { Linear, Module, parameters } from '../../src/nn/index.ts';
import { Adam, adam, AdamW, adamW, clipGradNorm, LBFGS, SGD, sgd } from '../../src/optim/index.ts';
import { loadSafetensors, saveSafetensors } from '../../src/io/index.ts';
import { clearCache } from '../../src/tensor/evaluate/cache.ts';
import { compile } from '../../src/tensor/compile/compile.ts';
import { compileCount } from '../../src/tensor/evaluate/executable.ts';
import '../../src/operations/methods.ts';
import { manualSeed } from '../../src/tensor/generator.ts';
import { setRetainedMemoryLimit } from '../../src/tensor/handle/memory.ts';
import { mseLoss } from '../../src/tensor/ops/loss.ts';
import { tensor, zeros } from '../../src/tensor/ops/creation/creation.ts';
import { randn } from '../../src/tensor/ops/creation/random.ts';
import { pendingHandles } from '../../src/tensor/handle/recording.ts';
import type { Tensor } from '../../src/tensor/tensor.ts';
import { valueAndGrad } from '../../src/tensor/derivative/transform.ts';
import { settledAt } from '../support/collector.ts';
import { spyDevice } from '../tensor/support.ts';
import { close, numbers } from './support.ts';

/** A leaf whose gradient is set by hand. */
function leaf(...values: readonly number[]): Tensor {
  return tensor([...values]).requiresGrad_();
}

function give(param: Tensor, ...values: readonly number[]): void {
  param.grad = tensor([...values], { dtype: param.dtype });
}

describe('step', () => {
  test('skips parameters without a gradient, and counts steps for each', async () => {
    spyDevice();
    const [a, b] = [leaf(1), leaf(1)];
    const optimizer = new Adam([a, b], { lr: 0.1 });
    give(a, 1);
    optimizer.step();
    expect(await numbers(b)).toEqual([1]);
    give(b, 1);
    optimizer.zeroGrad();
    give(b, 1);
    optimizer.step();
    // The first step of Adam is lr in the direction of the gradient, whenever it comes.
    close(await numbers(b), [0.9], 1e-6);
    expect(optimizer.stateDict().steps).toEqual([1, 1]);
  });

  test('leaves leaves as leaves, without history', () => {
    spyDevice();
    const a = leaf(1);
    const optimizer = new SGD([a]);
    a.mul(a).sum().backward();
    optimizer.step();
    expect(a.requiresGrad).toBe(true);
    a.mul(3).sum().backward();
    expect(a.grad).toBeDefined();
  });

  test('computes parameters, slots and the loss that is pending around them in one run', async () => {
    const spy = spyDevice();
    const a = leaf(1, 2);
    const optimizer = new Adam([a]);
    await a.add(1).data();
    const before = spy.count.run;
    const loss = a.exp().sum();
    loss.backward();
    optimizer.step();
    expect(spy.count.run - before).toBe(1);
    expect(await loss.item()).toBeCloseTo(Math.E + Math.E ** 2, 5);
    await optimizer.stateDict().tensors['0.mean']!.data();
    expect(spy.count.run - before).toBe(1);
  });

  test('16-bit parameters move by steps kept in f32', async () => {
    spyDevice();
    for (const dtype of ['f16', 'bf16'] as const) {
      const a = tensor([1], { dtype }).requiresGrad_();
      const optimizer = new SGD([a], { lr: 1, momentum: 0.5 });
      for (let i = 0; i < 4; i++) {
        give(a, 2 ** -10);
        optimizer.step();
      }
      expect(a.dtype).toBe(dtype);
      const { tensors } = optimizer.stateDict();
      expect(tensors['0.direction']!.dtype).toBe('f32');
      close(await numbers(tensors['0.direction']!), [2 ** -10 * 1.875], 0);
    }
  });

  test('cannot be compiled, and says what can', () => {
    spyDevice();
    const a = leaf(1);
    const optimizer = new SGD([a]);
    const step = compile(() => {
      a.mul(a).sum().backward();
      optimizer.step();
      return a.mul(1);
    });
    expect(() => step()).toThrow(/SGD\.step: a compiled function would repeat[^]*functional form/);
  });
});

describe('groups', () => {
  test('have options of their own', async () => {
    spyDevice();
    const [a, b] = [leaf(1), leaf(1)];
    const optimizer = new SGD([{ params: [a] }, { params: { deep: [b] }, lr: 1, weightDecay: 0.5 }], {
      lr: 0.1,
    });
    give(a, 1);
    give(b, 1);
    optimizer.step();
    close([...(await numbers(a)), ...(await numbers(b))], [0.9, -0.5], 1e-7);
    expect(optimizer.lr).toBe(0.1);
  });

  test('share no parameter', () => {
    spyDevice();
    const a = leaf(1);
    expect(() => new SGD([{ params: [a] }, { params: [a] }])).toThrow('SGD: f32[1] is in two groups');
  });
});

test.each([
  ['no parameters', () => new SGD([]), 'SGD: there are no parameters'],
  ['a negative rate', () => new Adam([leaf(1)], { lr: -1 }), 'Adam: lr must be a number of at least 0'],
  [
    'a beta of 1',
    () => new AdamW([leaf(1)], { betas: [0.9, 1] }),
    'AdamW: betas[1] must be a number in [0, 1), got 1',
  ],
  ['nesterov without momentum', () => sgd({ nesterov: true }), 'nesterov needs a momentum'],
  ['clipping without gradients', () => clipGradNorm([leaf(1)], 1), 'no parameter has a gradient'],
  [
    'gradients of another structure',
    () => adam().update<unknown>([leaf(1)], { w: leaf(1) }, adam().init([leaf(1)])),
    'the trees differ in structure',
  ],
])('refuses %s', (_, run, message) => {
  spyDevice();
  expect(run).toThrow(message);
});

/** A regression that Adam solves: y = x·W for a fixed W. */
function regression(): { model: Linear; x: Tensor; y: Tensor } {
  manualSeed(3);
  const model = new Linear(3, 2);
  const x = randn([8, 3]);
  return { model, x, y: x.matmul(tensor([1, 2, 3, -1, 0, 1], { shape: [3, 2] })) };
}

describe('state', () => {
  test('of a saved optimizer goes on as if nothing had happened, through a file', async () => {
    spyDevice();
    const { model, x, y } = regression();
    const optimizer = new Adam(model, { lr: 0.1, amsgrad: true });
    const train = (steps: number, opt: Adam): void => {
      for (let i = 0; i < steps; i++) {
        opt.zeroGrad();
        mseLoss(model.forward(x), y).backward();
        opt.step();
      }
    };
    train(3, optimizer);
    const state = optimizer.stateDict();
    const weights = parameters(model).map((param) => param.detach());
    const file = await saveSafetensors(state.tensors);
    train(3, optimizer);
    const expected = await numbers(model.weight);

    parameters(model).forEach((param, i) => param.assign(weights[i]!));
    const other = new Adam(model, { lr: 0.1, amsgrad: true });
    other.loadStateDict({ ...state, tensors: loadSafetensors(file) });
    train(3, other);
    expect(await numbers(model.weight)).toEqual(expected);
    expect(other.stateDict().step).toBe(6);
  });

  test('of other parameters is refused', () => {
    spyDevice();
    const optimizer = new Adam([leaf(1)]);
    const state = optimizer.stateDict();
    expect(() => new Adam([leaf(1), leaf(2)]).loadStateDict(state)).toThrow('of 1 parameters, not 2');
    expect(() => new Adam([leaf(1, 2)]).loadStateDict(state)).toThrow('0.mean is f32[2], given f32[1]');
    expect(() => new SGD([leaf(1)], { momentum: 1 }).loadStateDict(state)).toThrow('lacks 0.direction');
  });
});

describe('a training loop', () => {
  test('compiles its step once for constants and once for what varies, whatever the rate does', async () => {
    clearCache();
    spyDevice();
    const { model, x, y } = regression();
    await y.data();
    const optimizer = new Adam(model);
    const step = (i: number): void => {
      optimizer.lr = 0.1 / (i + 1);
      optimizer.zeroGrad();
      mseLoss(model.forward(x), y).backward();
      optimizer.step();
    };
    step(0);
    step(1);
    await model.weight.data();
    const before = compileCount();
    for (let i = 2; i < 20; i++) step(i);
    await model.weight.data();
    expect(compileCount() - before).toBe(0);
  });

  test('f64 parameters compile once as well', async () => {
    clearCache();
    spyDevice();
    const a = tensor([1, 2], { dtype: 'f64' }).requiresGrad_();
    const optimizer = new Adam([a]);
    const step = (): void => {
      a.mul(a).sum().backward();
      optimizer.step();
      optimizer.zeroGrad();
    };
    step();
    step();
    await a.data();
    const before = compileCount();
    for (let i = 0; i < 5; i++) step();
    await a.data();
    expect(compileCount() - before).toBe(0);
  });

  test('keeps the number of buffers flat over 500 steps', async () => {
    const spy = spyDevice();
    const device = await spy.device;
    const budget = setRetainedMemoryLimit(1024);
    try {
      const { model, x, y } = regression();
      const optimizer = new Adam(model, { lr: 0.05 });
      const buffers: number[] = [];
      const pending = pendingHandles().size;
      for (let i = 0; i < 500; i++) {
        optimizer.zeroGrad();
        const loss = mseLoss(model.forward(x), y);
        loss.backward();
        optimizer.step();
        if (i % 100 === 99) {
          expect(await loss.item()).toBeTypeOf('number');
          buffers.push(await settledAt(() => device.memory().buffers));
        }
      }
      expect(Math.max(...buffers)).toBeLessThanOrEqual(buffers[0]! + 2);
      expect(Math.max(...buffers)).toBeLessThan(40);
      expect(pendingHandles().size).toBeLessThanOrEqual(pending);
    } finally {
      setRetainedMemoryLimit(budget);
    }
  });
});

describe('functions on trees', () => {
  class Net extends Module {
    readonly first = new Linear(3, 4);
    readonly rest = { last: [new Linear(4, 2)] };

    forward(x: Tensor): Tensor {
      return this.rest.last.reduce((at, layer) => layer.forward(at), this.first.forward(x).tanh());
    }
  }

  test('train a whole module inside compile, as the object does outside', async () => {
    spyDevice();
    const { x, y } = regression();
    const loss = (net: Net): Tensor => mseLoss(net.forward(x), y);

    manualSeed(1);
    const eager = new Net();
    const optimizer = new AdamW(eager, { lr: 0.05 });
    manualSeed(1);
    const rule = adamW({ lr: 0.05 });
    let net = new Net();
    let state = rule.init(net);
    const step = compile(
      (model: Net, before: typeof state) => {
        const { value, grad } = valueAndGrad(loss)(model);
        return [...rule.update(model, grad, before), value] as const;
      },
      { donate: [0, 1] },
    );
    const losses: (readonly [number, number])[] = [];
    for (let i = 0; i < 10; i++) {
      const eagerLoss = loss(eager);
      eagerLoss.backward();
      optimizer.step();
      optimizer.zeroGrad();
      let value: Tensor;
      [net, state, value] = step(net, state);
      losses.push([(await eagerLoss.item()) as number, (await value.item()) as number]);
    }
    for (const [a, b] of losses) expect(b).toBeCloseTo(a, 5);
    expect(losses.at(-1)![0]).toBeLessThan(losses[0]![0]);
    expect(net).toBeInstanceOf(Net);
    close(await numbers(net.rest.last[0]!.weight), await numbers(eager.rest.last[0]!.weight), 1e-5);
  });

  test('donate parameters and state: a step allocates next to nothing', async () => {
    const spy = spyDevice();
    const { model, x, y } = regression();
    const rule = adam();
    const step = compile(
      (net: Linear, state: ReturnType<typeof rule.init>, rate: Tensor) => {
        const { grad } = valueAndGrad((at: Linear) => mseLoss(at.forward(x), y))(net);
        return rule.update(net, grad, state, { lr: rate });
      },
      { donate: [0, 1] },
    );
    let net = model;
    let state = rule.init(net);
    [net, state] = step(net, state, 0.1);
    await net.weight.data();
    const [before, compiled] = [spy.count.allocate, compileCount()];
    for (let i = 0; i < 10; i++) [net, state] = step(net, state, 0.1 / (i + 1));
    await net.weight.data();
    // The step count is the one value that may be too small to take its donor's memory.
    expect(spy.count.allocate - before).toBeLessThanOrEqual(10);
    expect(compileCount()).toBe(compiled);
    expect(await state.step.item()).toBe(11);
  });
});

test('a model of which nothing requires gradients is refused, as by the functional form', () => {
  const frozen = new Linear(2, 1);
  for (const p of parameters(frozen)) p.requiresGrad_(false);
  const message = /no tensor of the parameters requires gradients, .* frozen or constants/;
  for (const make of [
    () => new AdamW(frozen),
    () => new SGD([{ params: frozen, lr: 0.1 }]),
    () => new LBFGS(frozen),
  ])
    expect(make).toThrow(message);
  // One of two models is frozen; tensors that stand by themselves are parameters.
  expect(() => new AdamW([frozen, new Linear(1, 1)])).not.toThrow();
  expect(() => new AdamW([zeros([2])])).not.toThrow();
});
