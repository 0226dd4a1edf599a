// Special functions of two tensors, or of a tensor and numbers.

import * as arg from '../../../ir/arguments.ts';
import { cast } from '../../../ir/build.ts';
import * as elementary from '../../formula/special/elementary.ts';
import { multivariate } from '../../formula/special/gamma.ts';
import * as incomplete from '../../formula/special/incomplete.ts';
import { polygamma as polygammaOf } from '../../formula/special/polygamma.ts';
import { digamma, of } from './functions.ts';
import { Real } from '../../formula/special/real.ts';
import { zeta as zetaOf } from '../../formula/special/zeta.ts';
import { anOperand, aTensor } from '../../expect.ts';
import type { Tensor } from '../../tensor.ts';
import { wideType } from '../../formula/elementwise.ts';
import { combine, type FloatBinary } from '../operand.ts';

const takesTwo = arg.takes<FloatBinary>(['the first operand', anOperand], ['the second operand', anOperand]);

/** An operation of a formula of two reals. */
function pair(name: string, formula: (x: Real, y: Real) => Real): FloatBinary {
  return (x, y) => {
    takesTwo(name, x, y);
    return combine(name, [x, y], 'realFloat', (b, p, q) => {
      const [first, second] = [p, q].map((node) => new Real(b, cast(b, node, wideType(node.dtype))));
      return cast(b, formula(first!, second!).node, p.dtype);
    });
  };
}

/**
 * x·log y, 0 where x is 0.
 *
 * @names xlogy, special.xlogy
 * @example
 * const x = sn.tensor([0.5, 1.5, 4]);
 * const a = sn.tensor([1, 2, 3]);
 * sn.xlogy(a, x);
 */
export const xlogy: FloatBinary = /* @__PURE__ */ pair('xlogy', elementary.xlogy);
/**
 * x·log(1 + y), 0 where x is 0.
 *
 * @example
 * const x = sn.tensor([0.5, 1.5, 4]);
 * const a = sn.tensor([1, 2, 3]);
 * sn.special.xlog1py(a, x);
 */
export const xlog1py: FloatBinary = /* @__PURE__ */ pair('xlog1py', elementary.xlog1py);
/**
 * Hurwitz's zeta function Σ (q + k)^−x for x > 1; ∞ at x = 1 and at q = 0, −1, …, NaN below.
 * Differentiable by q.
 *
 * @example
 * const x = sn.tensor([0.5, 1.5, 4]);
 * const a = sn.tensor([1, 2, 3]);
 * sn.special.zeta(a.add(1), x);
 */
export const zeta: FloatBinary = /* @__PURE__ */ pair('zeta', zetaOf);
/**
 * The regularised lower incomplete gamma function P(a, x). Differentiable by x.
 *
 * @names igamma, special.gammainc
 * @example
 * const x = sn.tensor([0.5, 1.5, 4]);
 * const a = sn.tensor([1, 2, 3]);
 * sn.igamma(a, x);
 */
export const igamma: FloatBinary = /* @__PURE__ */ pair('igamma', incomplete.lowerGamma);
/**
 * The regularised upper incomplete gamma function Q(a, x) = 1 − P(a, x). Differentiable by x.
 *
 * @names igammac, special.gammaincc
 * @example
 * const x = sn.tensor([0.5, 1.5, 4]);
 * const a = sn.tensor([1, 2, 3]);
 * sn.igammac(a, x);
 */
export const igammac: FloatBinary = /* @__PURE__ */ pair('igammac', incomplete.upperGamma);

/** @names LogitOptions */
export interface LogitOptions {
  /** x is limited to [eps, 1 − eps] first; by default it is not. */
  readonly eps?: number;
}

const takesLogit = arg.takes<typeof logit>(
  ['x', aTensor],
  ['options', arg.options<LogitOptions>({ eps: arg.number })],
);

/**
 * log(x/(1 − x)), the inverse of `sigmoid`; NaN outside of [0, 1].
 *
 * @names logit, special.logit
 * @example
 * const u = sn.tensor([0.25, 0.5, 0.75]);
 * sn.logit(u);
 */
export function logit(x: Tensor, options: LogitOptions = {}): Tensor {
  takesLogit('logit', x, options);
  const { eps } = options;
  if (eps === undefined) return of('logit', elementary.logit)(x);
  return of('logit', (p) => {
    const above = p.lt(eps).choose(eps, p);
    return elementary.logit(p.gt(1 - eps).choose(1 - eps, above));
  })(x);
}

const takesOrder = arg.takes<typeof polygamma>(['the order', arg.count(0)], ['x', aTensor]);

/**
 * The derivative of order n of ψ, which is `digamma`.
 *
 * @names polygamma, special.polygamma
 * @example
 * const x = sn.tensor([0.5, 1.5, 4]);
 * sn.polygamma(1, x);
 */
export function polygamma(n: number, x: Tensor): Tensor {
  takesOrder('polygamma', n, x);
  return n === 0 ? digamma(x) : of('polygamma', polygammaOf(n))(x);
}

const takesDimension = arg.takes<typeof mvlgamma>(['x', aTensor], ['p', arg.count(1)]);

/**
 * The logarithm of the multivariate gamma function of dimension p.
 *
 * @names mvlgamma, special.multigammaln
 * @example
 * const a = sn.tensor([1, 2, 3]);
 * sn.mvlgamma(a, 2);
 */
export function mvlgamma(x: Tensor, p: number): Tensor {
  takesDimension('mvlgamma', x, p);
  return of('mvlgamma', multivariate(p))(x);
}
