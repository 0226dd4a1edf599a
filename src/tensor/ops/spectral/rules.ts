// Singular and eigen decompositions with their derivatives (M. Giles, "Collected matrix derivative
// results for forward and reverse mode algorithmic differentiation", 2008; PyTorch's formulas). A
// result's rule makes the whole decomposition again: equal nodes are one node, so nothing is
// computed twice, and the rule's own derivative goes through the decomposition's.
//
// Vectors are unique up to a sign or phase, and to rotations where values are equal: what does not
// depend on the choice has a derivative, which is infinite or NaN where values are equal and it
// needs their difference.

import { add, complex, div, fullLike, imag, mul, sub } from '../../../ir/build.ts';
import { isComplex } from '../../../ir/dtype.ts';
import { dims, type GraphBuilder, type Node } from '../../../ir/graph.ts';
import type { CustomRule } from '../../../autograd/custom.ts';
import * as formula from '../../formula/elementwise.ts';
import { sliceAxis } from '../../formula/layout.ts';
import {
  eigenParts,
  eigenvalues,
  fromTriangle,
  singularParts,
  singularValues,
  type SingularNodes,
} from './decompose.ts';
import { adjoint } from '../../../ir/matrix.ts';
import {
  diagonalsOf,
  eachPart,
  gaps,
  product,
  skew,
  timesColumns,
  timesRows,
  withDiagonal,
} from './stack.ts';

/** U, s and Vᴴ of a stack, with their derivatives. @internal */
export function svdNodes(b: GraphBuilder, a: Node, isFull: boolean): SingularNodes {
  const { u, s, vh } = singularParts(b, a, isFull);
  return {
    u: formula.withRule(b, u, [a], isFull ? fullLeftRule : leftRule),
    s: formula.withRule(b, s, [a], valuesRule),
    vh: formula.withRule(b, vh, [a], isFull ? fullRightRule : rightRule),
  };
}

/** Singular values alone, with their derivative. @internal */
export function svdvalsNodes(b: GraphBuilder, a: Node): Node {
  return formula.withRule(b, singularValues(b, a), [a], valuesRule);
}

/** Σ U·diag(ds)·Vᴴ. */
const valuesRule: CustomRule = (b, [a], _, g) => {
  const { u, vh } = svdNodes(b, a!, false);
  return [product(b, timesColumns(b, u, g), vh)];
};

/** s_j² − s_i², and 1 on the diagonal. */
function squareGaps(b: GraphBuilder, s: Node): Node {
  return gaps(b, formula.square(b, s));
}

const leftRule: CustomRule = (b, [a], _, g) => [leftCotangent(b, a!, g)];

function leftCotangent(b: GraphBuilder, a: Node, g: Node): Node {
  const { u, s, vh } = svdNodes(b, a, false);
  const [, m, k] = dims(u) as [number, number, number];
  const turn = skew(b, product(b, adjoint(b, u), g));
  const rest = timesColumns(b, over(b, turn, squareGaps(b, s)), s);
  const inner = isComplex(a.dtype) ? withDiagonal(b, rest, phaseOf(b, turn, s)) : rest;
  const along = product(b, u, inner);
  if (m === k) return product(b, along, vh);
  // What leaves the space of U's columns comes from what A has outside of it.
  const scaled = timesColumns(b, g, reciprocal(b, s));
  const outside = sub(b, scaled, product(b, u, product(b, adjoint(b, u), scaled)));
  return product(b, add(b, along, outside), vh);
}

/** What turns the phases of a pair of complex vectors, which U has to tell for both. */
function phaseOf(b: GraphBuilder, turn: Node, s: Node): Node {
  const half = div(b, imag(b, diagonalsOf(b, turn)), mul(b, s, 2));
  return complex(b, fullLike(b, half, 0), half);
}

/** Elements by real numbers. */
function over(b: GraphBuilder, x: Node, numbers: Node): Node {
  return eachPart(b, x, (part) => div(b, part, numbers));
}

const rightRule: CustomRule = (b, [a], _, g) => [rightCotangent(b, a!, g)];

function rightCotangent(b: GraphBuilder, a: Node, g: Node): Node {
  const { u, s, vh } = svdNodes(b, a, false);
  const [, k, n] = dims(vh) as [number, number, number];
  const turn = skew(b, product(b, vh, adjoint(b, g)));
  const rest = timesRows(b, over(b, turn, squareGaps(b, s)), s);
  const inner = isComplex(a.dtype) ? withDiagonal(b, rest, fullLike(b, s, 0)) : rest;
  const along = product(b, inner, vh);
  if (n === k) return product(b, u, along);
  const scaled = timesRows(b, g, reciprocal(b, s));
  const outside = sub(b, scaled, product(b, product(b, scaled, adjoint(b, vh)), vh));
  return product(b, u, add(b, along, outside));
}

/** Of a whole basis, only the vectors that belong to values have a derivative. */
const fullLeftRule: CustomRule = (b, [a], _, g) => {
  const count = Math.min(...dims(a!).slice(1));
  return [leftCotangent(b, a!, sliceAxis(b, g, 2, 0, count))];
};

const fullRightRule: CustomRule = (b, [a], _, g) => {
  const count = Math.min(...dims(a!).slice(1));
  return [rightCotangent(b, a!, sliceAxis(b, g, 1, 0, count))];
};

function reciprocal(b: GraphBuilder, x: Node): Node {
  return div(b, fullLike(b, x, 1), x);
}

/** @internal */
export interface EigenNodes {
  readonly w: Node;
  readonly v: Node;
}

/** Which triangle of a matrix stands for it. @internal */
export type Triangle = 'L' | 'U';

/** Eigenvalues and eigenvectors of the Hermitian matrices of a stack, with their derivatives. @internal */
export function eighNodes(b: GraphBuilder, a: Node, uplo: Triangle): EigenNodes {
  const { w, v } = eigenParts(b, fromTriangle(b, a, uplo));
  const lower = uplo === 'L';
  return {
    w: formula.withRule(b, w, [a], lower ? eigenvaluesRule : upperEigenvaluesRule),
    v: formula.withRule(b, v, [a], lower ? eigenvectorsRule : upperEigenvectorsRule),
  };
}

/** @internal */
export function eigvalshNodes(b: GraphBuilder, a: Node, uplo: Triangle): Node {
  const rule = uplo === 'L' ? eigenvaluesRule : upperEigenvaluesRule;
  return formula.withRule(b, eigenvalues(b, fromTriangle(b, a, uplo)), [a], rule);
}

/** dw = diag(Vᴴ·dA·V). */
const valuesOf =
  (uplo: Triangle): CustomRule =>
  (b, [a], _, g) => {
    const { v } = eighNodes(b, a!, uplo);
    return [product(b, timesColumns(b, v, g), adjoint(b, v))];
  };

/**
 * V·((VᴴV̄ − V̄ᴴV)/2 / (w_j − w_i))·Vᴴ: the diagonal is a phase, which nothing depends on.
 */
const vectorsOf =
  (uplo: Triangle): CustomRule =>
  (b, [a], _, g) => {
    const { w, v } = eighNodes(b, a!, uplo);
    // Vectors that stay orthonormal turn by a skew matrix: only that part of VᴴV̄ counts.
    const turn = skew(b, product(b, adjoint(b, v), g));
    const inner = over(b, turn, mul(b, gaps(b, w), 2));
    const empty = withDiagonal(b, inner, mul(b, w, 0));
    return [product(b, v, empty, adjoint(b, v))];
  };

const eigenvaluesRule: CustomRule = valuesOf('L');
const upperEigenvaluesRule: CustomRule = valuesOf('U');
const eigenvectorsRule: CustomRule = vectorsOf('L');
const upperEigenvectorsRule: CustomRule = vectorsOf('U');
