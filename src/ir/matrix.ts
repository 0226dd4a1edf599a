// Graphs of matrices: what rules, passes and operations of linear algebra are written in. A stack
// of matrices is [lines, rows, columns]; blocks, transposes and flips are views.

import {
  binary,
  broadcast,
  cast,
  conj,
  constant,
  full,
  fullLike,
  permute,
  real,
  reshape,
  slice,
  where,
} from './build.ts';
import type { DType } from './dtype.ts';
import { dims, type GraphBuilder, type Node } from './graph.ts';
import type { FactorKind } from './factor.ts';
import type { FixedShape } from './shape.ts';
import { factors } from './typing/factor.ts';
import { factorTypes } from './typing/slots.ts';

/** A stack's number of matrices, and their size. */
export function sizes(x: Node): readonly [lines: number, rows: number, columns: number] {
  const [lines, rows, columns] = dims(x) as [number, number, number];
  return [lines, rows, columns];
}

/** A matrix algorithm (factor.ts). */
export function factor(b: GraphBuilder, kind: FactorKind, ...operands: readonly Node[]): Node {
  factorTypes.fill(factors);
  return b.add('factor', operands, { kind }) as Node;
}

export function transpose(b: GraphBuilder, x: Node): Node {
  return permute(b, x, [0, 2, 1]);
}

/** The conjugate transpose. */
export function adjoint(b: GraphBuilder, x: Node): Node {
  return conj(b, transpose(b, x));
}

/** X·Y, either of them transposed. */
export function product(
  b: GraphBuilder,
  x: Node,
  y: Node,
  { ofX = false, ofY = false }: { readonly ofX?: boolean; readonly ofY?: boolean } = {},
): Node {
  return b.add('dot', [x, y], {
    lhsBatch: [0],
    rhsBatch: [0],
    lhsContract: [ofX ? 1 : 2],
    rhsContract: [ofY ? 2 : 1],
    dtype: x.dtype,
  }) as Node;
}

/** Xᴴ·Y. */
export function adjointProduct(b: GraphBuilder, x: Node, y: Node): Node {
  return product(b, conj(b, x), y, { ofX: true });
}

/** X·Yᴴ. */
export function productByAdjoint(b: GraphBuilder, x: Node, y: Node): Node {
  return product(b, x, conj(b, y), { ofY: true });
}

/** Rows and columns from a corner on. */
export function block(
  b: GraphBuilder,
  x: Node,
  [row, column]: readonly [number, number],
  [rows, columns]: readonly [number, number],
): Node {
  return slice(b, x, [0, row, column], [sizes(x)[0], rows, columns]);
}

export function rowsOf(b: GraphBuilder, x: Node, from: number, to: number): Node {
  return block(b, x, [from, 0], [to - from, sizes(x)[2]]);
}

export function columnsOf(b: GraphBuilder, x: Node, from: number, to: number): Node {
  return block(b, x, [0, from], [sizes(x)[1], to - from]);
}

/** Stacks of blocks side by side (axis 2) or one above the other (axis 1); empty ones are left out. */
export function joined(b: GraphBuilder, axis: 1 | 2, parts: readonly Node[]): Node {
  const held = parts.filter((part) => dims(part)[axis]! > 0);
  if (held.length <= 1) return held[0] ?? parts[0]!;
  return b.add('concat', held, { axis }) as Node;
}

function iota(b: GraphBuilder, shape: FixedShape, axis: number): Node {
  return b.add('iota', [], { shape, axis, dtype: 'i32' }) as Node;
}

/** Where the column is at most `diagonal` places right of the row's own; 0 elsewhere. */
export function lower(b: GraphBuilder, x: Node, diagonal = 0): Node {
  const reach = binary(b, 'add', iota(b, dims(x), 1), fullLike(b, iota(b, dims(x), 1), diagonal));
  return where(b, binary(b, 'le', iota(b, dims(x), 2), reach), x, fullLike(b, x, 0));
}

/** Where the column is at least `diagonal` places right of the row's own; 0 elsewhere. */
export function upper(b: GraphBuilder, x: Node, diagonal = 0): Node {
  const reach = binary(b, 'add', iota(b, dims(x), 1), fullLike(b, iota(b, dims(x), 1), diagonal));
  return where(b, binary(b, 'le', reach, iota(b, dims(x), 2)), x, fullLike(b, x, 0));
}

/** Ones where row and column are the same. */
export function identity(
  b: GraphBuilder,
  lines: number,
  [rows, columns]: readonly [number, number],
  dtype: DType,
): Node {
  const ones = full(b, [lines, rows, columns], 1, dtype);
  return where(b, onDiagonal(b, dims(ones)), ones, fullLike(b, ones, 0));
}

/** Whether an element stands on the diagonal, in matrices of this shape. */
export function onDiagonal(b: GraphBuilder, shape: FixedShape): Node {
  return binary(b, 'eq', iota(b, shape, 1), iota(b, shape, 2));
}

/** The diagonals, [lines, min(rows, columns)]: every so manieth element. */
export function diagonalOf(b: GraphBuilder, x: Node): Node {
  const [lines, rows, columns] = sizes(x);
  const count = Math.min(rows, columns);
  if (count === 0) return full(b, [lines, 0], 0, x.dtype);
  return slice(b, reshape(b, x, [lines, rows * columns]), [0, 0], [lines, count], [1, columns + 1]);
}

/** Each row (axis 1) or column (axis 2) with its own number: [lines, count] beside [lines, m, n]. */
export function spread(b: GraphBuilder, numbers: Node, like: Node, axis: 1 | 2): Node {
  const [lines, count] = dims(numbers) as [number, number];
  return broadcast(b, reshape(b, numbers, axis === 1 ? [lines, count, 1] : [lines, 1, count]), dims(like));
}

function flipped(b: GraphBuilder, x: Node, ...axes: readonly number[]): Node {
  const shape = dims(x);
  if (shape.includes(0)) return x;
  const start = shape.map((size, axis) => (axes.includes(axis) ? size - 1 : 0));
  const step = shape.map((_, axis) => (axes.includes(axis) ? -1 : 1));
  return slice(b, x, start, shape, step);
}

/** X of L·X = B, from the lower triangle of L. */
export function solveLower(b: GraphBuilder, l: Node, rhs: Node, unit = false): Node {
  return factor(b, unit ? 'unitLowerSolve' : 'lowerSolve', l, rhs);
}

/** X of U·X = B, from the upper triangle of U: read from the end, it is a lower one. */
export function solveUpper(b: GraphBuilder, u: Node, rhs: Node, unit = false): Node {
  return flipped(b, solveLower(b, flipped(b, u, 1, 2), flipped(b, rhs, 1), unit), 1);
}

/** Row `order[i]` of x as row i; `order` is i32 [lines, rows]. */
export function rowsAt(b: GraphBuilder, x: Node, order: Node): Node {
  const [lines, , columns] = sizes(x);
  const count = dims(order)[1]!;
  const indices = broadcast(b, reshape(b, order, [lines, count, 1]), [lines, count, columns]);
  return b.add('gather', [x, indices], { axis: 1 }) as Node;
}

/** The places at which a permutation puts what it takes. */
export function inverseOrder(b: GraphBuilder, order: Node): Node {
  return b.add('argSort', [order], { axis: 1, descending: false }) as Node;
}

/** A column of whole numbers kept as floats or complex numbers, as i32 [lines, rows]. */
export function integersAt(b: GraphBuilder, x: Node, column: number): Node {
  const [lines, rows] = sizes(x);
  return cast(b, reshape(b, real(b, columnsOf(b, x, column, column + 1)), [lines, rows]), 'i32');
}

/** A number in the dtype of x. */
export function scalarLike(b: GraphBuilder, x: Node, value: number): Node {
  return constant(b, value, x.dtype);
}
