// Derivatives of matrix algorithms, from their packed results. They use only triangular solves and
// products, so each has a derivative again. (M. Giles, "An extended collection of matrix derivative
// results", 2008; S. F. Walter and L. Lehmann, "Algorithmic differentiation of linear algebra
// functions", 2010; I. Murray, "Differentiation of the Cholesky decomposition", 2016.)

import { CompilerBug, TensorError } from '../errors.ts';
import { add, complex, fullLike, imag, mul, neg, real, sub } from '../ir/build.ts';
import { isComplex } from '../ir/dtype.ts';
import type { FactorKind } from '../ir/factor.ts';
import type { GraphBuilder, Node, NodeOf } from '../ir/graph.ts';
import {
  adjoint,
  adjointProduct,
  block,
  columnsOf,
  identity,
  integersAt,
  inverseOrder,
  joined,
  lower,
  product,
  productByAdjoint,
  rowsAt,
  sizes,
  solveUpper,
  upper,
} from '../ir/matrix.ts';
import type { VjpRule } from './cotangent.ts';

type KindRule = (
  b: GraphBuilder,
  inputs: readonly Node[],
  result: Node,
  g: Node,
  wanted: readonly boolean[],
) => readonly (Node | undefined)[];

/** L⁻ᴴ·X. */
function underLower(b: GraphBuilder, l: Node, x: Node, unit = false): Node {
  return solveUpper(b, adjoint(b, l), x, unit);
}

/** The lower triangle, its conjugate mirror image above the diagonal, and a real diagonal. */
function mirrored(b: GraphBuilder, x: Node): Node {
  const held = isComplex(x.dtype) ? complex(b, lower(b, real(b, x)), lower(b, imag(b, x), -1)) : lower(b, x);
  return add(b, held, adjoint(b, lower(b, x, -1)));
}

/**
 * A = L·Lᴴ: ½·L⁻ᴴ·M·L⁻¹, where M is Lᴴ·Ḡ below its diagonal and conjugated on and above it, as in
 * PyTorch: a Hermitian matrix, but for imaginary parts that Ḡ has on its diagonal, though only the
 * lower triangle of A is read.
 */
const choleskyRule: KindRule = (b, _inputs, l, g) => {
  const product = adjointProduct(b, l, lower(b, g));
  const inner = add(b, lower(b, product, -1), adjoint(b, lower(b, product)));
  const left = underLower(b, l, mul(b, inner, fullLike(b, inner, 0.5)));
  return [adjoint(b, underLower(b, l, adjoint(b, left)))];
};

/** L·X = B: B gets L⁻ᴴ·G, L the lower triangle of −(L⁻ᴴ·G)·Xᴴ. */
const solveRule =
  (unit: boolean): KindRule =>
  (b, [l], x, g, [lowerWanted]) => {
    const sides = underLower(b, l!, g, unit);
    if (lowerWanted !== true) return [undefined, sides];
    const outer = neg(b, productByAdjoint(b, sides, x));
    return [lower(b, outer, unit ? -1 : 0), sides];
  };

/**
 * P·A = L·U. Of a square A, L⁻ᴴ·(below(Lᴴ·Ḡ) + above(Ḡ·Uᴴ))·U⁻ᴴ. Rows beyond the square are
 * A₂·U⁻¹, columns beyond it L⁻¹·A₂: they add to what U and L get.
 */
const luRule: KindRule = (b, [a], packed, g) => {
  const [lines, m, n] = sizes(a!);
  const k = Math.min(m, n);
  const square = block(b, packed, [0, 0], [k, k]);
  const ones = identity(b, lines, [k, k], a!.dtype);
  const l = add(b, lower(b, square, -1), ones);
  const u = upper(b, square);
  let ofLower = lower(b, block(b, g, [0, 0], [k, k]), -1);
  let ofUpper = upper(b, block(b, g, [0, 0], [k, k]));
  const below = m === k ? undefined : rightOf(b, block(b, g, [k, 0], [m - k, k]), u);
  if (below !== undefined) {
    const rest = block(b, packed, [k, 0], [m - k, k]);
    ofUpper = sub(b, ofUpper, upper(b, adjointProduct(b, rest, below)));
  }
  const beside = n === k ? undefined : underLower(b, l, block(b, g, [0, k], [k, n - k]), true);
  if (beside !== undefined) {
    const rest = block(b, packed, [0, k], [k, n - k]);
    ofLower = sub(b, ofLower, lower(b, productByAdjoint(b, beside, rest), -1));
  }
  const inner = add(
    b,
    lower(b, adjointProduct(b, l, ofLower), -1),
    upper(b, productByAdjoint(b, ofUpper, u)),
  );
  const corner = rightOf(b, underLower(b, l, inner, true), u);
  const top = beside === undefined ? corner : joined(b, 2, [corner, beside]);
  const all = below === undefined ? top : joined(b, 1, [top, below]);
  return [rowsAt(b, all, inverseOrder(b, integersAt(b, packed, n)))];
};

/** X·U⁻ᴴ. */
function rightOf(b: GraphBuilder, x: Node, u: Node): Node {
  return adjoint(b, solveUpper(b, u, adjoint(b, x)));
}

/**
 * A = Q·R with m ≥ n: (Ḡ_Q + Q·mirrored(M))·R⁻ᴴ with M = R·Ḡ_Rᴴ − Ḡ_Qᴴ·Q. With fewer rows than
 * columns Q and the left square of R come of the left square of A, and the other columns of R are
 * Qᴴ·A₂. The diagonal of R is real, also of complex matrices.
 */
const qrRule: KindRule = (b, [a], packed, g) => {
  const [, m, n] = sizes(a!);
  const k = Math.min(m, n);
  const q = columnsOf(b, packed, 0, k);
  const r = block(b, packed, [0, k], [k, k]);
  let ofQ = columnsOf(b, g, 0, k);
  const ofR = upper(b, block(b, g, [0, k], [k, k]));
  const beyond = n === k ? undefined : block(b, g, [0, 2 * k], [k, n - k]);
  if (beyond !== undefined) {
    const rest = product(b, q, block(b, packed, [0, 2 * k], [k, n - k]));
    ofQ = add(b, ofQ, productByAdjoint(b, rest, beyond));
  }
  const inner = sub(b, productByAdjoint(b, r, ofR), adjointProduct(b, ofQ, q));
  const left = rightOf(b, add(b, ofQ, product(b, q, mirrored(b, inner))), r);
  return [beyond === undefined ? left : joined(b, 2, [left, product(b, q, beyond)])];
};

const ldlRule: KindRule = () => {
  throw new TensorError('E_GRAD', 'ldlFactor', 'its factors have no derivative; try: solve, which has one');
};

/** Derivatives are taken before a pass makes pairs of complex matrices. */
const madeByPasses: KindRule = () => {
  throw new CompilerBug('factor', 'pairs of complex matrices have no derivative');
};

const kindRules: { readonly [K in FactorKind]: KindRule } = {
  schur: () => {
    throw new TensorError('E_GRAD', 'schur', 'the form has no derivative; try: linalg.eig, which has one');
  },
  cholesky: choleskyRule,
  lowerSolve: solveRule(false),
  unitLowerSolve: solveRule(true),
  lu: luRule,
  householder: () => {
    throw new TensorError(
      'E_GRAD',
      'geqrf',
      'reflectors have no derivative here; try: qr, whose Q and R have one',
    );
  },
  qr: qrRule,
  exchanges: () => [undefined],
  ldlSymmetric: ldlRule,
  ldlHermitian: ldlRule,
  luOfPairs: madeByPasses,
  householderOfPairs: madeByPasses,
};

/** The rule of matrix algorithms. */
export const factorRule: VjpRule<'factor'> = (b, node: NodeOf<'factor'>, g, wanted) =>
  kindRules[node.attrs.kind](b, node.inputs, node as Node, g, wanted);
