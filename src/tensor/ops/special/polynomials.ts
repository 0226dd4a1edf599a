// Orthogonal polynomials at x, of one order or of one for each element.

import * as arg from '../../../ir/arguments.ts';
import { cast } from '../../../ir/build.ts';
import { families, ofOrder, ofOrders, type PolynomialFamily } from '../../formula/special/orthogonal.ts';
import { Real } from '../../formula/special/real.ts';
import { anOperand, aTensor } from '../../expect.ts';
import { Tensor, type TensorLike } from '../../tensor.ts';
import { wideType } from '../../formula/elementwise.ts';
import { combine } from '../operand.ts';

/** @names OrderOptions */
export interface OrderOptions {
  /** The greatest order where orders are a tensor: 32 by default. Those above it give NaN. */
  readonly maxOrder?: number;
}

/**
 * A polynomial of order n at x, both broadcast; fractions of n are cut off, and below 0 it is 0.
 *
 * @names Polynomial
 */
export type Polynomial = (x: TensorLike, n: TensorLike, options?: OrderOptions) => Tensor;

/** Orders are steps of a recurrence that is written out. */
const most = 256;
const order: arg.Kind<number> = arg.kind(
  `a number of at most ${most}`,
  (value) => typeof value === 'number' && value <= most,
);
const orders: arg.Kind<TensorLike> = {
  accepts: (value) => order.accepts(value) || aTensor.accepts(value),
  refuse: (op, what, value) => (typeof value === 'number' ? order : anOperand).refuse(op, what, value),
};
const maxOrder: arg.Kind<number> = arg.kind(
  `an integer from 0 to ${most}`,
  (value) => Number.isSafeInteger(value) && (value as number) >= 0 && (value as number) <= most,
);
const takesOrders = arg.takes<Polynomial>(
  ['x', anOperand],
  ['the order', orders],
  ['options', arg.options<OrderOptions>({ maxOrder })],
);

function of(name: string, family: PolynomialFamily, isShifted = false): Polynomial {
  return (x, n, options = {}) => {
    takesOrders(name, x, n, options);
    const { maxOrder: greatest = 32 } = options;
    const at = (real: Real): Real => (isShifted ? real.mul(2).sub(1) : real);
    if (!(n instanceof Tensor)) {
      const whole = Math.trunc(Number(n));
      return combine(name, [x], 'realFloat', (b, p) => {
        const wide = new Real(b, cast(b, p, wideType(p.dtype)));
        return cast(b, ofOrder(family, at(wide), whole).node, p.dtype);
      });
    }
    return combine(name, [x, n], 'realFloat', (b, p, q) => {
      const [wide, each] = [p, q].map((node) => new Real(b, cast(b, node, wideType(node.dtype))));
      return cast(b, ofOrders(family, at(wide!), each!, greatest).node, p.dtype);
    });
  };
}

/**
 * Chebyshev's polynomial of the first kind, cos(n·arccos x).
 *
 * @example
 * const x = sn.tensor([0.5, 1.5, 4]);
 * sn.special.chebyshevPolynomialT(x, 3);
 */
export const chebyshevPolynomialT: Polynomial = /* @__PURE__ */ of(
  'chebyshevPolynomialT',
  families.chebyshevT,
);
/**
 * Chebyshev's polynomial of the second kind.
 *
 * @example
 * const x = sn.tensor([0.5, 1.5, 4]);
 * sn.special.chebyshevPolynomialU(x, 3);
 */
export const chebyshevPolynomialU: Polynomial = /* @__PURE__ */ of(
  'chebyshevPolynomialU',
  families.chebyshevU,
);
/**
 * Chebyshev's polynomial of the third kind.
 *
 * @example
 * const x = sn.tensor([0.5, 1.5, 4]);
 * sn.special.chebyshevPolynomialV(x, 3);
 */
export const chebyshevPolynomialV: Polynomial = /* @__PURE__ */ of(
  'chebyshevPolynomialV',
  families.chebyshevV,
);
/**
 * Chebyshev's polynomial of the fourth kind.
 *
 * @example
 * const x = sn.tensor([0.5, 1.5, 4]);
 * sn.special.chebyshevPolynomialW(x, 3);
 */
export const chebyshevPolynomialW: Polynomial = /* @__PURE__ */ of(
  'chebyshevPolynomialW',
  families.chebyshevW,
);
/**
 * Chebyshev's polynomial of the first kind at 2x − 1.
 *
 * @example
 * const x = sn.tensor([0.5, 1.5, 4]);
 * sn.special.shiftedChebyshevPolynomialT(x, 3);
 */
export const shiftedChebyshevPolynomialT: Polynomial = /* @__PURE__ */ of(
  'shiftedChebyshevPolynomialT',
  families.chebyshevT,
  true,
);
/**
 * Chebyshev's polynomial of the second kind at 2x − 1.
 *
 * @example
 * const x = sn.tensor([0.5, 1.5, 4]);
 * sn.special.shiftedChebyshevPolynomialU(x, 3);
 */
export const shiftedChebyshevPolynomialU: Polynomial = /* @__PURE__ */ of(
  'shiftedChebyshevPolynomialU',
  families.chebyshevU,
  true,
);
/**
 * Chebyshev's polynomial of the third kind at 2x − 1.
 *
 * @example
 * const x = sn.tensor([0.5, 1.5, 4]);
 * sn.special.shiftedChebyshevPolynomialV(x, 3);
 */
export const shiftedChebyshevPolynomialV: Polynomial = /* @__PURE__ */ of(
  'shiftedChebyshevPolynomialV',
  families.chebyshevV,
  true,
);
/**
 * Chebyshev's polynomial of the fourth kind at 2x − 1.
 *
 * @example
 * const x = sn.tensor([0.5, 1.5, 4]);
 * sn.special.shiftedChebyshevPolynomialW(x, 3);
 */
export const shiftedChebyshevPolynomialW: Polynomial = /* @__PURE__ */ of(
  'shiftedChebyshevPolynomialW',
  families.chebyshevW,
  true,
);
/**
 * Hermite's polynomial of physics.
 *
 * @example
 * const x = sn.tensor([0.5, 1.5, 4]);
 * sn.special.hermitePolynomialH(x, 3);
 */
export const hermitePolynomialH: Polynomial = /* @__PURE__ */ of('hermitePolynomialH', families.hermiteH);
/**
 * Hermite's polynomial of probability.
 *
 * @example
 * const x = sn.tensor([0.5, 1.5, 4]);
 * sn.special.hermitePolynomialHe(x, 3);
 */
export const hermitePolynomialHe: Polynomial = /* @__PURE__ */ of('hermitePolynomialHe', families.hermiteHe);
/**
 * Laguerre's polynomial.
 *
 * @example
 * const x = sn.tensor([0.5, 1.5, 4]);
 * sn.special.laguerrePolynomialL(x, 3);
 */
export const laguerrePolynomialL: Polynomial = /* @__PURE__ */ of('laguerrePolynomialL', families.laguerreL);
/**
 * Legendre's polynomial.
 *
 * @example
 * const x = sn.tensor([0.5, 1.5, 4]);
 * sn.special.legendrePolynomialP(x, 3);
 */
export const legendrePolynomialP: Polynomial = /* @__PURE__ */ of('legendrePolynomialP', families.legendreP);
