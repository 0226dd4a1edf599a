// Rare arithmetic, as a page loads them.

import '../methods.ts';

export {
  adjoint,
  angle,
  complex,
  conj,
  conjPhysical,
  imag,
  isComplex,
  isReal,
  polar,
  real,
  resolveConj,
  resolveNeg,
  sgn,
  viewAsComplex,
  viewAsReal,
} from '../../tensor/ops/complex/complex.ts';
export {
  gumbelSoftmax,
  hardshrink,
  rrelu,
  softshrink,
  threshold,
} from '../../tensor/ops/elementwise/shrink.ts';
export {
  empty,
  emptyLike,
  fill,
  logspace,
  newFull,
  newOnes,
  newZeros,
  trilIndices,
  triuIndices,
} from '../../tensor/ops/creation/like.ts';
export {
  addcdiv,
  addcmul,
  clampMax,
  clampMin,
  floatPower,
  fmax,
  fmin,
  gcd,
  heaviside,
  hypot,
  isclose,
  lcm,
  logaddexp,
  logaddexp2,
  rsub,
  trueDivide,
} from '../../tensor/ops/elementwise/pairs.ts';
export {
  copysign,
  frac,
  frexp,
  isneginf,
  isposinf,
  ldexp,
  nextafter,
  signbit,
} from '../../tensor/ops/elementwise/parts.ts';
export { deg2rad, positive, rad2deg } from '../../tensor/ops/elementwise/scale.ts';
