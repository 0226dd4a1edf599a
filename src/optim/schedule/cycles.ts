// Schedules that are made of factors or go round: PyTorch's MultiplicativeLR, CyclicLR (Smith, 2017)
// and ChainedScheduler.

import { TensorError } from '../../errors.ts';
import * as arg from '../../ir/arguments.ts';
import { base, checked, type RateBase, type Schedule } from './closed-form.ts';

export interface MultiplicativeOptions extends RateBase {
  /** What the rate is multiplied by at a step, from step 1 on. */
  readonly factor: (step: number) => number;
}

const takesMultiplicativeLr = arg.takes<typeof multiplicativeLr>([
  'options',
  arg.settings<MultiplicativeOptions>({ ...base, factor: arg.callable() }, ['lr', 'factor']),
]);

/** lr·factor(1)·factor(2)·…·factor(step). */
export function multiplicativeLr(options: MultiplicativeOptions): Schedule {
  takesMultiplicativeLr('multiplicativeLr', options);
  const rates = [options.lr];
  return checked('multiplicativeLr', (step) => {
    for (let at = rates.length; at <= step; at++) {
      const factor = options.factor(at);
      if (!arg.number.accepts(factor)) arg.number.refuse('multiplicativeLr', 'what factor gives', factor);
      rates.push(rates[at - 1]! * factor);
    }
    return rates[Math.floor(step)]!;
  });
}

export interface CyclicOptions {
  /** The lowest rate. */
  readonly baseLr: number;
  /** The highest rate of the first cycle. */
  readonly maxLr: number;
  /** Steps from the lowest to the highest; 2000 by default. */
  readonly stepSizeUp?: number;
  /** Steps back; as many by default. */
  readonly stepSizeDown?: number;
  /**
   * Whether peaks stay (`triangular`, the default), are halved in every cycle (`triangular2`), or
   * shrink by `gamma` at every step (`expRange`).
   */
  readonly mode?: 'triangular' | 'triangular2' | 'expRange';
  /** 1 by default. */
  readonly gamma?: number;
}

const takesCyclicLr = arg.takes<typeof cyclicLr>([
  'options',
  arg.settings<CyclicOptions>(
    {
      baseLr: arg.notNegative,
      maxLr: arg.notNegative,
      stepSizeUp: arg.positive,
      stepSizeDown: arg.positive,
      mode: arg.oneOf('triangular', 'triangular2', 'expRange'),
      gamma: arg.number,
    },
    ['baseLr', 'maxLr'],
  ),
]);

/** Up from `baseLr` to `maxLr` along a line, down along another, and again. */
export function cyclicLr(options: CyclicOptions): Schedule {
  takesCyclicLr('cyclicLr', options);
  const { baseLr, maxLr, stepSizeUp = 2000, stepSizeDown = stepSizeUp } = options;
  const { mode = 'triangular', gamma = 1 } = options;
  const length = stepSizeUp + stepSizeDown;
  return checked('cyclicLr', (step) => {
    const cycle = Math.floor(step / length);
    const within = step - cycle * length;
    const height = within <= stepSizeUp ? within / stepSizeUp : (length - within) / stepSizeDown;
    const shrink = { triangular: 1, triangular2: 2 ** -cycle, expRange: gamma ** step }[mode];
    return baseLr + (maxLr - baseLr) * height * shrink;
  });
}

const takesChainedLr = arg.takes<typeof chainedLr>(
  ['the learning rate', arg.notNegative],
  ['the schedules', arg.listOf(arg.callable<Schedule>())],
);

/** Schedules of the rate `lr`, all at once: lr times what each makes of it. */
export function chainedLr(lr: number, schedules: readonly Schedule[]): Schedule {
  takesChainedLr('chainedLr', lr, schedules);
  if (schedules.length === 0) throw new TensorError('E_VALUE', 'chainedLr', 'there are no schedules');
  return checked('chainedLr', (step) =>
    lr === 0 ? 0 : schedules.reduce((rate, schedule) => (rate * schedule(step)) / lr, lr),
  );
}
