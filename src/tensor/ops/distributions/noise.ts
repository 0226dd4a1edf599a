// Noise of standard distributions in a shape, from the generator.

import { add, binary, cast, div, fullLike, mul, neg, reduce, sub, unary, where } from '../../../ir/build.ts';
import type { DType } from '../../../ir/dtype.ts';
import { dims, type GraphBuilder, type Node } from '../../../ir/graph.ts';
import { lgamma } from '../../formula/special/gamma.ts';
import { Real } from '../../formula/special/real.ts';
import { record } from '../../record.ts';
import type { Tensor } from '../../tensor.ts';
import { normalOf, openUniformOf } from '../../formula/noise.ts';
import { iota, spreadTo, stopGradient, wideType } from '../../formula/elementwise.ts';

/** Noise that a formula makes of uniform numbers in (0, 1). */
function ofUniform(formula: (u: Real) => Real): typeof uniformNoise {
  return (shape, dtype) =>
    record([], (b) => cast(b, formula(new Real(b, openUniformOf(b, shape, wideType(dtype)))).node, dtype));
}

/** Uniform in (0, 1). @internal */
export function uniformNoise(shape: readonly number[], dtype: DType): Tensor {
  return record([], (b) => openUniformOf(b, shape, dtype));
}
/** Exponential of rate 1. @internal */
export const exponentialNoise: typeof uniformNoise = /* @__PURE__ */ ofUniform((u) => u.to('log').neg());
/** −log(−log u). @internal */
export const gumbelNoise: typeof uniformNoise = /* @__PURE__ */ ofUniform((u) =>
  u.to('log').neg().to('log').neg(),
);
/** log(u/(1 − u)). @internal */
export const logisticNoise: typeof uniformNoise = /* @__PURE__ */ ofUniform((u) =>
  u.to('log').sub(u.from(1).to('log')),
);
/** The logarithm of twice the nearer tail, with the side's sign. @internal */
export const laplaceNoise: typeof uniformNoise = /* @__PURE__ */ ofUniform((u) =>
  u.lt(0.5).choose(u.mul(2).to('log'), u.from(1).mul(2).to('log').neg()),
);
/** The tangent of an angle in (−π/2, π/2). @internal */
export const cauchyNoise: typeof uniformNoise = /* @__PURE__ */ ofUniform((u) =>
  u.sub(0.5).mul(Math.PI).to('tan'),
);

/** Normal of mean 0 and variance 1. @internal */
export function normalNoise(shape: readonly number[], dtype: DType): Tensor {
  return record([], (b) => normalOf(b, shape, dtype));
}

/** What candidates along a first axis are, and whether each is taken. */
interface Candidates {
  readonly value: Node;
  readonly isTaken: Node;
}

/** The first candidate that is taken; the last one where none is. */
function first(b: GraphBuilder, { value, isTaken }: Candidates): Node {
  const shape = dims(value);
  const last = shape[0]! - 1;
  const position = iota(b, shape, 0);
  const place = reduce(b, 'min', where(b, isTaken, position, fullLike(b, position, last)), [0]);
  const chosen = binary(b, 'eq', position, spreadTo(b, place, position));
  return reduce(b, 'sum', where(b, chosen, value, fullLike(b, value, 0)), [0]);
}

/** Tries of which one is taken: all fail once in 10¹⁰ draws. */
const GAMMA_TRIES = 8;

/**
 * Gamma of this concentration and rate 1, by Marsaglia and Tsang ("A simple method for generating
 * gamma variables", 2000), who accept more than 95 % of all candidates; below 1 that of one more,
 * times u^(1/a). In logarithms where they would be too small for a float.
 *
 * @internal
 */
export function gammaNoise(shape: readonly number[], concentration: Tensor): Tensor {
  const { dtype } = concentration;
  return record([concentration], (b, [node]) => {
    const wide = wideType(dtype);
    const a = stopGradient(b, spreadOver(b, cast(b, node!, wide), shape));
    const isSmall = binary(b, 'lt', a, 1);
    const d = sub(b, where(b, isSmall, add(b, a, 1), a), 1 / 3);
    const tries = [GAMMA_TRIES, ...shape];
    const spread = spreadOver(b, d, tries);
    const x = normalOf(b, tries, wide);
    const root = add(b, mul(b, x, unary(b, 'rsqrt', mul(b, spread, 9))), 1);
    const isPositive = binary(b, 'lt', fullLike(b, root, 0), root);
    const v = mul(b, mul(b, root, root), root);
    const log = unary(b, 'log', where(b, isPositive, v, fullLike(b, v, 1)));
    // ½x² + d·(1 − v + log v)
    const bound = add(b, mul(b, mul(b, x, x), 0.5), mul(b, spread, add(b, sub(b, 1, v), log)));
    const isBelow = binary(b, 'lt', unary(b, 'log', openUniformOf(b, tries, wide)), bound);
    const value = mul(b, spread, v);
    const drawn = first(b, { value, isTaken: binary(b, 'and', isPositive, isBelow) });
    const power = unary(b, 'exp', div(b, unary(b, 'log', openUniformOf(b, shape, wide)), a));
    return cast(b, where(b, isSmall, mul(b, drawn, power), drawn), dtype);
  });
}

/** The parameter with as many axes in front as the shape has more. */
function spreadOver(b: GraphBuilder, x: Node, shape: readonly number[]): Node {
  return b.add('broadcast', [x], { shape }) as Node;
}

/** Rates from which candidates are drawn and taken or not; below, one is found by its share. */
const POISSON_BOUND = 10;
/** Shares of greater numbers at lesser rates come to less than 10⁻¹². */
const POISSON_STEPS = 48;
/** Tries of which one is taken: at a rate of 10 three of four are. */
const POISSON_TRIES = 16;

/**
 * Poisson of this rate: below 10 the number at which the sum of probabilities passes a uniform
 * number; else by Hörmann's transformed rejection ("The transformed rejection method for generating
 * Poisson random variables", 1993; PTRS).
 *
 * @internal
 */
export function poissonNoise(shape: readonly number[], rate: Tensor): Tensor {
  const { dtype } = rate;
  return record([rate], (b, [node]) => {
    const wide = wideType(dtype);
    const all = stopGradient(b, spreadOver(b, cast(b, node!, wide), shape));
    const isSmall = binary(b, 'lt', all, POISSON_BOUND);
    const few = counted(b, binary(b, 'min', all, POISSON_BOUND));
    const many = rejected(b, binary(b, 'max', all, POISSON_BOUND));
    const drawn = where(b, isSmall, few, many);
    const isRate = binary(b, 'le', fullLike(b, all, 0), all);
    return cast(b, where(b, isRate, drawn, fullLike(b, drawn, NaN)), dtype);
  });
}

/** How many of the sums of probabilities a uniform number has reached, of those that are less than their total. */
function counted(b: GraphBuilder, rate: Node): Node {
  const shape = dims(rate);
  const steps = [...shape, POISSON_STEPS];
  const axis = shape.length;
  const k = new Real(b, iota(b, steps, axis, rate.dtype));
  const spread = (x: Node): Real => new Real(b, expand(b, x, steps));
  // e^(k·log λ − λ − log k!), and at a rate of 0 all of it at 0.
  const isNone = spread(rate).eq(0);
  const log = k
    .mul(isNone.choose(1, spread(rate)).to('log'))
    .sub(spread(rate))
    .sub(lgamma(k.add(1)));
  const share = isNone.choose(k.eq(0).choose(k.like(1), 0), log.to('exp'));
  const sums = b.add('scan', [share.node], { monoid: 'sum', axis, reverse: false, exclusive: false }) as Node;
  // Rounding may leave the total below the largest number below 1.
  const isInside = binary(b, 'lt', sums, expand(b, reduce(b, 'max', sums, [axis]), steps));
  const isPassed = binary(b, 'le', sums, spread(openUniformOf(b, shape, rate.dtype)).node);
  const isReached = binary(b, 'and', isInside, isPassed);
  return reduce(b, 'sum', cast(b, isReached, rate.dtype), [axis]);
}

function expand(b: GraphBuilder, x: Node, shape: readonly number[]): Node {
  const one = b.add('reshape', [x], { shape: [...dims(x), 1] }) as Node;
  return b.add('broadcast', [one], { shape }) as Node;
}

function rejected(b: GraphBuilder, rate: Node): Node {
  const tries = [POISSON_TRIES, ...dims(rate)];
  const mean = new Real(b, spreadOver(b, rate, tries));
  const spread = mean.to('sqrt').mul(2.53).add(0.931);
  const slope = spread.mul(0.02483).sub(0.059);
  const inverse = spread.sub(3.4).recip().mul(1.1328).add(1.1239);
  const bound = spread.sub(2).recip().mul(-3.6224).add(0.9277);
  const u = new Real(b, openUniformOf(b, tries, rate.dtype)).sub(0.5);
  const v = new Real(b, openUniformOf(b, tries, rate.dtype));
  const edge = u.abs().from(0.5);
  const k = slope.mul(2).div(edge).add(spread).mul(u).add(mean).add(0.43).to('floor');
  const isSure = edge.lt(0.07).not().and(v.le(bound));
  const isOut = k.lt(0).or(edge.lt(0.013).and(v.gt(edge)));
  const height = v.mul(inverse).div(slope.div(edge.square()).add(spread)).to('log');
  const whole = k.max(0);
  const isBelow = height.le(
    whole
      .mul(mean.to('log'))
      .sub(mean)
      .sub(lgamma(whole.add(1))),
  );
  const isTaken = isSure.or(isOut.not().and(isBelow));
  return first(b, { value: whole.node, isTaken: isTaken.node });
}

/** Failures before the first success: ⌊log u/log(1 − p)⌋. @internal */
export function geometricNoise(shape: readonly number[], p: Tensor): Tensor {
  const { dtype } = p;
  return record([p], (b, [node]) => {
    const wide = wideType(dtype);
    const share = stopGradient(b, spreadOver(b, cast(b, node!, wide), shape));
    const log = unary(b, 'log', openUniformOf(b, shape, wide));
    const drawn = unary(b, 'floor', div(b, log, unary(b, 'log1p', neg(b, share))));
    // A success that is sure has no failures before it.
    const isSure = binary(b, 'eq', share, 1);
    return cast(b, where(b, isSure, fullLike(b, drawn, 0), drawn), dtype);
  });
}
