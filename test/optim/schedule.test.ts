import { beforeAll, describe, expect, test } from 'vitest';
import * as optim from '../../src/optim/index.ts';
import { SGD, type Schedule } from '../../src/optim/index.ts';
import { setDevice } from '../../src/tensor/device.ts';
import { tensor } from '../../src/tensor/ops/creation/creation.ts';
import { torchCases } from '../support/torch/figures.ts';
import { close, numbers } from './support.ts';

beforeAll(() => setDevice('interpreter'));

const schedules = optim as unknown as Readonly<Record<string, (options: object) => Schedule>>;

type Settings = Readonly<Record<string, number>> & { readonly lr: number };

function scheduleOf(op: string, { lr, ...own }: Settings): Schedule {
  switch (op) {
    // These have rates of their own, beside that of PyTorch's optimizer.
    case 'oneCycleLr':
    case 'cyclicLr':
      return schedules[op]!(own);
    case 'multiplicativeLr':
      return optim.multiplicativeLr({ lr, factor: () => own['base']! });
    case 'chainedLr': {
      const { factor, totalIters, gamma = 1 } = own;
      return optim.chainedLr(lr, [
        optim.constantLr({ lr, factor: factor!, totalIters: totalIters! }),
        optim.exponentialLr({ lr, gamma }),
      ]);
    }
    default:
      return schedules[op]!({ lr, ...own });
  }
}

describe('schedules agree with PyTorch', () => {
  const figures = torchCases('schedule').filter(({ op }) => op !== 'plateau');
  test.each(figures)('$name', ({ op, args, outputs }) => {
    const schedule = scheduleOf(op, args as Settings);
    const expected = outputs[0]!.data as Float64Array;
    expected.forEach((rate, step) => expect(schedule(step)).toBeCloseTo(rate, 14));
  });
});

describe('a plateau agrees with PyTorch', () => {
  test.each(torchCases('schedule', 'plateau'))('$name', ({ args, inputs, outputs }) => {
    const figures = [...(inputs[0]!.data as Float64Array)];
    const expected = [...(outputs[0]!.data as Float64Array)];
    const plateau = optim.reduceLrOnPlateau(args as unknown as optim.PlateauOptions);
    const again = optim.reduceLrOnPlateau(args as unknown as optim.PlateauOptions);
    figures.forEach((figure, i) => {
      // One that goes on from the saved state does the same.
      again.load(plateau.state());
      expect(plateau.observe(figure)).toBeCloseTo(expected[i]!, 14);
      expect(again.observe(figure)).toBe(plateau.schedule(i));
    });
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
