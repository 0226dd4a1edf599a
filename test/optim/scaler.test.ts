// Loss scaling: the scale's rule, steps left out, and both forms alike.

import { beforeAll, describe, expect, test } from 'vitest';
import * as sn from '../../src/index.ts';
import * as nn from '../../src/nn/index.ts';
import { Adam, adam, GradScaler, gradScaler, scaled, SGD } from '../../src/optim/index.ts';
import { numbers } from './support.ts';

beforeAll(() => sn.setDevice('wasm'));

const settings = { initScale: 1024, growthFactor: 2, backoffFactor: 0.5, growthInterval: 3 };
/** Where gradients overflow in a run, and PyTorch's rule for the scale after each step. */
const overflows = [0, 0, 0, 1, 0, 0, 0, 0, 1, 1, 0, 0, 0].map(Boolean);
const scales = [1024, 1024, 2048, 1024, 1024, 1024, 2048, 2048, 1024, 512, 512, 512, 1024];

describe('the scale', () => {
  test('grows after steps in a row, and falls where one overflowed: functions', async () => {
    const scaling = gradScaler(settings);
    let state = scaling.init();
    const step = sn.compile((at: typeof state, grad: sn.Tensor) => {
      const [own, finite] = scaling.unscale({ w: grad }, at);
      return [scaling.update(at, finite), own.w] as const;
    });
    for (const [i, isOver] of overflows.entries()) {
      const before = i === 0 ? settings.initScale : scales[i - 1]!;
      const [next, own] = step(state, sn.tensor([isOver ? Infinity : before * 3, 0]));
      if (!isOver) expect(await own.array()).toEqual([3, 0]);
      state = next;
      expect(await state.scale.item(), `step ${i}`).toBe(scales[i]);
    }
  });

  test('grows after steps in a row, and falls where one overflowed: the class', async () => {
    const scaler = new GradScaler(settings);
    const param = sn.tensor([1, 1]).requiresGrad_();
    const optimizer = new SGD([param], { lr: 0.5 });
    let expected = 1;
    for (const [i, isOver] of overflows.entries()) {
      param.grad = sn.tensor([isOver ? Number.NaN : scaler.factor, 0]);
      expect(await scaler.step(optimizer)).toBe(!isOver);
      scaler.update();
      if (!isOver) expected -= 0.5;
      expect(scaler.factor, `step ${i}`).toBe(scales[i]);
      expect(await param.array()).toEqual([expected, 1]);
    }
  });

  test('is at most what f32 holds', async () => {
    const scaling = gradScaler({ initScale: 2 ** 127, growthInterval: 1 });
    const next = scaling.update(scaling.init(), sn.tensor(true));
    expect(await next.scale.item()).toBe(2 ** 127);
    const scaler = new GradScaler({ initScale: 2 ** 127, growthInterval: 1 });
    const param = sn.tensor([1]).requiresGrad_();
    param.grad = sn.tensor([1]);
    await scaler.step(new SGD([param]));
    scaler.update();
    expect(scaler.factor).toBe(2 ** 127);
  });
});

test('a compiled step in mixed precision skips what overflows, state and count included', async () => {
  const optimizer = scaled(adam({ lr: 0.1 }), settings);
  sn.manualSeed(3);
  let model = new nn.Linear(2, 1);
  let state = optimizer.init(model);
  const step = sn.compile((m: nn.Linear, at: typeof state, x: sn.Tensor) => {
    const grads = sn.grad((inner: nn.Linear) =>
      optimizer.scale(
        sn.autocast(() => sn.mseLoss(inner.forward(x), 1)),
        at,
      ),
    )(m);
    return optimizer.update(m, grads, at);
  });
  const plain = adam({ lr: 0.1 });
  let same = model;
  let expected = plain.init(same);
  for (const scale of [1, 2, 60_000, 3]) {
    const x = sn.tensor([[scale, scale]]);
    // 60,000 squared is beyond f16: so are the products of the forward pass.
    const isOver = scale > 1000;
    if (!isOver) {
      const grads = sn.grad((inner: nn.Linear) => sn.autocast(() => sn.mseLoss(inner.forward(x), 1)))(same);
      [same, expected] = plain.update(same, grads, expected);
    }
    const before = await numbers(model.weight);
    [model, state] = step(model, state, isOver ? x.mul(x) : x);
    if (isOver) expect(await numbers(model.weight)).toEqual(before);
    expect(model.weight.requiresGrad).toBe(true);
  }
  expect(await state.optimizer.step.item()).toBe(3);
  expect(await state.scaler.scale.item()).toBe(512);
  const [found, wanted] = [await numbers(model.weight), await numbers(same.weight)];
  found.forEach((value, i) => expect(value).toBeCloseTo(wanted[i]!, 3));
});

describe('the class', () => {
  test('is where autocast belongs: small gradients survive', async () => {
    const weight = sn.tensor([[1e-4]]).requiresGrad_();
    const optimizer = new SGD([weight], { lr: 1 });
    const scaler = new GradScaler();
    const loss = sn.autocast(() =>
      weight
        .matmul(sn.tensor([[1e-3]]))
        .cast('f32')
        .mul(1e-5)
        .sum(),
    );
    scaler.scale(loss).backward();
    scaler.unscale(optimizer);
    expect((await numbers(weight.grad!))[0]).toBeCloseTo(1e-8, 10);
    await scaler.step(optimizer);
    scaler.update();
  });

  test('goes on from a saved state', () => {
    const scaler = new GradScaler(settings);
    scaler.loadStateDict({ scale: 32, tracker: 2 });
    expect(scaler.stateDict()).toEqual({ scale: 32, tracker: 2 });
    expect(() => scaler.loadStateDict({ scale: -1, tracker: 0 })).toThrow(/positive/);
  });

  test('says what is out of order', async () => {
    const scaler = new GradScaler();
    const param = sn.tensor([1]).requiresGrad_();
    const optimizer = new Adam([param]);
    expect(() => scaler.update()).toThrow(/no step has been taken/);
    expect(() => scaler.unscale(optimizer)).toThrow(/no parameter has a gradient/);
    param.grad = sn.tensor([1]);
    scaler.unscale(optimizer);
    expect(() => scaler.unscale(optimizer)).toThrow(/without the scale already/);
    await scaler.step(optimizer);
    await expect(scaler.step(optimizer)).rejects.toThrow(/has taken its step/);
    const half = sn.tensor([1], { dtype: 'f16' }).requiresGrad_();
    half.grad = sn.tensor([1], { dtype: 'f16' });
    expect(() => new GradScaler().unscale(new SGD([half]))).toThrow(/gradients are to be of f32/);
  });
});
