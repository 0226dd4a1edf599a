// Eigenvalues and eigenvectors of matrices of any kind, as nodes: by the Schur form of what they are
// as complex matrices (the kind `schur` of the primitive `factor`).

import type { CustomRule } from '../../../autograd/custom.ts';
import {
  binary,
  broadcast,
  cast,
  complex,
  conj,
  div,
  full,
  fullLike,
  imag,
  mul,
  real,
  reduce,
  reshape,
  sub,
  unary,
  where,
} from '../../../ir/build.ts';
import { complexType, partType } from '../../../ir/dtype.ts';
import { dims, type GraphBuilder, type Node } from '../../../ir/graph.ts';
import { adjoint, identity, onDiagonal } from '../../../ir/matrix.ts';
import { factor } from '../../formula/matrix.ts';
import * as formula from '../../formula/elementwise.ts';
import { concat, sliceAxis } from '../../formula/layout.ts';
import { inverted } from './inverse.ts';
import { diagonalsOf, eachPart, product, scaledToOne, timesColumns, withDiagonal } from './stack.ts';

/** @internal */
export interface EigenPairs {
  /** [count, n], complex. */
  readonly w: Node;
  /** [count, n, n], complex: eigenvectors of length 1 as columns. */
  readonly v: Node;
}

/** Eigenvalues and eigenvectors of a complex stack. */
function eigenPairs(b: GraphBuilder, a: Node): EigenPairs {
  const [count, n] = dims(a) as [number, number, number];
  if (count === 0 || n === 0)
    return { w: full(b, [count, n], 0, a.dtype), v: full(b, [count, n, n], 0, a.dtype) };
  const { x, scale } = scaledToOne(b, a);
  const packed = factor(b, 'schur', concat(b, [real(b, x), imag(b, x)], 2));
  const part = (at: number): Node => sliceAxis(b, packed, 2, at * n, n);
  const triangle = complex(b, part(0), part(1));
  const values = diagonalsOf(b, triangle);
  const spread = broadcast(b, reshape(b, scale, [count, 1]), dims(values));
  const w = eachPart(b, values, (each) => mul(b, each, spread));
  const held = product(b, adjoint(b, complex(b, part(2), part(3))), vectorsOf(b, triangle));
  const size = unary(b, 'sqrt', reduce(b, 'sum', formula.squaredSize(b, held), [1]));
  return { w, v: timesColumns(b, held, div(b, fullLike(b, size, 1), size)) };
}

/** The eigenvectors of a triangle, packed as `schur` gives them. */
function vectorsOf(b: GraphBuilder, packed: Node): Node {
  const shape = dims(packed);
  const [count, n] = shape as [number, number, number];
  const zeros = fullLike(b, packed, 0);
  const above = binary(b, 'lt', formula.iota(b, shape, 1), formula.iota(b, shape, 2));
  const first = full(b, [count, 1], 1, partType(packed.dtype));
  const column = real(b, reshape(b, sliceAxis(b, packed, 2, 0, 1), [count, n]));
  const ones = n === 1 ? first : concat(b, [first, sliceAxis(b, column, 1, 1, n - 1)], 1);
  const spread = broadcast(b, reshape(b, cast(b, ones, packed.dtype), [count, 1, n]), shape);
  return where(b, onDiagonal(b, shape), spread, where(b, above, packed, zeros));
}

/** Eigenvalues and eigenvectors of a real or complex stack, with their derivatives. @internal */
export function eigNodes(b: GraphBuilder, a: Node): EigenPairs {
  const x = cast(b, a, complexType(a.dtype));
  const { w, v } = eigenPairs(b, x);
  return { w: formula.withRule(b, w, [x], valuesRule), v: formula.withRule(b, v, [x], vectorsRule) };
}

/** V⁻ᴴ·inner·Vᴴ. */
function around(b: GraphBuilder, v: Node, inner: Node): Node {
  return product(b, adjoint(b, inverted(b, v)), inner, adjoint(b, v));
}

/** dw = diag(V⁻¹·dA·V). */
const valuesRule: CustomRule = (b, [a], _, g) => {
  const { v } = eigNodes(b, a!);
  const [count, n] = dims(v) as [number, number, number];
  const empty = mul(b, identity(b, count, [n, n], v.dtype), fullLike(b, v, 0));
  return [around(b, v, withDiagonal(b, empty, g))];
};

/**
 * V⁻ᴴ·((VᴴV̄ − VᴴV·Re diag(VᴴV̄)) / conj(w_j − w_i))·Vᴴ for vectors of length 1 (C. Boeddeker and
 * others, 2017): the diagonal is a phase, which nothing depends on.
 */
const vectorsRule: CustomRule = (b, [a], _, g) => {
  const { w, v } = eigNodes(b, a!);
  const turn = product(b, adjoint(b, v), g);
  const lengths = real(b, diagonalsOf(b, turn));
  const rest = sub(b, turn, product(b, adjoint(b, v), timesColumns(b, v, lengths)));
  const [count, n] = dims(w) as [number, number];
  const shape = [count, n, n];
  const columns = broadcast(b, reshape(b, conj(b, w), [count, 1, n]), shape);
  const rows = broadcast(b, reshape(b, conj(b, w), [count, n, 1]), shape);
  const difference = sub(b, columns, rows);
  const gaps = where(b, onDiagonal(b, shape), fullLike(b, difference, 1), difference);
  return [around(b, v, withDiagonal(b, div(b, rest, gaps), fullLike(b, w, 0)))];
};
