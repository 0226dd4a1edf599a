// Derivatives of matrix algorithms, from their packed results: triangular solves and products only,
// so that each has a derivative again. (M. Giles, "An extended collection of matrix derivative
// results", 2008; S. F. Walter and L. Lehmann, "Algorithmic differentiation of linear algebra
// functions", 2010; I. Murray, "Differentiation of the Cholesky decomposition", 2016.)

import { TensorError } from '../errors.ts';
import { add, fullLike, mul, neg, sub } from '../ir/build.ts';
import type { FactorKind } from '../ir/factor.ts';
import type { GraphBuilder, Node, NodeOf } from '../ir/graph.ts';
import {
  block,
  columnsOf,
  identity,
  integersAt,
  inverseOrder,
  joined,
  lower,
  product,
  rowsAt,
  sizes,
  solveUpper,
  transpose,
  upper,
} from '../ir/matrix.ts';
import type { Rule } from './cotangent.ts';

type KindRule = (
  b: GraphBuilder,
  inputs: readonly Node[],
  result: Node,
  g: Node,
  wanted: readonly boolean[],
) => readonly (Node | undefined)[];

/** L⁻ᵀ·X. */
function underLower(b: GraphBuilder, l: Node, x: Node, unit = false): Node {
  return solveUpper(b, transpose(b, l), x, unit);
}

/** The lower triangle and its mirror image above the diagonal. */
function mirrored(b: GraphBuilder, x: Node): Node {
  return add(b, lower(b, x), transpose(b, lower(b, x, -1)));
}

/**
 * A = L·Lᵀ: ½·L⁻ᵀ·mirrored(Lᵀ·G)·L⁻¹, a symmetric matrix, though only the lower triangle of A is
 * read.
 */
const choleskyRule: KindRule = (b, _inputs, l, g) => {
  const inner = mirrored(b, product(b, l, lower(b, g), { ofX: true }));
  const left = underLower(b, l, mul(b, inner, fullLike(b, inner, 0.5)));
  return [transpose(b, underLower(b, l, transpose(b, left)))];
};

/** L·X = B: B gets L⁻ᵀ·G, L the lower triangle of −(L⁻ᵀ·G)·Xᵀ. */
const solveRule =
  (unit: boolean): KindRule =>
  (b, [l], x, g, [lowerWanted]) => {
    const sides = underLower(b, l!, g, unit);
    if (lowerWanted !== true) return [undefined, sides];
    const outer = neg(b, product(b, sides, x, { ofY: true }));
    return [lower(b, outer, unit ? -1 : 0), sides];
  };

/**
 * P·A = L·U. Of a square A, L⁻ᵀ·(below(Lᵀ·Ḡ) + above(Ḡ·Uᵀ))·U⁻ᵀ. Rows beyond the square are
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
    ofUpper = sub(b, ofUpper, upper(b, product(b, rest, below, { ofX: true })));
  }
  const beside = n === k ? undefined : underLower(b, l, block(b, g, [0, k], [k, n - k]), true);
  if (beside !== undefined) {
    const rest = block(b, packed, [0, k], [k, n - k]);
    ofLower = sub(b, ofLower, lower(b, product(b, beside, rest, { ofY: true }), -1));
  }
  const inner = add(
    b,
    lower(b, product(b, l, ofLower, { ofX: true }), -1),
    upper(b, product(b, ofUpper, u, { ofY: true })),
  );
  const corner = rightOf(b, underLower(b, l, inner, true), u);
  const top = beside === undefined ? corner : joined(b, 2, [corner, beside]);
  const all = below === undefined ? top : joined(b, 1, [top, below]);
  return [rowsAt(b, all, inverseOrder(b, integersAt(b, packed, n)))];
};

/** X·U⁻ᵀ. */
function rightOf(b: GraphBuilder, x: Node, u: Node): Node {
  return transpose(b, solveUpper(b, u, transpose(b, x)));
}

/**
 * A = Q·R with m ≥ n: (Ḡ_Q + Q·mirrored(M))·R⁻ᵀ with M = R·Ḡ_Rᵀ − Ḡ_Qᵀ·Q. With fewer rows than
 * columns Q and the left square of R come of the left square of A, and the other columns of R are
 * Qᵀ·A₂.
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
    ofQ = add(b, ofQ, product(b, rest, beyond, { ofY: true }));
  }
  const inner = sub(b, product(b, r, ofR, { ofY: true }), product(b, ofQ, q, { ofX: true }));
  const left = rightOf(b, add(b, ofQ, product(b, q, mirrored(b, inner))), r);
  return [beyond === undefined ? left : joined(b, 2, [left, product(b, q, beyond)])];
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
};

/** The rule of matrix algorithms. */
export const factorRule: Rule<'factor'> = (b, node: NodeOf<'factor'>, g, wanted) =>
  kindRules[node.attrs.kind](b, node.inputs, node as Node, g, wanted);
