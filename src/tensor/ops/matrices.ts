// Matrices of operands: what an operation of linear algebra may be given, and how axes before the
// last two become a stack of matrices and come back.

import { TensorError } from '../../errors.ts';
import { broadcast, reshape } from '../../ir/build.ts';
import { isComplex } from '../../ir/dtype.ts';
import { dims, type GraphBuilder, type Node } from '../../ir/graph.ts';
import { broadcastShapes, sizeOf, type FixedShape } from '../../ir/shape.ts';
import type { Tensor } from '../tensor.ts';
import { show } from './operand.ts';

/** Throws unless each is a matrix, or a stack of them, of floats or complex numbers, all of one dtype. @internal */
export function checkMatrices(op: string, ...operands: readonly Tensor[]): void {
  for (const x of operands) {
    if (x.dtype !== 'f32' && x.dtype !== 'f64' && !isComplex(x.dtype))
      throw new TensorError('E_DTYPE', op, `expects f32 or f64: ${show(x)}`, ".cast('f32') first");
    if (x.rank < 2)
      throw new TensorError('E_SHAPE', op, `expects matrices, of at least two axes: ${show(x)}`);
  }
  checkOneDType(op, ...operands);
}

/** @internal */
export function checkOneDType(op: string, ...operands: readonly Tensor[]): void {
  if (operands.some(({ dtype }) => dtype !== operands[0]!.dtype))
    throw new TensorError('E_DTYPE', op, `expects one dtype: ${show(...operands)}`, '.cast first');
}

/** Throws unless it is a matrix, or a stack of them, with as many rows as columns. @internal */
export function checkSquare(op: string, x: Tensor): void {
  checkMatrices(op, x);
  const [rows, columns] = sizeOfMatrix(x);
  if (rows !== columns) throw new TensorError('E_SHAPE', op, `expects square matrices: ${show(x)}`);
}

/** Rows and columns. @internal */
export function sizeOfMatrix(x: { readonly shape: FixedShape }): readonly [rows: number, columns: number] {
  return [x.shape.at(-2)!, x.shape.at(-1)!];
}

/** The axes before the last two. @internal */
export function batchOf(x: { readonly shape: FixedShape }): FixedShape {
  return x.shape.slice(0, -2);
}

/** [.., m, n] as [lines, m, n]. @internal */
export function stacked(b: GraphBuilder, x: Node): Node {
  const shape = dims(x);
  return reshape(b, x, [sizeOf(shape.slice(0, -2)), ...shape.slice(-2)]);
}

/** [lines, ..] under the axes of a batch. @internal */
export function unstacked(b: GraphBuilder, x: Node, batch: FixedShape): Node {
  return reshape(b, x, [...batch, ...dims(x).slice(1)]);
}

/** Stacks of two operands whose batches broadcast to one. @internal */
export function stackedTogether(
  b: GraphBuilder,
  x: Node,
  y: Node,
  batch: FixedShape,
): readonly [x: Node, y: Node] {
  const spread = (node: Node): Node => stacked(b, broadcast(b, node, [...batch, ...dims(node).slice(-2)]));
  return [spread(x), spread(y)];
}

/** The batch that two operands broadcast to. @internal */
export function commonBatch(op: string, x: Tensor, y: Tensor): FixedShape {
  return broadcastShapes(op, batchOf(x), batchOf(y));
}
