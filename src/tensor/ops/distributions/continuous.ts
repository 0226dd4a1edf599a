// Continuous distributions. Each is a location and a scale of standard noise, or a function of gamma
// noise.

import * as arg from '../../../ir/arguments.ts';
import { anOperand } from '../../expect.ts';
import type { Tensor, TensorLike } from '../../tensor.ts';
import { add, div, mul, sub } from '../elementwise/arithmetic.ts';
import { logicalAnd, le, lt, where } from '../elementwise/compare.ts';
import { abs, exp, expm1, log, log1p, neg, square, sqrt } from '../elementwise/elementwise.ts';
import { softplus } from '../elementwise/activation.ts';
import { lgamma } from '../special/functions.ts';
import { xlog1py, xlogy } from '../special/pairs.ts';
import {
  distribution,
  notNegative,
  parameters,
  pointOf,
  positive,
  share,
  widened,
  within,
  type Distribution,
} from './distribution.ts';
import * as noise from './noise.ts';
import { halfStep, isLarge, isNear, kept, logBinomial, logPoisson } from './stirling.ts';

/** A distribution of two parameters. */
export type OfTwo = (first?: TensorLike, second?: TensorLike) => Distribution;

const takesTwo = arg.takes<OfTwo>(
  ['the first parameter', arg.optional(anOperand)],
  ['the second parameter', arg.optional(anOperand)],
);

type Noise = (shape: readonly number[], dtype: Tensor['dtype']) => Tensor;

/** What is known of standard noise: its samples, mean, variance, and −log of its density. */
interface Standard {
  readonly draw: Noise;
  readonly mean: number;
  readonly variance: number;
  readonly energy: (z: Tensor) => Tensor;
}

/** location + scale·noise. */
function located(op: string, standard: Standard): OfTwo {
  return (location = 0, scale = 1) => {
    takesTwo(op, location, scale);
    const given = parameters(op, [location, scale]) as [Tensor, Tensor];
    const [center, width] = given.map(widened) as [Tensor, Tensor];
    return distribution(op, given[0], {
      mean: add(center, mul(width, standard.mean)),
      variance: mul(square(width), standard.variance),
      draw: (shape) => add(center, mul(width, standard.draw(shape, center.dtype))),
      isSmooth: true,
      logProb: (x) => neg(add(standard.energy(div(sub(pointOf(x, center), center), width)), log(width))),
    });
  };
}

/** log(1 + z²), where z² may overflow: 2·log |z| + log(1 + z⁻²). */
function logOnePlusSquare(z: Tensor): Tensor {
  const size = abs(z);
  const isFar = lt(1, size);
  const far = where(isFar, size, 1);
  const near = where(isFar, 0, size);
  return add(mul(log(far), 2), log1p(square(where(isFar, div(1, far), near))));
}

const LOG_ROOT_2_PI = Math.log(2 * Math.PI) / 2;

/**
 * Normal with a mean and a standard deviation.
 *
 * @example
 * const p = sn.tensor([0.25, 0.5, 0.75]);
 * const v = sn.tensor([0.5, 1, 2]);
 * sn.distributions.normal(v, 2).logProb(p);
 */
export const normal: OfTwo = /* @__PURE__ */ located('normal', {
  draw: noise.normalNoise,
  mean: 0,
  variance: 1,
  energy: (z) => add(mul(square(z), 0.5), LOG_ROOT_2_PI),
});

/**
 * Laplace with a location and a scale: exponential on both sides.
 *
 * @example
 * const p = sn.tensor([0.25, 0.5, 0.75]);
 * const v = sn.tensor([0.5, 1, 2]);
 * sn.distributions.laplace(v, 2).logProb(p);
 */
export const laplace: OfTwo = /* @__PURE__ */ located('laplace', {
  draw: noise.laplaceNoise,
  mean: 0,
  variance: 2,
  energy: (z) => add(abs(z), Math.LN2),
});

/**
 * Gumbel with a location and a scale: the greatest of many.
 *
 * @example
 * const p = sn.tensor([0.25, 0.5, 0.75]);
 * const v = sn.tensor([0.5, 1, 2]);
 * sn.distributions.gumbel(v, 2).logProb(p);
 */
export const gumbel: OfTwo = /* @__PURE__ */ located('gumbel', {
  draw: noise.gumbelNoise,
  // Euler's constant.
  mean: 0.5772156649015329,
  variance: Math.PI ** 2 / 6,
  energy: (z) => add(z, exp(neg(z))),
});

/**
 * Logistic with a location and a scale.
 *
 * @example
 * const p = sn.tensor([0.25, 0.5, 0.75]);
 * const v = sn.tensor([0.5, 1, 2]);
 * sn.distributions.logistic(v, 2).logProb(p);
 */
export const logistic: OfTwo = /* @__PURE__ */ located('logistic', {
  draw: noise.logisticNoise,
  mean: 0,
  variance: Math.PI ** 2 / 3,
  energy: (z) => add(abs(z), mul(softplus(neg(abs(z))), 2)),
});

/**
 * Cauchy with a location and a scale: it has neither mean nor variance.
 *
 * @example
 * const p = sn.tensor([0.25, 0.5, 0.75]);
 * const v = sn.tensor([0.5, 1, 2]);
 * sn.distributions.cauchy(v, 2).logProb(p);
 */
export const cauchy: OfTwo = /* @__PURE__ */ located('cauchy', {
  draw: noise.cauchyNoise,
  mean: NaN,
  variance: Infinity,
  energy: (z) => add(logOnePlusSquare(z), Math.log(Math.PI)),
});

/**
 * e to the power of a normal number of this mean and standard deviation.
 *
 * @example
 * const p = sn.tensor([0.25, 0.5, 0.75]);
 * const v = sn.tensor([0.5, 1, 2]);
 * sn.distributions.logNormal(v, 2).logProb(p);
 */
export const logNormal: OfTwo = (mean = 0, std = 1) => {
  takesTwo('logNormal', mean, std);
  const given = parameters('logNormal', [mean, std]) as [Tensor, Tensor];
  const [center, width] = given.map(widened) as [Tensor, Tensor];
  const inner = normal(center, width);
  const spread = square(width);
  return distribution('logNormal', given[0], {
    mean: exp(add(center, mul(spread, 0.5))),
    variance: mul(expm1(spread), exp(add(mul(center, 2), spread))),
    draw: (shape) => exp(add(center, mul(width, noise.normalNoise(shape, center.dtype)))),
    isSmooth: true,
    logProb: (x) => within(positive, x, center, (point) => sub(inner.logProb(log(point)), log(point))),
  });
};

/**
 * Uniform in [low, high).
 *
 * @example
 * const p = sn.tensor([0.25, 0.5, 0.75]);
 * const v = sn.tensor([0.5, 1, 2]);
 * sn.distributions.uniform(v.neg(), v).logProb(p);
 */
export const uniform: OfTwo = (low = 0, high = 1) => {
  takesTwo('uniform', low, high);
  const given = parameters('uniform', [low, high]) as [Tensor, Tensor];
  const [from, to] = given.map(widened) as [Tensor, Tensor];
  const width = sub(to, from);
  return distribution('uniform', given[0], {
    mean: mul(add(from, to), 0.5),
    variance: div(square(width), 12),
    draw: (shape) => {
      const drawn = add(from, mul(width, noise.uniformNoise(shape, from.dtype))).cast(given[0].dtype);
      // Rounding may give the end, which is outside.
      return where(lt(drawn, given[1]), drawn, given[0]);
    },
    isSmooth: true,
    logProb(x) {
      const inside = { holds: (point: Tensor) => logicalAnd(le(from, point), lt(point, to)), inner: 0 };
      return within(inside, x, from, () => neg(log(width)));
    },
  });
};

/** Of one parameter. */
export type OfOne = (parameter?: TensorLike) => Distribution;

const takesOne = arg.takes<OfOne>(['the parameter', arg.optional(anOperand)]);

/**
 * Exponential of a rate: how long until what happens so often per unit of time.
 *
 * @example
 * const p = sn.tensor([0.25, 0.5, 0.75]);
 * const v = sn.tensor([0.5, 1, 2]);
 * sn.distributions.exponential(v).logProb(p);
 */
export const exponential: OfOne = (rate = 1) => {
  takesOne('exponential', rate);
  const [given] = parameters('exponential', [rate]) as [Tensor];
  const often = widened(given);
  const mean = div(1, often);
  return distribution('exponential', given, {
    mean,
    variance: square(mean),
    draw: (shape) => div(noise.exponentialNoise(shape, often.dtype), often),
    isSmooth: true,
    logProb: (x) => within(notNegative, x, often, (point) => sub(log(often), mul(often, point))),
  });
};

/**
 * Gamma of a concentration and a rate.
 *
 * @example
 * const p = sn.tensor([0.25, 0.5, 0.75]);
 * const v = sn.tensor([0.5, 1, 2]);
 * sn.distributions.gamma(v, 2).logProb(p);
 */
export const gamma: OfTwo = (concentration = 1, rate = 1) => {
  takesTwo('gamma', concentration, rate);
  const given = parameters('gamma', [concentration, rate]) as [Tensor, Tensor];
  const [a, b] = given.map(widened) as [Tensor, Tensor];
  const mean = div(a, b);
  return distribution('gamma', given[0], {
    mean,
    variance: div(mean, b),
    draw: (shape) => div(noise.gammaNoise(shape, a), b),
    isSmooth: false,
    logProb: (x) =>
      within(notNegative, x, a, (point) => {
        const parts = [sub(a, 1), mul(b, point)] as const;
        const large = isNear(...parts);
        const [n, y] = kept(large, ...parts) as [Tensor, Tensor];
        const few = where(large, 1, a);
        const plain = sub(add(xlogy(few, b), sub(xlogy(sub(few, 1), point), parts[1])), lgamma(few));
        return where(large, add(logPoisson(n, y), log(b)), plain);
      }),
  });
};

/**
 * χ² of a number of degrees of freedom.
 *
 * @example
 * const p = sn.tensor([0.25, 0.5, 0.75]);
 * const v = sn.tensor([0.5, 1, 2]);
 * sn.distributions.chi2(v).logProb(p);
 */
export const chi2: OfOne = (freedom = 1) => {
  takesOne('chi2', freedom);
  const [df] = parameters('chi2', [freedom]) as [Tensor];
  return gamma(mul(df, 0.5), 0.5);
};

/**
 * Beta of two concentrations: a share of 1.
 *
 * @example
 * const p = sn.tensor([0.25, 0.5, 0.75]);
 * const v = sn.tensor([0.5, 1, 2]);
 * sn.distributions.beta(v, 2).logProb(p);
 */
export const beta: OfTwo = (first = 1, second = 1) => {
  takesTwo('beta', first, second);
  const given = parameters('beta', [first, second]) as [Tensor, Tensor];
  const [a, b] = given.map(widened) as [Tensor, Tensor];
  const total = add(a, b);
  const mean = div(a, total);
  return distribution('beta', given[0], {
    mean,
    variance: div(mul(mean, sub(1, mean)), add(total, 1)),
    draw(shape) {
      const part = noise.gammaNoise(shape, a);
      return div(part, add(part, noise.gammaNoise(shape, b)));
    },
    isSmooth: false,
    logProb: (x) =>
      within(share, x, a, (point) => {
        const [p, q] = [sub(a, 1), sub(b, 1)];
        const m = add(p, q);
        const [y, z] = [mul(m, point), mul(m, sub(1, point))];
        const large = logicalAnd(isNear(p, y), isNear(q, z));
        const binomial = logBinomial(...(kept(large, p, q, y, z) as [Tensor, Tensor, Tensor, Tensor]));
        const [few, other] = [where(large, 1, a), where(large, 1, b)];
        const powers = add(xlogy(sub(few, 1), point), xlog1py(sub(other, 1), neg(point)));
        const plain = sub(add(powers, lgamma(add(few, other))), add(lgamma(few), lgamma(other)));
        return where(large, add(binomial, log(where(large, sub(total, 1), 1))), plain);
      }),
  });
};

export interface StudentTOptions {
  /** 0 by default. */
  readonly loc?: TensorLike;
  /** 1 by default. */
  readonly scale?: TensorLike;
}

const takesFreedom = arg.takes<typeof studentT>(
  ['the degrees of freedom', anOperand],
  ['options', arg.options<StudentTOptions>({ loc: anOperand, scale: anOperand })],
);

/**
 * Student's t of a number of degrees of freedom, with a location and a scale.
 *
 * @example
 * const p = sn.tensor([0.25, 0.5, 0.75]);
 * const v = sn.tensor([0.5, 1, 2]);
 * sn.distributions.studentT(v).logProb(p);
 */
export function studentT(freedom: TensorLike, options: StudentTOptions = {}): Distribution {
  takesFreedom('studentT', freedom, options);
  const { loc = 0, scale = 1 } = options;
  const given = parameters('studentT', [freedom, loc, scale]) as [Tensor, Tensor, Tensor];
  const [df, center, width] = given.map(widened) as [Tensor, Tensor, Tensor];
  const spread = div(mul(square(width), df), sub(df, 2));
  const finite = where(lt(2, df), spread, where(lt(1, df), Infinity, NaN));
  return distribution('studentT', given[0], {
    mean: where(lt(1, df), center, NaN),
    variance: finite,
    draw(shape) {
      const half = mul(df, 0.5);
      const chi = div(noise.gammaNoise(shape, half), half);
      return add(center, mul(width, div(noise.normalNoise(shape, df.dtype), sqrt(chi))));
    },
    isSmooth: false,
    logProb(x) {
      const z = div(sub(pointOf(x, df), center), width);
      const half = mul(add(df, 1), 0.5);
      const large = isLarge(mul(df, 0.5));
      const [n] = kept(large, mul(df, 0.5)) as [Tensor];
      const few = where(large, 1, df);
      const step = sub(lgamma(mul(add(few, 1), 0.5)), lgamma(mul(few, 0.5)));
      const plain = sub(step, mul(log(mul(few, Math.PI)), 0.5));
      const norm = where(large, sub(halfStep(n), LOG_ROOT_2_PI), plain);
      return sub(sub(norm, log(width)), mul(half, logOnePlusSquare(div(z, sqrt(df)))));
    },
  });
}
