// Learning-rate schedules: functions from the number of steps done (0 before the first) to the rate of the next, in closed
// form. Names and values are those of PyTorch's schedulers.

/** The learning rate after `step` steps. */
export type Schedule = (step: number) => number;

/** How far `step` is on the way to `total`, from 0 to 1. */
function progress(step: number, total: number): number {
  return total > 0 ? Math.min(1, step / total) : 1;
}

interface Base {
  /** The rate that the schedule shapes. */
  readonly lr: number;
}

/** lr times any function of the step. */
export function lambdaLr(options: Base & { readonly factor: (step: number) => number }): Schedule {
  return (step) => options.lr * options.factor(step);
}

/** lr·factor (1/3 by default) for `totalIters` steps (5 by default), then lr. */
export function constantLr(
  options: Base & { readonly factor?: number; readonly totalIters?: number },
): Schedule {
  const { lr, factor = 1 / 3, totalIters = 5 } = options;
  return (step) => (step < totalIters ? lr * factor : lr);
}

/** From lr·startFactor (1/3 by default) to lr·endFactor (1) in equal parts over `totalIters` steps (5). */
export function linearLr(
  options: Base & {
    readonly startFactor?: number;
    readonly endFactor?: number;
    readonly totalIters?: number;
  },
): Schedule {
  const { lr, startFactor = 1 / 3, endFactor = 1, totalIters = 5 } = options;
  return (step) => lr * (startFactor + (endFactor - startFactor) * progress(step, totalIters));
}

/** Times gamma (0.1 by default) every `stepSize` steps. */
export function stepLr(options: Base & { readonly stepSize: number; readonly gamma?: number }): Schedule {
  const { lr, stepSize, gamma = 0.1 } = options;
  return (step) => lr * gamma ** Math.floor(step / stepSize);
}

/** Times gamma (0.1 by default) at each milestone. */
export function multiStepLr(
  options: Base & { readonly milestones: readonly number[]; readonly gamma?: number },
): Schedule {
  const { lr, milestones, gamma = 0.1 } = options;
  return (step) => lr * gamma ** milestones.filter((milestone) => milestone <= step).length;
}

/** Times gamma at every step. */
export function exponentialLr(options: Base & { readonly gamma: number }): Schedule {
  return (step) => options.lr * options.gamma ** step;
}

/** lr·(1 − step / totalIters)^power (1 by default), then 0. */
export function polynomialLr(
  options: Base & { readonly totalIters?: number; readonly power?: number },
): Schedule {
  const { lr, totalIters = 5, power = 1 } = options;
  return (step) => lr * (1 - progress(step, totalIters)) ** power;
}

/** From `from` at 0 to `to` at 1 along half a cosine. */
function cosine(from: number, to: number, part: number): number {
  return to + ((from - to) * (1 + Math.cos(Math.PI * part))) / 2;
}

/** Half a cosine from lr to `etaMin` (0 by default) in `tMax` steps, and back in as many (Loshchilov and Hutter, 2017). */
export function cosineAnnealingLr(
  options: Base & { readonly tMax: number; readonly etaMin?: number },
): Schedule {
  const { lr, tMax, etaMin = 0 } = options;
  return (step) => cosine(lr, etaMin, step / tMax);
}

/** Half cosines that start anew from lr, the first of `t0` steps, each `tMult` times (1 by default) as long as the last. */
export function cosineAnnealingWarmRestarts(
  options: Base & { readonly t0: number; readonly tMult?: number; readonly etaMin?: number },
): Schedule {
  const { lr, t0, tMult = 1, etaMin = 0 } = options;
  return (step) => {
    let [length, at] = [t0, step];
    for (; at >= length; length *= tMult) at -= length;
    return cosine(lr, etaMin, at / length);
  };
}

/** A linear rise over `warmup` steps from lr·startFactor (1 / warmup by default), then half a cosine of `tMax` steps to `etaMin`. */
export function warmupCosine(
  options: Base & {
    readonly warmup: number;
    readonly tMax: number;
    readonly startFactor?: number;
    readonly etaMin?: number;
  },
): Schedule {
  const { lr, warmup, tMax, startFactor = 1 / Math.max(1, warmup), etaMin = 0 } = options;
  const rise = linearLr({ lr, startFactor, totalIters: warmup });
  return (step) => (step < warmup ? rise(step) : cosine(lr, etaMin, progress(step - warmup, tMax)));
}

/** Up to `maxLr` and down to next to nothing in `totalSteps` steps, along half cosines (Smith and Topin, 2019). */
export function oneCycleLr(options: {
  readonly maxLr: number;
  readonly totalSteps: number;
  /** The share of steps that go up; 0.3 by default. */
  readonly pctStart?: number;
  /** The first rate is maxLr / divFactor; 25 by default. */
  readonly divFactor?: number;
  /** The last rate is the first / finalDivFactor; 10,000 by default. */
  readonly finalDivFactor?: number;
}): Schedule {
  const { maxLr, totalSteps, pctStart = 0.3, divFactor = 25, finalDivFactor = 1e4 } = options;
  const first = maxLr / divFactor;
  const peak = pctStart * totalSteps - 1;
  const end = totalSteps - 1;
  return (step) => {
    if (step < peak) return cosine(first, maxLr, progress(step, peak));
    return cosine(maxLr, first / finalDivFactor, progress(step - peak, end - peak));
  };
}

/** One schedule after another: each begins, at its own step 0, at a milestone. */
export function sequentialLr(schedules: readonly Schedule[], milestones: readonly number[]): Schedule {
  return (step) => {
    const past = milestones.filter((milestone) => milestone <= step).length;
    const current = Math.min(past, schedules.length - 1);
    return schedules[current]!(step - (current === 0 ? 0 : milestones[current - 1]!));
  };
}
