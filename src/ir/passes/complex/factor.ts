// Matrix algorithms on complex panels as such on real ones. Triangles are interleaved: each element
// z = x + iy is [x −y; y x] in its place, which keeps products and triangles with a real diagonal.
// Elimination and reflections choose by moduli of complex numbers, which a real matrix of twice the
// size would not: kernels of their own have real parts before imaginary ones.

import { complex, full, imag, neg, permute, real, reshape } from '../../build.ts';
import type { FactorKind } from '../../factor.ts';
import { dims, rewrite, type Graph, type GraphBuilder, type Node, type NodeOf } from '../../graph.ts';
import { columnsOf, diagonalOf, factor, joined, lower, rowsOf, sizes, spread } from '../../matrix.ts';
import { isComplex, partType } from '../../dtype.ts';
import { sizeOf } from '../../shape.ts';
import { CompilerBug } from '../../../errors.ts';
import { inBlocks, type Panels } from '../blocks.ts';
import { over, pair, type ComplexPair } from './pair.ts';

/** Panels of complex numbers that fit a kernel of any target. */
const panels: Panels = { cholesky: 64, triangle: 32, columns: 16 };

/** Large algorithms on complex matrices as panels and products. */
export function splitComplexFactors(graph: Graph): Graph {
  return rewrite(graph, (node, inputs, b) => {
    if (node.op !== 'factor' || !isComplex(node.dtype) || sizeOf(dims(node as Node)) === 0) return undefined;
    return inBlocks(b, node.attrs.kind, inputs, panels);
  });
}

/** The value of such a node, whose operands are pairs. */
export function factorOfPairs(
  b: GraphBuilder,
  node: NodeOf<'factor'>,
  operands: readonly ComplexPair[],
): ComplexPair {
  const shape = dims(node as Node);
  const part = partType(node.dtype);
  if (sizeOf(shape) === 0) return pair(full(b, shape, 0, part), full(b, shape, 0, part));
  const { kind } = node.attrs;
  const [x, y] = operands.map(({ re, im }) => complex(b, re, im));
  const found = lowered(b, kind, x!, y);
  return pair(real(b, found), imag(b, found));
}

function lowered(b: GraphBuilder, kind: FactorKind, x: Node, y: Node | undefined): Node {
  switch (kind) {
    case 'cholesky': {
      const hermitian = complex(b, real(b, x), lower(b, imag(b, x), -1));
      return fromInterleaved(b, factor(b, kind, interleaved(b, hermitian)));
    }
    case 'lowerSolve': {
      // Rows are divided by the diagonal, so that the interleaved matrix is a triangle too.
      const pivots = pair(diagonalOf(b, real(b, x)), diagonalOf(b, imag(b, x)));
      return unitSolved(b, byRows(b, x, pivots), byRows(b, y!, pivots));
    }
    case 'unitLowerSolve':
      return unitSolved(b, x, y!);
    case 'lu': {
      const n = sizes(x)[2];
      const packed = factor(b, 'luOfPairs', partsBeside(b, x));
      const marks = columnsOf(b, packed, 2 * n, 2 * n + 2);
      const none = full(b, dims(marks), 0, marks.dtype);
      const re = joined(b, 2, [columnsOf(b, packed, 0, n), marks]);
      return complex(b, re, joined(b, 2, [columnsOf(b, packed, n, 2 * n), none]));
    }
    case 'householder': {
      const n = sizes(x)[2];
      const packed = factor(b, 'householderOfPairs', partsBeside(b, x));
      return complex(b, columnsOf(b, packed, 0, n), columnsOf(b, packed, n, 2 * n));
    }
    default:
      throw new CompilerBug('lowerComplex', `${kind} of complex numbers stays`);
  }
}

/** Real parts before imaginary ones, [lines, m, 2n]. */
function partsBeside(b: GraphBuilder, z: Node): Node {
  return joined(b, 2, [real(b, z), imag(b, z)]);
}

/** Each row divided by a number of its own. */
function byRows(b: GraphBuilder, z: Node, numbers: ComplexPair): Node {
  const divisor = (part: Node): Node => spread(b, part, real(b, z), 1);
  const below = pair(divisor(numbers.re), divisor(numbers.im));
  const { re, im } = over(b, pair(real(b, z), imag(b, z)), below);
  return complex(b, re, im);
}

/** X of L·X = B, with ones on the diagonal of L. */
function unitSolved(b: GraphBuilder, l: Node, rhs: Node): Node {
  const strict = complex(b, lower(b, real(b, l), -1), lower(b, imag(b, l), -1));
  const sides = interleavedParts(b, rhs);
  return fromInterleavedParts(b, factor(b, 'unitLowerSolve', interleaved(b, strict), sides));
}

// Complex matrices as real ones of twice the size: z = x + iy stands as [x −y; y x] in the place of
// each element. Sums and products are kept, and so are triangles with a real diagonal.

/** [x −y; y x], [lines, 2m, 2n]. */
function blocks(b: GraphBuilder, z: Node): Node {
  const [x, y] = [real(b, z), imag(b, z)];
  return joined(b, 1, [joined(b, 2, [x, neg(b, y)]), joined(b, 2, [y, x])]);
}

/** The real parts above the imaginary ones, [lines, 2m, n]. */
function stackedParts(b: GraphBuilder, z: Node): Node {
  return joined(b, 1, [real(b, z), imag(b, z)]);
}

/** What `stackedParts` came of. */
function fromStackedParts(b: GraphBuilder, x: Node): Node {
  const half = sizes(x)[1] / 2;
  return complex(b, rowsOf(b, x, 0, half), rowsOf(b, x, half, 2 * half));
}

/** Rows 0 and half, 1 and half + 1, …: what lay in two halves by turns. */
function rowsByTurns(b: GraphBuilder, x: Node): Node {
  const [lines, rows, columns] = sizes(x);
  const halves = reshape(b, x, [lines, 2, rows / 2, columns]);
  return reshape(b, permute(b, halves, [0, 2, 1, 3]), dims(x));
}

function rowsInHalves(b: GraphBuilder, x: Node): Node {
  const [lines, rows, columns] = sizes(x);
  const pairs = reshape(b, x, [lines, rows / 2, 2, columns]);
  return reshape(b, permute(b, pairs, [0, 2, 1, 3]), dims(x));
}

/** Each element as [x −y; y x] in its place. */
function interleaved(b: GraphBuilder, z: Node): Node {
  const turned = permute(b, rowsByTurns(b, blocks(b, z)), [0, 2, 1]);
  return permute(b, rowsByTurns(b, turned), [0, 2, 1]);
}

/** Each row as its real parts, and its imaginary parts below: right-hand sides of an interleaved matrix. */
function interleavedParts(b: GraphBuilder, z: Node): Node {
  return rowsByTurns(b, stackedParts(b, z));
}

/** What `interleavedParts` came of. */
function fromInterleavedParts(b: GraphBuilder, x: Node): Node {
  return fromStackedParts(b, rowsInHalves(b, x));
}

/** What `interleaved` came of. */
function fromInterleaved(b: GraphBuilder, x: Node): Node {
  const [lines, rows, columns] = sizes(x);
  const pairs = reshape(b, x, [lines, rows, columns / 2, 2]);
  const first = b.add('slice', [pairs], {
    start: [0, 0, 0, 0],
    size: [lines, rows, columns / 2, 1],
    step: [1, 1, 1, 1],
  }) as Node;
  return fromInterleavedParts(b, reshape(b, first, [lines, rows, columns / 2]));
}
