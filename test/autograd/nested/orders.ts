// Second and third derivatives of a scalar function of tensors, taken by every way there is of nesting transforms. All must agree.

import { add, mul } from '../../../src/tensor/ops/elementwise/arithmetic.ts';
import { sum } from '../../../src/tensor/ops/reduce/reduce.ts';
import { ones, zeros } from '../../../src/tensor/ops/creation/creation.ts';
import type { Tensor } from '../../../src/tensor/tensor.ts';
import { hvp, jvp, linearize } from '../../../src/tensor/derivative/forward.ts';
import { grad, gradients, vjp } from '../../../src/tensor/derivative/transform.ts';

type Many = readonly Tensor[];
export type Scalar = (xs: Many) => Tensor;
/** A derivative of `f` at `xs`, those after the first along `d`. */
export type Derive = (f: Scalar, xs: Many, d: Many) => Many;
/** The gradient of a scalar function. */
type Gradient = (f: Scalar) => (xs: Many) => Many;

const byGrad: Gradient = (f) => (xs) => grad(f)(xs);
const byVjp: Gradient = (f) => (xs) => {
  const { value, vjp: pull } = vjp(f, xs);
  return pull(ones(value.shape, { dtype: value.dtype }))[0];
};
/** With respect to leaves of its own. */
const byLeaves: Gradient = (f) => (xs) => {
  const leaves = xs.map((x) => x.detach().requiresGrad_());
  const value = f(leaves);
  return value.requiresGrad ? gradients(value, leaves) : zerosLike(xs);
};

const zerosLike = (xs: Many): Many => xs.map(({ shape, dtype }) => zeros(shape, { dtype }));
const inner = (as: Many, bs: Many): Tensor =>
  as.map((a, i) => sum(mul(a, bs[i]!))).reduce((a, b) => add(a, b));

/** Backward of a function, each argument a leaf. */
const byBackward: Gradient = (f) => (xs) => {
  const leaves = xs.map((x) => x.detach().requiresGrad_());
  const value = f(leaves);
  if (!value.requiresGrad) return zerosLike(xs);
  value.backward();
  return leaves.map((leaf) => leaf.grad ?? zeros(leaf.shape, { dtype: leaf.dtype }));
};

/** ∇f. */
export const firstOrders: Readonly<Record<string, Derive>> = {
  grad: (f, xs) => byGrad(f)(xs),
  vjp: (f, xs) => byVjp(f)(xs),
  gradients: (f, xs) => byLeaves(f)(xs),
  backward: (f, xs) => byBackward(f)(xs),
};

/** H·d. */
export const secondOrders: Readonly<Record<string, Derive>> = {
  'grad of grad': (f, xs, d) => byGrad((at) => inner(byGrad(f)(at), d))(xs),
  'vjp of vjp': (f, xs, d) => vjp((at: Many) => byVjp(f)(at), xs).vjp(d)[0],
  'vjp of grad': (f, xs, d) => vjp((at: Many) => byGrad(f)(at), xs).vjp(d)[0],
  'grad of vjp': (f, xs, d) => byGrad((at) => inner(byVjp(f)(at), d))(xs),
  'gradients of gradients': (f, xs, d) => {
    const leaves = xs.map((x) => x.detach().requiresGrad_());
    const value = f(leaves);
    if (!value.requiresGrad) return zerosLike(xs);
    const first = gradients(value, leaves);
    const product = inner(first, d);
    if (!product.requiresGrad) return zerosLike(xs);
    return gradients(product, leaves);
  },
  'backward of grad': (f, xs, d) => byBackward((at) => inner(byGrad(f)(at), d))(xs),
};

/** Hᵀ·d = ∂/∂u (H·u)ᵀd, which is H·d where the function is smooth. */
export const transposedOrders: Readonly<Record<string, Derive>> = {
  'grad of a pullback in its seed': (f, xs, d) => {
    const pulled = (u: Many): Many => vjp((at: Many) => byGrad(f)(at), xs).vjp(u as never)[0];
    return byGrad((u) => inner(pulled(u), d))(d.map((each) => zeros(each.shape, { dtype: each.dtype })));
  },
};

/** dᵀ∇f, forwards: one number. */
export const slopes: Readonly<Record<string, Derive>> = {
  jvp: (f, xs, d) => [jvp(f, [xs], [d]).tangent],
  linearize: (f, xs, d) => [linearize(f, xs).jvp(d)],
};

/** H·d, where forwards and backwards meet: equal to the others where the function is smooth. */
export const forwardOrders: Readonly<Record<string, Derive>> = {
  'jvp of grad': (f, xs, d) => jvp((at: Many) => byGrad(f)(at), [xs], [d]).tangent,
  'grad of jvp': (f, xs, d) => byGrad((at) => jvp(f, [at], [d]).tangent)(xs),
  'linearize of vjp': (f, xs, d) => linearize((at: Many) => byVjp(f)(at), xs).jvp(d),
  hvp: (f, xs, d) => hvp(f, [xs], [d]).hvp[0] as Many,
};

/** ∇(dᵀHd) = ∂/∂d of H·d, likewise. */
export const forwardThirdOrders: Readonly<Record<string, Derive>> = {
  'jvp of jvp of grad': (f, xs, d) =>
    jvp((at: Many) => jvp((other: Many) => byGrad(f)(other), [at], [d]).tangent, [xs], [d]).tangent,
  'jvp of grad of jvp': (f, xs, d) =>
    jvp((at: Many) => byGrad((other) => jvp(f, [other], [d]).tangent)(at), [xs], [d]).tangent,
  'grad of jvp of jvp': (f, xs, d) =>
    byGrad((at) => jvp((other: Many) => jvp(f, [other], [d]).tangent, [at], [d]).tangent)(xs),
};

/** ∇(dᵀHd). */
export const thirdOrders: Readonly<Record<string, Derive>> = {
  'grad of grad of grad': (f, xs, d) =>
    byGrad((at) => inner(byGrad((other) => inner(byGrad(f)(other), d))(at), d))(xs),
  'vjp of vjp of vjp': (f, xs, d) =>
    byVjp((at) => inner(vjp((other: Many) => byVjp(f)(other), at).vjp(d)[0], d))(xs),
  'backward of a product of Hessian and vector': (f, xs, d) =>
    byBackward((at) => inner(vjp((other: Many) => byGrad(f)(other), at).vjp(d)[0], d))(xs),
};
