// Public operations that are formulas of others, listed one by one, as src/index.ts exports them.

// More of PyTorch's elementwise operations, products, views and reductions
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
  type TriangleOptions,
} from '../tensor/ops/creation/like.ts';
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
  type CloseOptions,
  type ScaledOptions,
} from '../tensor/ops/elementwise/pairs.ts';
export {
  copysign,
  frac,
  frexp,
  isneginf,
  isposinf,
  ldexp,
  nextafter,
  signbit,
} from '../tensor/ops/elementwise/parts.ts';
export { deg2rad, positive, rad2deg } from '../tensor/ops/elementwise/scale.ts';
export { type RoundOptions } from '../tensor/ops/elementwise/elementwise.ts';
export { addbmm, addmm, addmv, addr, baddbmm, type AffineOptions } from '../tensor/ops/product/affine.ts';
export { inner, kron, tensordot, vdot } from '../tensor/ops/product/tensordot.ts';
export {
  cumulativeTrapezoid,
  diff,
  gradient,
  trapezoid,
  type DiffOptions,
  type GradientOptions,
  type TrapezoidOptions,
} from '../tensor/ops/reduce/difference.ts';
export { type MeanOptions } from '../tensor/ops/reduce/reduce.ts';
export { allclose, equal, renorm, stdMean, sumToSize } from '../tensor/ops/reduce/summary.ts';
export { diagflat, type DiagEmbedOptions } from '../tensor/ops/shape/movement.ts';
export {
  atleast1d,
  atleast2d,
  atleast3d,
  blockDiag,
  broadcastTensors,
  cartesianProd,
  columnStack,
  combinations,
  dsplit,
  dstack,
  hsplit,
  hstack,
  tensorSplit,
  vsplit,
  vstack,
  type CombinationsOptions,
} from '../tensor/ops/shape/stacking.ts';
export { fliplr, flipud, movedim, ravel, reshapeAs, rot90, swapaxes } from '../tensor/ops/shape/turn.ts';
