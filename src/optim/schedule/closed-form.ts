// Learning-rate schedules: functions from the number of steps done (0 before the first) to the rate
// of the next, in closed form. Names and values are those of PyTorch's schedulers.

import { TensorError } from '../../errors.ts';
import * as arg from '../../ir/arguments.ts';

/** The learning rate after `step` steps. */
export type Schedule = (step: number) => number;

/** How far `step` is on the way to `total`, from 0 to 1. */
function progress(step: number, total: number): number {
  return total > 0 ? Math.min(1, step / total) : 1;
}

const aStep: arg.Kind<number> = arg.kind(
  'a finite number of at least 0',
  (value) => arg.finite.accepts(value) && arg.notNegative.accepts(value),
);

/** The schedule, with its step checked. */
export function checked(op: string, rate: Schedule): Schedule {
  return (step) => {
    if (!aStep.accepts(step)) aStep.refuse(op, 'the step', step);
    return rate(step);
  };
}

/** What every schedule takes. */
export interface RateBase {
  /** The rate that the schedule shapes. */
  readonly lr: number;
}

export const base: arg.Table<RateBase> = { lr: arg.notNegative };

export interface LambdaOptions extends RateBase {
  /** What the rate is multiplied by at a step. */
  readonly factor: (step: number) => number;
}

const takesLambdaLr = arg.takes<typeof lambdaLr>([
  'options',
  arg.settings<LambdaOptions>({ ...base, factor: arg.callable() }, ['lr', 'factor']),
]);

/** lr times any function of the step. */
export function lambdaLr(options: LambdaOptions): Schedule {
  takesLambdaLr('lambdaLr', options);
  return checked('lambdaLr', (step) => {
    const factor = options.factor(step);
    if (!arg.number.accepts(factor)) arg.number.refuse('lambdaLr', 'what factor gives', factor);
    return options.lr * factor;
  });
}

export interface ConstantOptions extends RateBase {
  /** What the rate is multiplied by at first; 1/3 by default. */
  readonly factor?: number;
  /** Steps until the rate is whole; 5 by default. */
  readonly totalIters?: number;
}

const takesConstantLr = arg.takes<typeof constantLr>([
  'options',
  arg.settings<ConstantOptions>({ ...base, factor: arg.number, totalIters: arg.notNegative }, ['lr']),
]);

/** lr·factor (1/3 by default) for `totalIters` steps (5 by default), then lr. */
export function constantLr(options: ConstantOptions): Schedule {
  takesConstantLr('constantLr', options);
  const { lr, factor = 1 / 3, totalIters = 5 } = options;
  return checked('constantLr', (step) => (step < totalIters ? lr * factor : lr));
}

export interface LinearOptions extends RateBase {
  /** What the rate is multiplied by at first; 1/3 by default. */
  readonly startFactor?: number;
  /** What the rate is multiplied by at last; 1 by default. */
  readonly endFactor?: number;
  /** Steps from the first factor to the last; 5 by default. */
  readonly totalIters?: number;
}

const takesLinearLr = arg.takes<typeof linearLr>([
  'options',
  arg.settings<LinearOptions>(
    { ...base, startFactor: arg.number, endFactor: arg.number, totalIters: arg.notNegative },
    ['lr'],
  ),
]);

/**
 * From lr·startFactor (1/3 by default) to lr·endFactor (1) in equal parts over `totalIters` steps
 * (5).
 */
export function linearLr(options: LinearOptions): Schedule {
  takesLinearLr('linearLr', options);
  const { lr, startFactor = 1 / 3, endFactor = 1, totalIters = 5 } = options;
  return checked(
    'linearLr',
    (step) => lr * (startFactor + (endFactor - startFactor) * progress(step, totalIters)),
  );
}

export interface StepOptions extends RateBase {
  readonly stepSize: number;
  /** What the rate is multiplied by at each stage; 0.1 by default. */
  readonly gamma?: number;
}

const takesStepLr = arg.takes<typeof stepLr>([
  'options',
  arg.settings<StepOptions>({ ...base, stepSize: arg.positive, gamma: arg.number }, ['lr', 'stepSize']),
]);

/** Times gamma (0.1 by default) every `stepSize` steps. */
export function stepLr(options: StepOptions): Schedule {
  takesStepLr('stepLr', options);
  const { lr, stepSize, gamma = 0.1 } = options;
  return checked('stepLr', (step) => lr * gamma ** Math.floor(step / stepSize));
}

export interface MultiStepOptions extends RateBase {
  readonly milestones: readonly number[];
  /** What the rate is multiplied by at each milestone; 0.1 by default. */
  readonly gamma?: number;
}

const takesMultiStepLr = arg.takes<typeof multiStepLr>([
  'options',
  arg.settings<MultiStepOptions>({ ...base, milestones: arg.listOf(arg.number), gamma: arg.number }, [
    'lr',
    'milestones',
  ]),
]);

/** Times gamma (0.1 by default) at each milestone. */
export function multiStepLr(options: MultiStepOptions): Schedule {
  takesMultiStepLr('multiStepLr', options);
  const { lr, milestones, gamma = 0.1 } = options;
  return checked(
    'multiStepLr',
    (step) => lr * gamma ** milestones.filter((milestone) => milestone <= step).length,
  );
}

export interface ExponentialOptions extends RateBase {
  readonly gamma: number;
}

const takesExponentialLr = arg.takes<typeof exponentialLr>([
  'options',
  arg.settings<ExponentialOptions>({ ...base, gamma: arg.number }, ['lr', 'gamma']),
]);

/** Times gamma at every step. */
export function exponentialLr(options: ExponentialOptions): Schedule {
  takesExponentialLr('exponentialLr', options);
  return checked('exponentialLr', (step) => options.lr * options.gamma ** step);
}

export interface PolynomialOptions extends RateBase {
  /** Steps until the rate is 0; 5 by default. */
  readonly totalIters?: number;
  /** The exponent of the decay; 1 by default, a straight line. */
  readonly power?: number;
}

const takesPolynomialLr = arg.takes<typeof polynomialLr>([
  'options',
  arg.settings<PolynomialOptions>({ ...base, totalIters: arg.notNegative, power: arg.number }, ['lr']),
]);

/** lr·(1 − step / totalIters)^power (1 by default), then 0. */
export function polynomialLr(options: PolynomialOptions): Schedule {
  takesPolynomialLr('polynomialLr', options);
  const { lr, totalIters = 5, power = 1 } = options;
  return checked('polynomialLr', (step) => lr * (1 - progress(step, totalIters)) ** power);
}

/** From `from` at 0 to `to` at 1 along half a cosine. */
function cosine(from: number, to: number, part: number): number {
  return to + ((from - to) * (1 + Math.cos(Math.PI * part))) / 2;
}

export interface CosineOptions extends RateBase {
  readonly tMax: number;
  /** The least rate; 0 by default. */
  readonly etaMin?: number;
}

const takesCosineAnnealingLr = arg.takes<typeof cosineAnnealingLr>([
  'options',
  arg.settings<CosineOptions>({ ...base, tMax: arg.positive, etaMin: arg.number }, ['lr', 'tMax']),
]);

/**
 * Half a cosine from lr to `etaMin` (0 by default) in `tMax` steps, and back in as many (Loshchilov
 * and Hutter, 2017).
 */
export function cosineAnnealingLr(options: CosineOptions): Schedule {
  takesCosineAnnealingLr('cosineAnnealingLr', options);
  const { lr, tMax, etaMin = 0 } = options;
  return checked('cosineAnnealingLr', (step) => cosine(lr, etaMin, step / tMax));
}

export interface RestartOptions extends RateBase {
  readonly t0: number;
  /** How many times as long each period is as the one before; 1 by default. */
  readonly tMult?: number;
  /** The least rate; 0 by default. */
  readonly etaMin?: number;
}

/** A period that shrinks would restart for ever. */
const restart = arg.kind<number>(
  'a number of at least 1',
  (value) => arg.number.accepts(value) && (value as number) >= 1,
);
const takesCosineAnnealingWarmRestarts = arg.takes<typeof cosineAnnealingWarmRestarts>([
  'options',
  arg.settings<RestartOptions>({ ...base, t0: arg.positive, tMult: restart, etaMin: arg.number }, [
    'lr',
    't0',
  ]),
]);

/**
 * Half cosines that start anew from lr, the first of `t0` steps, each `tMult` times (1 by default)
 * as long as the last.
 */
export function cosineAnnealingWarmRestarts(options: RestartOptions): Schedule {
  takesCosineAnnealingWarmRestarts('cosineAnnealingWarmRestarts', options);
  const { lr, t0, tMult = 1, etaMin = 0 } = options;
  return checked('cosineAnnealingWarmRestarts', (step) => {
    if (tMult === 1) return cosine(lr, etaMin, (step % t0) / t0);
    let [length, at] = [t0, step];
    for (; at >= length; length *= tMult) at -= length;
    return cosine(lr, etaMin, at / length);
  });
}

export interface WarmupOptions extends RateBase {
  readonly warmup: number;
  readonly tMax: number;
  /** What the rate is multiplied by at first; 1 / warmup by default. */
  readonly startFactor?: number;
  /** The least rate; 0 by default. */
  readonly etaMin?: number;
}

const takesWarmupCosine = arg.takes<typeof warmupCosine>([
  'options',
  arg.settings<WarmupOptions>(
    { ...base, warmup: arg.notNegative, tMax: arg.positive, startFactor: arg.number, etaMin: arg.number },
    ['lr', 'warmup', 'tMax'],
  ),
]);

/**
 * A linear rise over `warmup` steps from lr·startFactor (1 / warmup by default), then half a cosine
 * of `tMax` steps to `etaMin`.
 */
export function warmupCosine(options: WarmupOptions): Schedule {
  takesWarmupCosine('warmupCosine', options);
  const { lr, warmup, tMax, startFactor = 1 / Math.max(1, warmup), etaMin = 0 } = options;
  const rise = linearLr({ lr, startFactor, totalIters: warmup });
  return checked('warmupCosine', (step) =>
    step < warmup ? rise(step) : cosine(lr, etaMin, progress(step - warmup, tMax)),
  );
}

export interface OneCycleOptions {
  readonly maxLr: number;
  readonly totalSteps: number;
  /** The share of steps that go up; 0.3 by default. */
  readonly pctStart?: number;
  /** The first rate is maxLr / divFactor; 25 by default. */
  readonly divFactor?: number;
  /** The last rate is the first / finalDivFactor; 10,000 by default. */
  readonly finalDivFactor?: number;
}

const takesOneCycleLr = arg.takes<typeof oneCycleLr>([
  'options',
  arg.settings<OneCycleOptions>(
    {
      maxLr: arg.notNegative,
      totalSteps: arg.positive,
      pctStart: arg.share,
      divFactor: arg.positive,
      finalDivFactor: arg.positive,
    },
    ['maxLr', 'totalSteps'],
  ),
]);

/**
 * Up to `maxLr` and down to next to nothing in `totalSteps` steps, along half cosines (Smith and
 * Topin, 2019).
 */
export function oneCycleLr(options: OneCycleOptions): Schedule {
  takesOneCycleLr('oneCycleLr', options);
  const { maxLr, totalSteps, pctStart = 0.3, divFactor = 25, finalDivFactor = 1e4 } = options;
  const first = maxLr / divFactor;
  const peak = pctStart * totalSteps - 1;
  const end = totalSteps - 1;
  return checked('oneCycleLr', (step) => {
    if (step < peak) return cosine(first, maxLr, progress(step, peak));
    return cosine(maxLr, first / finalDivFactor, progress(step - peak, end - peak));
  });
}

const takesSequentialLr = arg.takes<typeof sequentialLr>(
  ['the schedules', arg.listOf(arg.callable<Schedule>())],
  ['the milestones', arg.listOf(arg.number)],
);

/** One schedule after another: each begins, at its own step 0, at a milestone. */
export function sequentialLr(schedules: readonly Schedule[], milestones: readonly number[]): Schedule {
  takesSequentialLr('sequentialLr', schedules, milestones);
  if (schedules.length === 0) throw new TensorError('E_VALUE', 'sequentialLr', 'there are no schedules');
  return checked('sequentialLr', (step) => {
    const past = milestones.filter((milestone) => milestone <= step).length;
    const current = Math.min(past, schedules.length - 1);
    return schedules[current]!(step - (current === 0 ? 0 : milestones[current - 1]!));
  });
}
