// A loop of training compiles its step once: the numbers that optimizers, schedules, scales of losses
// and the random generator make anew are scalars of the program from the first step.

import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import * as sn from '../../src/index.ts';
import { Dropout, Linear, Sequential, Tanh } from '../../src/nn/index.ts';
import * as optim from '../../src/optim/index.ts';
import { clearCache } from '../../src/tensor/evaluate/cache.ts';

type Rate = number | optim.Schedule;
type Make = (params: object, lr: Rate) => optim.Optimizer<optim.RateOptions>;

const optimizers: Readonly<Record<string, Make>> = {
  SGD: (params, lr) => new optim.SGD(params, { lr }),
  'SGD with momentum': (params, lr) =>
    new optim.SGD(params, { lr, momentum: 0.9, dampening: 0.1, weightDecay: 0.01 }),
  Adam: (params, lr) => new optim.Adam(params, { lr }),
  'Adam with all': (params, lr) =>
    new optim.Adam(params, { lr, amsgrad: true, weightDecay: 0.01, accumulate: 2 }),
  AdamW: (params, lr) => new optim.AdamW(params, { lr }),
  Adamax: (params, lr) => new optim.Adamax(params, { lr }),
  NAdam: (params, lr) => new optim.NAdam(params, { lr }),
  RAdam: (params, lr) => new optim.RAdam(params, { lr }),
  Lamb: (params, lr) => new optim.Lamb(params, { lr }),
  Adafactor: (params, lr) => new optim.Adafactor(params, { lr, weightDecay: 0.01 }),
  ASGD: (params, lr) => new optim.ASGD(params, { lr }),
  Lion: (params, lr) => new optim.Lion(params, { lr, weightDecay: 0.01 }),
  Rprop: (params, lr) => new optim.Rprop(params, { lr }),
  Muon: (params, lr) => new optim.Muon(params, { lr }),
  Adadelta: (params, lr) => new optim.Adadelta(params, { lr }),
  Adagrad: (params, lr) => new optim.Adagrad(params, { lr, lrDecay: 0.1 }),
  RMSprop: (params, lr) => new optim.RMSprop(params, { lr, momentum: 0.9, centered: true }),
};

const lr = 0.01;
const schedules: Readonly<Record<string, Rate>> = {
  'a number': lr,
  constantLr: optim.constantLr({ lr, totalIters: 2 }),
  cosineAnnealingLr: optim.cosineAnnealingLr({ lr, tMax: 5 }),
  cosineAnnealingWarmRestarts: optim.cosineAnnealingWarmRestarts({ lr, t0: 2 }),
  exponentialLr: optim.exponentialLr({ lr, gamma: 0.9 }),
  lambdaLr: optim.lambdaLr({ lr, factor: (step) => 1 / (1 + step) }),
  linearLr: optim.linearLr({ lr, startFactor: 0.1 }),
  multiStepLr: optim.multiStepLr({ lr, milestones: [1, 3] }),
  oneCycleLr: optim.oneCycleLr({ maxLr: lr, totalSteps: 5 }),
  polynomialLr: optim.polynomialLr({ lr, totalIters: 5 }),
  sequentialLr: optim.sequentialLr([optim.constantLr({ lr }), optim.exponentialLr({ lr, gamma: 0.5 })], [2]),
  stepLr: optim.stepLr({ lr, stepSize: 2 }),
  warmupCosine: optim.warmupCosine({ lr, warmup: 2, tMax: 5 }),
  chainedLr: optim.chainedLr(lr, [optim.constantLr({ lr }), optim.exponentialLr({ lr, gamma: 0.5 })]),
  cyclicLr: optim.cyclicLr({ baseLr: 0.001, maxLr: lr, stepSizeUp: 2 }),
  multiplicativeLr: optim.multiplicativeLr({ lr, factor: () => 0.9 }),
};

const said: string[] = [];
beforeEach(() => {
  clearCache();
  said.length = 0;
  sn.setDevice('interpreter');
  vi.spyOn(console, 'warn').mockImplementation((line: string) => void said.push(line));
  vi.stubEnv('SINTER_LOG', 'compiles');
});
afterEach(() => {
  vi.restoreAllMocks();
  vi.unstubAllEnvs();
  sn.setDevice(undefined);
});

/** A model of a matrix, whose loss draws a random mask in each step. */
function model(): { readonly net: Sequential; readonly loss: () => sn.Tensor } {
  const net = new Sequential(new Linear(2, 3, { bias: false }), new Tanh(), new Dropout(0.5));
  const [x, y] = [sn.tensor([[0.5, -1]]), sn.tensor([[0, 1, 0]])];
  return { net, loss: () => net.forward(x).sub(y).square().sum() };
}

async function steps(of: () => void | Promise<unknown>, n = 4): Promise<void> {
  await sn.synchronize();
  said.length = 0;
  clearCache();
  for (let i = 0; i < n; i++) {
    await of();
    await sn.synchronize();
  }
}

/** What was compiled, and why. */
function compiles(): string[] {
  return said.map((line) => line.replace(/.* ms: /, ''));
}

describe.each(Object.entries(optimizers))('a loop of %s', (_, make) => {
  test('compiles its step once, by whatever schedule', async () => {
    const { net, loss } = model();
    for (const [name, rate] of Object.entries(schedules)) {
      const optimizer = make(net, rate);
      await steps(() => {
        loss().backward();
        optimizer.step();
        optimizer.zeroGrad();
      });
      expect(compiles(), name).toEqual([expect.stringMatching(/^first time/)]);
    }
  });
});

test('rates that a program sets, groups with rates of their own and two optimizers are one program', async () => {
  const { net, loss } = model();
  const other = model();
  const rates = [0.1, 0.1, 0.1, 0.05, 0.02];
  const first = new optim.Adam([
    { params: net, lr: optim.warmupCosine({ lr: 0.1, warmup: 2, tMax: 5 }) },
    { params: other.net, lr: optim.warmupCosine({ lr: 0.2, warmup: 2, tMax: 5 }) },
  ]);
  const third = model();
  const second = new optim.AdamW(third.net, { lr: 0.1 });
  await steps(() => {
    second.lr = rates.pop()!;
    sn.add(loss(), other.loss()).add(third.loss()).backward();
    first.step();
    second.step();
    first.zeroGrad();
    second.zeroGrad();
  });
  expect(compiles().filter((why) => !why.startsWith('first time'))).toEqual([]);
});

test('the scale of a loss that changes is a number of the step', async () => {
  const { net, loss } = model();
  const optimizer = new optim.SGD(net, { lr: 0.1 });
  const scaler = new optim.GradScaler({ initScale: 8, growthInterval: 1 });
  await steps(async () => {
    scaler.scale(loss()).backward();
    await scaler.step(optimizer);
    scaler.update();
    optimizer.zeroGrad();
  });
  expect(scaler.factor).toBe(128);
  expect(compiles().filter((why) => !why.startsWith('first time'))).toEqual([]);
});

test('draws of any seed and count are one program', async () => {
  let seed = 0;
  await steps(async () => {
    sn.manualSeed((seed += 2 ** 33 + 1));
    await sn
      .randn([3])
      .add(sn.rand([3]))
      .data();
  });
  expect(compiles()).toHaveLength(1);
});

test('numbers that a program writes stay compiled in', async () => {
  const { net, loss } = model();
  const optimizer = new optim.SGD(net, { lr: 0.125 });
  let factor = 0.125;
  await steps(() => {
    loss().mul(factor).backward();
    optimizer.step();
    optimizer.zeroGrad();
  }, 2);
  expect(compiles()).toHaveLength(1);
  factor = 0.25;
  loss().mul(factor).backward();
  optimizer.step();
  await sn.synchronize();
  expect(compiles().at(-1)).toBe('a number that was compiled in varies: 0.25 after 0.125');
});
