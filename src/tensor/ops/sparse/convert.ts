// Conversions between the formats, and from and to dense matrices. Compressing sorts once (stably, so
// that the other axis stays in order) and finds where each line begins by a search.

import { TensorError } from '../../../errors.ts';
import * as arg from '../../../ir/arguments.ts';
import { add, binary, cast, full, fullLike, mul, reduce, reshape, sub, where } from '../../../ir/build.ts';
import type { DType } from '../../../ir/dtype.ts';
import { dims, type GraphBuilder, type Node } from '../../../ir/graph.ts';
import { aTensor, anOperand } from '../../expect.ts';
import { recordMany } from '../../record.ts';
import type { Tensor, TensorLike } from '../../tensor.ts';
import { iota, orderOf, truth, wideType } from '../../formula/elementwise.ts';
import { mul as multiply } from '../elementwise/arithmetic.ts';
import { apply, checkRank, operandType, show } from '../operand.ts';
import {
  countTrue,
  flattened,
  runningCount,
  sizeOption,
  truePlaces,
  type Sized,
  type Unsized,
} from '../select/count.ts';
import { checkReadable, readCount } from '../readable.ts';
import { foldSegments } from '../select/segment.ts';
import { concat, sliceAxis } from '../../formula/layout.ts';
import { scatterNode } from '../shape/scatter.ts';
import {
  aMatrix,
  CooMatrix,
  CscMatrix,
  CsrMatrix,
  withValues,
  type SparseLayout,
  type SparseMatrix,
} from './formats.ts';

const gather = (b: GraphBuilder, x: Node, places: Node): Node =>
  b.add('gather', [x, places], { axis: 0 }) as Node;

/**
 * The line of each of `count` elements, by the lines' pointers; elements behind the last are behind all lines.
 *
 * @internal
 */
export function linesOf(b: GraphBuilder, pointers: Node, count: number): Node {
  const found = b.add('searchSorted', [pointers, iota(b, [count], 0)], { right: true }) as Node;
  return sub(b, found, 1);
}

/** Where each of `lines` begins among sorted ones, and where the last ends: [lines + 1]. */
function pointersOf(b: GraphBuilder, sorted: Node, lines: number): Node {
  return b.add('searchSorted', [sorted, iota(b, [lines + 1], 0)], { right: false }) as Node;
}

/** Elements sorted by their line: pointers, positions on the other axis, and values. */
function compressed(b: GraphBuilder, line: Node, other: Node, values: Node, lines: number): Node[] {
  const order = orderOf(b, line, 0, false);
  return [pointersOf(b, gather(b, line, order), lines), gather(b, other, order), gather(b, values, order)];
}

const takesMatrix = arg.takes<(matrix: SparseMatrix) => unknown>(['the matrix', aMatrix]);

/**
 * With the row and column of every element.
 *
 * @torch torch.Tensor.to_sparse_coo
 * @example
 * const starts = sn.tensor([0, 2, 3], { dtype: 'i32' });
 * const columns = sn.tensor([0, 2, 1], { dtype: 'i32' });
 * const v = sn.tensor([1, 2, 3]);
 * sn.sparse.toCoo(sn.sparse.csr(starts, columns, v, [2, 3]));
 */
export function toCoo(matrix: SparseMatrix): CooMatrix {
  takesMatrix('toCoo', matrix);
  if (matrix instanceof CooMatrix) return matrix;
  const { values, shape } = matrix;
  const pointers = matrix instanceof CsrMatrix ? matrix.crow : matrix.ccol;
  const line = apply([pointers], (b, node) => linesOf(b, node, values.size));
  if (matrix instanceof CsrMatrix) return new CooMatrix(line, matrix.col, values, shape);
  return new CooMatrix(matrix.row, line, values, shape);
}

/**
 * With compressed rows; columns ascend within a row where they did, or where columns were compressed.
 *
 * @torch torch.Tensor.to_sparse_csr
 * @example
 * const columns = sn.tensor([0, 2, 1], { dtype: 'i32' });
 * const rows = sn.tensor([0, 0, 1], { dtype: 'i32' });
 * const v = sn.tensor([1, 2, 3]);
 * sn.sparse.toCsr(sn.sparse.coo(rows, columns, v, [2, 3]));
 */
export function toCsr(matrix: SparseMatrix): CsrMatrix {
  takesMatrix('toCsr', matrix);
  if (matrix instanceof CsrMatrix) return matrix;
  const { row, col, values, shape } = toCoo(matrix);
  const [crow, columns, sorted] = recordMany([row, col, values], (b, [line, other, elements]) =>
    compressed(b, line!, other!, elements!, shape[0]),
  );
  return new CsrMatrix(crow!, columns!, sorted!, shape);
}

/**
 * With compressed columns; rows ascend within a column where they did, or where rows were compressed.
 *
 * @torch torch.Tensor.to_sparse_csc
 * @example
 * const starts = sn.tensor([0, 2, 3], { dtype: 'i32' });
 * const columns = sn.tensor([0, 2, 1], { dtype: 'i32' });
 * const v = sn.tensor([1, 2, 3]);
 * sn.sparse.toCsc(sn.sparse.csr(starts, columns, v, [2, 3]));
 */
export function toCsc(matrix: SparseMatrix): CscMatrix {
  takesMatrix('toCsc', matrix);
  if (matrix instanceof CscMatrix) return matrix;
  const { row, col, values, shape } = toCoo(matrix);
  const [ccol, rows, sorted] = recordMany([col, row, values], (b, [line, other, elements]) =>
    compressed(b, line!, other!, elements!, shape[1]),
  );
  return new CscMatrix(ccol!, rows!, sorted!, shape);
}

/**
 * Rows as columns: nothing moves.
 *
 * @example
 * const starts = sn.tensor([0, 2, 3], { dtype: 'i32' });
 * const columns = sn.tensor([0, 2, 1], { dtype: 'i32' });
 * const v = sn.tensor([1, 2, 3]);
 * sn.sparse.toDense(sn.sparse.transpose(sn.sparse.csr(starts, columns, v, [2, 3])));
 */
export function transpose(matrix: SparseMatrix): SparseMatrix {
  takesMatrix('sparse.transpose', matrix);
  const [rows, columns] = matrix.shape;
  const { values } = matrix;
  if (matrix instanceof CsrMatrix) return new CscMatrix(matrix.crow, matrix.col, values, [columns, rows]);
  if (matrix instanceof CscMatrix) return new CsrMatrix(matrix.ccol, matrix.row, values, [columns, rows]);
  return new CooMatrix(matrix.col, matrix.row, values, [columns, rows]);
}

const takesScale = arg.takes<(matrix: SparseMatrix, factor: TensorLike) => unknown>(
  ['the matrix', aMatrix],
  ['the factor', anOperand],
);

/**
 * Every element times a number, or a tensor of rank 0.
 *
 * @example
 * const starts = sn.tensor([0, 2, 3], { dtype: 'i32' });
 * const columns = sn.tensor([0, 2, 1], { dtype: 'i32' });
 * const v = sn.tensor([1, 2, 3]);
 * sn.sparse.scale(sn.sparse.csr(starts, columns, v, [2, 3]), 2);
 */
export function scale<M extends SparseMatrix>(matrix: M, factor: TensorLike): M {
  takesScale('scale', matrix, factor);
  if (typeof factor === 'object' && factor.rank !== 0)
    throw new TensorError('E_SHAPE', 'scale', `the factor must have rank 0: ${show(factor)}`);
  return withValues(matrix, multiply(matrix.values, factor));
}

/**
 * The dense matrix: 0 where no element is; those of one place add up.
 *
 * @torch torch.Tensor.to_dense
 * @example
 * const starts = sn.tensor([0, 2, 3], { dtype: 'i32' });
 * const columns = sn.tensor([0, 2, 1], { dtype: 'i32' });
 * const v = sn.tensor([1, 2, 3]);
 * sn.sparse.toDense(sn.sparse.csr(starts, columns, v, [2, 3]));
 */
export function toDense(matrix: SparseMatrix): Tensor {
  takesMatrix('toDense', matrix);
  const { row, col, values, shape } = toCoo(matrix);
  const [rows, columns] = shape;
  return apply([row, col, values], (b, line, place, elements) => {
    const wide = cast(b, elements, wideType(values.dtype));
    const size = rows * columns;
    const flat = add(b, mul(b, line, columns), place);
    const inside = binary(b, 'lt', line, rows);
    const kept = where(b, inside, flat, fullLike(b, flat, size));
    const dense = scatterNode(b, full(b, [size], 0, wide.dtype), kept, wide, 0, 'add');
    return cast(b, reshape(b, dense, shape), values.dtype);
  });
}

/** The format of what is made, compressed rows by default; and its size, where it must be known. */
export type FromDenseOptions = { readonly layout?: SparseLayout } & (Sized | Unsized);

const fromDenseOptions = arg.options<FromDenseOptions>({
  layout: arg.oneOf('csr', 'csc', 'coo'),
  size: sizeOption,
});
const takesFromDense = arg.takes<(x: Tensor, options?: FromDenseOptions) => unknown>(
  ['the operand', aTensor],
  ['options', fromDenseOptions],
);

interface LayoutMatrix {
  readonly csr: CsrMatrix;
  readonly csc: CscMatrix;
  readonly coo: CooMatrix;
}

/** The matrix for a layout; compressed rows where none is named. */
export type MatrixOf<O> = O extends { readonly layout: infer L extends SparseLayout }
  ? LayoutMatrix[L]
  : CsrMatrix;

/** Directly where a size is given, else after one count was read. */
export type FromDense<O> = O extends { readonly size: number } ? MatrixOf<O> : Promise<MatrixOf<O>>;

/**
 * The elements of a dense matrix that are not 0 (NaN is not), row by row, or column by column for
 * compressed columns. Asynchronous unless a `size` is given: then elements beyond it are cut off,
 * and what is missing counts for nothing.
 *
 * @torch torch.Tensor.to_sparse
 * @example
 * const dense = sn.tensor([[1, 0, 2], [0, 3, 0]]);
 * sn.sparse.fromDense(dense);
 */
export function fromDense<const O extends FromDenseOptions = FromDenseOptions>(
  x: Tensor,
  options?: O,
): FromDense<O> {
  takesFromDense('fromDense', x, options);
  checkRank('fromDense', 'the operand', x, 2);
  const { layout = 'csr', size } = options ?? {};
  if (size !== undefined) return pattern(x, layout, size) as FromDense<O>;
  checkReadable('fromDense');
  const count = apply([x], (b, node) => countTrue(b, truth(b, node)));
  return readCount(count).then((found) => pattern(x, layout, found)) as FromDense<O>;
}

function pattern(x: Tensor, layout: SparseLayout, size: number): SparseMatrix {
  const [rows, columns] = x.shape as [number, number];
  const byColumn = layout === 'csc';
  const [lines, width] = byColumn ? [columns, rows] : [rows, columns];
  const [line, other, values] = recordMany([x], (b, [node]) => {
    const turned = byColumn ? (b.add('permute', [node!], { order: [1, 0] }) as Node) : node!;
    const flat = flattened(b, turned);
    const places = truePlaces(b, runningCount(b, truth(b, flat)), size);
    const inside = binary(b, 'lt', places, lines * width);
    const at = width === 0 ? fullLike(b, places, 0) : binary(b, 'div', places, width);
    const rest = width === 0 ? fullLike(b, places, 0) : binary(b, 'mod', places, width);
    return [
      where(b, inside, at, fullLike(b, at, lines)),
      where(b, inside, rest, fullLike(b, rest, 0)),
      gather(b, flat, places),
    ];
  });
  const shape = [rows, columns] as const;
  // Elements that are missing are zeros behind the last row.
  if (layout === 'coo') return new CooMatrix(line!, other!, values!, shape);
  const pointers = apply([line!], (b, node) => pointersOf(b, node, lines));
  return byColumn
    ? new CscMatrix(pointers, other!, values!, shape)
    : new CsrMatrix(pointers, other!, values!, shape);
}

const takesCoalesce = arg.takes<(matrix: CooMatrix, options?: Sized | Unsized) => unknown>(
  ['the matrix', aMatrix as arg.Kind<CooMatrix>],
  ['options', arg.options<Sized | Unsized>({ size: sizeOption })],
);

/**
 * The same matrix with one element a place, sorted by row and column. Asynchronous unless a `size`
 * is given: then elements that are missing are zeros behind the last row.
 *
 * @torch torch.Tensor.coalesce
 * @example
 * const columns = sn.tensor([0, 2, 1], { dtype: 'i32' });
 * const rows = sn.tensor([0, 0, 1], { dtype: 'i32' });
 * const v = sn.tensor([1, 2, 3]);
 * sn.sparse.coalesce(sn.sparse.coo(rows, columns, v, [2, 3]));
 */
export function coalesce(matrix: CooMatrix, options: Sized): CooMatrix;
export function coalesce(matrix: CooMatrix, options?: Unsized): Promise<CooMatrix>;
export function coalesce(matrix: CooMatrix, options: Sized | Unsized = {}): CooMatrix | Promise<CooMatrix> {
  takesCoalesce('coalesce', matrix, options);
  if (!(matrix instanceof CooMatrix))
    throw new TensorError('E_VALUE', 'coalesce', 'compressed formats have an order', 'toCoo(matrix)');
  operandType('coalesce', [matrix.values], 'number');
  const { size } = options;
  if (size !== undefined) return merged(matrix, size);
  if (matrix.values.size === 0) return Promise.resolve(matrix);
  checkReadable('coalesce');
  const count = apply([matrix.row, matrix.col], (b, row, col) =>
    reduce(b, 'sum', cast(b, placesInOrder(b, row, col).begins, 'i32'), [0]),
  );
  return readCount(count).then((found) => merged(matrix, found));
}

/** Elements by row and column, and whether each stands at another place than the one before. */
function placesInOrder(
  b: GraphBuilder,
  row: Node,
  col: Node,
): { readonly order: Node; readonly begins: Node } {
  const byColumn = orderOf(b, col, 0, false);
  const order = gather(b, byColumn, orderOf(b, gather(b, row, byColumn), 0, false));
  const count = dims(row)[0]!;
  const differs = [row, col].map((place) => {
    const sorted = gather(b, place, order);
    return binary(b, 'ne', sliceAxis(b, sorted, 0, 1, count - 1), sliceAxis(b, sorted, 0, 0, count - 1));
  });
  const begins = concat(b, [full(b, [1], 1, 'bool'), binary(b, 'or', differs[0]!, differs[1]!)], 0);
  return { order, begins };
}

function merged({ row, col, values, shape }: CooMatrix, size: number): CooMatrix {
  if (values.size === 0) {
    const filled = (value: number, dtype: DType): Tensor =>
      apply([values], (b) => full(b, [size], value, dtype));
    return new CooMatrix(filled(shape[0], 'i32'), filled(0, 'i32'), filled(0, values.dtype), shape);
  }
  const [rows, columns, sums] = recordMany([row, col, values], (b, [line, place, elements]) => {
    const { order, begins } = placesInOrder(b, line!, place!);
    const starts = truePlaces(b, runningCount(b, begins), size + 1);
    const firsts = sliceAxis(b, starts, 0, 0, size);
    const inside = binary(b, 'lt', firsts, values.size);
    const named = (index: Node, last: number): Node => {
      const found = gather(b, gather(b, index, order), firsts);
      return where(b, inside, found, fullLike(b, found, last));
    };
    const wide = cast(b, gather(b, elements!, order), wideType(values.dtype));
    return [
      named(line!, shape[0]),
      named(place!, 0),
      cast(b, foldSegments(b, wide, starts, 0, 'add', 0), values.dtype),
    ];
  });
  return new CooMatrix(rows!, columns!, sums!, shape);
}
