// What the special functions take: those at the top, and those of the namespace `special`.

import { ones } from '../../../src/index.ts';
import { axes, count, flag, like, meaning, number, operand, options, t, type Meaning } from '../kinds.ts';

const x = t(2, 3);
const maxOrder = options({ maxOrder: like(count, () => 4) });
/** Orders: any number that is not too great, a tensor, but no boolean. */
const order: Meaning = meaning(
  () => ones([2, 3]),
  'tensor',
  'bool',
  'integers',
  'fraction',
  'negative',
  'number',
);
/** From 0 on. */
const whole: Meaning = meaning(() => 1, 'number');

function rows(names: string, ...places: readonly Meaning[]): Record<string, readonly Meaning[]> {
  return Object.fromEntries(names.split(/\s+/).map((name) => [name, places]));
}

/** Exported beside the other operations. */
export const specialOperations: Readonly<Record<string, readonly Meaning[]>> = {
  ...rows('digamma erfinv i0 lgamma sinc', x),
  ...rows('igamma igammac xlogy', operand, operand),
  logit: [x, options({ eps: number })],
  mvlgamma: [x, count],
  polygamma: [whole, x],
};

/** The members of `special`. */
export const specialRows: Readonly<Record<string, readonly Meaning[]>> = {
  ...rows(
    'airyAi besselJ0 besselJ1 besselY0 besselY1 digamma entr erf erfc erfcx erfinv exp2 expit expm1 gammaln i0 i0e i1 i1e log1p ' +
      'logNdtr modifiedBesselI0 modifiedBesselI1 modifiedBesselK0 modifiedBesselK1 ndtr ndtri psi round ' +
      'scaledModifiedBesselK0 scaledModifiedBesselK1 sinc sphericalBesselJ0',
    x,
  ),
  ...rows('gammainc gammaincc xlogy xlog1py zeta', operand, operand),
  ...rows(
    'chebyshevPolynomialT chebyshevPolynomialU chebyshevPolynomialV chebyshevPolynomialW hermitePolynomialH ' +
      'hermitePolynomialHe laguerrePolynomialL legendrePolynomialP shiftedChebyshevPolynomialT shiftedChebyshevPolynomialU ' +
      'shiftedChebyshevPolynomialV shiftedChebyshevPolynomialW',
    operand,
    order,
    maxOrder,
  ),
  logit: [x, options({ eps: number })],
  ...rows('logSoftmax softmax', x, axes, options({ dtype: meaning(() => 'f32') })),
  logsumexp: [x, axes, options({ keepdim: flag })],
  multigammaln: [x, count],
  polygamma: [whole, x],
};

/** Members that tell their errors by another name. */
export const ownNames: Readonly<Record<string, string>> = {
  expit: 'sigmoid',
  gammainc: 'igamma',
  gammaincc: 'igammac',
  gammaln: 'lgamma',
  multigammaln: 'mvlgamma',
  psi: 'digamma',
};
