import { beforeAll, describe, expect, test } from 'vitest';
import * as optim from '../../src/optim/index.ts';
import { SGD, type Schedule } from '../../src/optim/index.ts';
import { setDevice } from '../../src/tensor/storage/device.ts';
import { tensor } from '../../src/tensor/ops/creation/creation.ts';
import { torchCases } from '../support/torch/figures.ts';
import { close, numbers } from './support.ts';

beforeAll(() => setDevice('interpreter'));

const schedules = optim as unknown as Readonly<Record<string, (options: object) => Schedule>>;

describe('schedules agree with PyTorch', () => {
  test.each(torchCases('schedule'))('$name', ({ op, args, outputs }) => {
    // PyTorch's optimizer has a rate of its own, which the one-cycle schedule takes no notice of.
    const { lr, ...own } = args as { readonly lr: number };
    const schedule = schedules[op]!(op === 'oneCycleLr' ? own : { lr, ...own });
    const expected = outputs[0]!.data as Float64Array;
    expected.forEach((rate, step) => expect(schedule(step)).toBeCloseTo(rate, 14));
  });
});

describe('schedules past their end', () => {
  test('a one-cycle stays at its last rate', () => {
    const schedule = optim.oneCycleLr({ maxLr: 0.5, totalSteps: 10 });
    expect(schedule(50)).toBe(schedule(9));
    expect(schedule(9)).toBeCloseTo(0.5 / 25 / 1e4, 15);
  });

  test('a cosine after warm-up stays at its least', () => {
    const schedule = optim.warmupCosine({ lr: 1, warmup: 4, tMax: 10, etaMin: 0.1 });
    expect(schedule(0)).toBe(0.25);
    expect(schedule(4)).toBe(1);
    expect(schedule(14)).toBeCloseTo(0.1, 15);
    expect(schedule(1000)).toBeCloseTo(0.1, 15);
  });

  test('phases of no length are skipped', () => {
    expect(optim.warmupCosine({ lr: 1, warmup: 0, tMax: 10 })(0)).toBe(1);
    expect(optim.linearLr({ lr: 1, totalIters: 0 })(0)).toBe(1);
    expect(optim.oneCycleLr({ maxLr: 1, totalSteps: 2, pctStart: 0.5 })(0)).toBe(1);
  });
});

test('lambdaLr scales by any function, and sequentialLr starts each schedule at its own 0', () => {
  const halves = optim.lambdaLr({ lr: 8, factor: (step) => 0.5 ** step });
  const schedule = optim.sequentialLr([halves, () => 100, halves], [2, 3]);
  expect([0, 1, 2, 3, 4].map(schedule)).toEqual([8, 4, 100, 8, 4]);
});

test('an optimizer asks its schedule once a step, for the number of steps done', async () => {
  const param = tensor([0]).requiresGrad_();
  const asked: number[] = [];
  const optimizer = new SGD([param], { lr: (step) => (asked.push(step), 2 ** step) });
  const seen: number[][] = [];
  for (let i = 0; i < 4; i++) {
    param.grad = tensor([1]);
    optimizer.step();
    seen.push(await numbers(param));
  }
  expect(asked).toEqual([0, 1, 2, 3]);
  close(seen.flat(), [-1, -3, -7, -15], 0);
  expect(optimizer.lr).toBe(16);
  optimizer.lr = 0.5;
  param.grad = tensor([2]);
  optimizer.step();
  expect(await numbers(param)).toEqual([-16]);
});
