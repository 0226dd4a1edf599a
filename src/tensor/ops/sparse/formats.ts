// Sparse matrices: the elements that are there, in order, and where they stand. Rows compressed
// (CSR), columns compressed (CSC), or both coordinates of every element (COO). Matrices are trees
// (see tree.ts): compiled functions take and give them, and their values are differentiated.

import { showValue, TensorError } from '../../../errors.ts';
import * as arg from '../../../ir/arguments.ts';
import { reduce, slice, sub } from '../../../ir/build.ts';
import { dims, type GraphBuilder, type Node } from '../../../ir/graph.ts';
import { checkShape, type FixedShape } from '../../../ir/shape.ts';
import { watch, watchRange } from '../../debug.ts';
import { aTensor } from '../../expect.ts';
import type { Tensor } from '../../tensor.ts';
import { TreeNode } from '../../tree.ts';
import { narrowIndex } from '../../formula/elementwise.ts';
import { checkInteger, checkRank, show } from '../operand.ts';
import { cast } from '../elementwise/cast.ts';

/** Rows and columns of a matrix. */
export type MatrixShape = readonly [rows: number, columns: number];

const shapeOf: arg.Kind<MatrixShape> = arg.tupleOf<MatrixShape>(arg.count(0), arg.count(0));

/** Pointers of compressed lines: [lines + 1], from 0 up to the number of elements. */
function checkPointers(op: string, what: string, pointers: Tensor, lines: number, count: number): void {
  checkInteger(op, what, pointers);
  checkRank(op, what, pointers, 1);
  if (pointers.size !== lines + 1) {
    const problem = `${what} must have ${lines + 1} elements: ${show(pointers)}`;
    throw new TensorError('E_SHAPE', op, problem);
  }
  watch(
    op,
    'E_VALUE',
    [pointers],
    (b, [node]) => pointerFacts(b, narrowIndex(b, node!)),
    ([first, last, step]) => {
      if (first === 0 && last === count && step! >= 0) return undefined;
      if (step! < 0) return `${what} must not descend: it falls by ${-Number(step)}`;
      return `${what} must go from 0 to ${count}: it goes from ${first} to ${last}`;
    },
  );
}

/** The first pointer, the last, and the least step between two. */
function pointerFacts(b: GraphBuilder, given: Node): Node[] {
  const pointers = given.dtype === 'i32' ? given : (b.add('cast', [given], { dtype: 'i32' }) as Node);
  const [size] = dims(pointers) as [number];
  const at = (start: number, length: number): Node => slice(b, pointers, [start], [length]);
  const first = reduce(b, 'sum', at(0, 1), [0]);
  const last = reduce(b, 'sum', at(size - 1, 1), [0]);
  if (size < 2) return [first, last, first];
  return [first, last, reduce(b, 'min', sub(b, at(1, size - 1), at(0, size - 1)), [0])];
}

/** Positions of elements on an axis: as many as there are values. */
function checkPlaces(op: string, what: string, places: Tensor, values: Tensor, size: number): void {
  checkInteger(op, what, places);
  checkRank(op, what, places, 1);
  checkRank(op, 'the values', values, 1);
  if (places.size !== values.size) {
    const problem = `one position a value: ${what} ${show(places)}, values ${show(values)}`;
    throw new TensorError('E_SHAPE', op, problem);
  }
  watchRange(op, what, places, 0, size, `an axis of ${size}`);
}

function checkMatrix(op: string, shape: FixedShape): void {
  checkShape(op, shape);
  if (shape.length !== 2)
    throw new TensorError('E_SHAPE', op, `expects rows and columns: ${showValue([...shape])}`);
}

/** Positions are kept as i32. */
const places = (index: Tensor): Tensor => cast(index, 'i32');

/** A matrix whose elements stand row by row: those of row i from `crow[i]` up to `crow[i + 1]`. */
export class CsrMatrix extends TreeNode {
  readonly crow: Tensor;
  readonly col: Tensor;
  readonly values: Tensor;
  readonly shape: MatrixShape;

  constructor(crow: Tensor, col: Tensor, values: Tensor, shape: MatrixShape) {
    super();
    this.crow = crow;
    this.col = col;
    this.values = values;
    this.shape = shape;
  }
}

/** A matrix whose elements stand column by column: those of column j from `ccol[j]` on. */
export class CscMatrix extends TreeNode {
  readonly ccol: Tensor;
  readonly row: Tensor;
  readonly values: Tensor;
  readonly shape: MatrixShape;

  constructor(ccol: Tensor, row: Tensor, values: Tensor, shape: MatrixShape) {
    super();
    this.ccol = ccol;
    this.row = row;
    this.values = values;
    this.shape = shape;
  }
}

/** A matrix of elements with their rows and columns, in any order; those of one place add up. */
export class CooMatrix extends TreeNode {
  readonly row: Tensor;
  readonly col: Tensor;
  readonly values: Tensor;
  readonly shape: MatrixShape;

  constructor(row: Tensor, col: Tensor, values: Tensor, shape: MatrixShape) {
    super();
    this.row = row;
    this.col = col;
    this.values = values;
    this.shape = shape;
  }
}

/** A sparse matrix of any format. */
export type SparseMatrix = CsrMatrix | CscMatrix | CooMatrix;

type Made<M> = (pointers: Tensor, index: Tensor, values: Tensor, shape: MatrixShape) => M;

const takesParts = arg.takes<Made<SparseMatrix>>(
  ['the pointers or rows', aTensor],
  ['the positions', aTensor],
  ['the values', aTensor],
  ['the shape', shapeOf],
);

/**
 * A matrix of compressed rows: pointers [rows + 1], and the column and value of each element.
 *
 * @torch torch.sparse_csr_tensor
 * @example
 * const starts = sn.tensor([0, 2, 3], { dtype: 'i32' });
 * const columns = sn.tensor([0, 2, 1], { dtype: 'i32' });
 * const v = sn.tensor([1, 2, 3]);
 * sn.sparse.toDense(sn.sparse.csr(starts, columns, v, [2, 3]));
 */
export function csr(crow: Tensor, col: Tensor, values: Tensor, shape: MatrixShape): CsrMatrix {
  takesParts('csr', crow, col, values, shape);
  checkMatrix('csr', shape);
  checkPlaces('csr', 'the columns', col, values, shape[1]);
  checkPointers('csr', 'crow', crow, shape[0], values.size);
  return new CsrMatrix(places(crow), places(col), values, [...shape]);
}

/**
 * A matrix of compressed columns: pointers [columns + 1], and the row and value of each element.
 *
 * @torch torch.sparse_csc_tensor
 * @example
 * const down = sn.tensor([0, 1, 2, 3], { dtype: 'i32' });
 * const below = sn.tensor([0, 1, 0], { dtype: 'i32' });
 * const v = sn.tensor([1, 2, 3]);
 * sn.sparse.toDense(sn.sparse.csc(down, below, v, [2, 3]));
 */
export function csc(ccol: Tensor, row: Tensor, values: Tensor, shape: MatrixShape): CscMatrix {
  takesParts('csc', ccol, row, values, shape);
  checkMatrix('csc', shape);
  checkPlaces('csc', 'the rows', row, values, shape[0]);
  checkPointers('csc', 'ccol', ccol, shape[1], values.size);
  return new CscMatrix(places(ccol), places(row), values, [...shape]);
}

/**
 * A matrix of the row, column and value of each element.
 *
 * @torch torch.sparse_coo_tensor
 * @example
 * const columns = sn.tensor([0, 2, 1], { dtype: 'i32' });
 * const rows = sn.tensor([0, 0, 1], { dtype: 'i32' });
 * const v = sn.tensor([1, 2, 3]);
 * sn.sparse.toDense(sn.sparse.coo(rows, columns, v, [2, 3]));
 */
export function coo(row: Tensor, col: Tensor, values: Tensor, shape: MatrixShape): CooMatrix {
  takesParts('coo', row, col, values, shape);
  checkMatrix('coo', shape);
  checkPlaces('coo', 'the rows', row, values, shape[0]);
  checkPlaces('coo', 'the columns', col, values, shape[1]);
  return new CooMatrix(places(row), places(col), values, [...shape]);
}

/** Which of the three classes made a matrix. */
export type SparseLayout = 'csr' | 'csc' | 'coo';

/** @internal */
export function layoutOf(matrix: SparseMatrix): SparseLayout {
  if (matrix instanceof CsrMatrix) return 'csr';
  return matrix instanceof CscMatrix ? 'csc' : 'coo';
}

/** A sparse matrix, of any format. @internal */
export const aMatrix: arg.Kind<SparseMatrix> = arg.kind(
  'a sparse matrix',
  (value) => value instanceof CsrMatrix || value instanceof CscMatrix || value instanceof CooMatrix,
  () => 'sparse.csr(…), sparse.csc(…), sparse.coo(…), sparse.fromDense(…)',
);

/** A matrix with other values at the same places. @internal */
export function withValues<M extends SparseMatrix>(matrix: M, values: Tensor): M {
  const { shape } = matrix;
  if (matrix instanceof CsrMatrix) return new CsrMatrix(matrix.crow, matrix.col, values, shape) as M;
  if (matrix instanceof CscMatrix) return new CscMatrix(matrix.ccol, matrix.row, values, shape) as M;
  const { row, col } = matrix as CooMatrix;
  return new CooMatrix(row, col, values, shape) as M;
}
