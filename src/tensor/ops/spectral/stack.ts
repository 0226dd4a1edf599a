// Matrices as graph nodes: stacks [count, rows, columns], whatever leading axes a tensor has.

import { TensorError } from '../../../errors.ts';
import {
  binary,
  broadcast,
  cast,
  complex,
  div,
  fullLike,
  imag,
  mul,
  real,
  reduceKeep,
  reshape,
  unary,
  where,
} from '../../../ir/build.ts';
import { adjoint, onDiagonal, product as productOfTwo, spread } from '../../../ir/matrix.ts';
import { isComplex, partType } from '../../../ir/dtype.ts';
import { dims, type GraphBuilder, type Node } from '../../../ir/graph.ts';
import { expectTensor } from '../../expect.ts';
import type { Tensor } from '../../tensor.ts';
import * as formula from '../../formula/elementwise.ts';
import { show } from '../operand.ts';
import { diagonalOf } from '../../formula/layout.ts';

/** Requires matrices, square ones where that is wanted, of floats that have a decomposition here. @internal */
export function checkMatrices(op: string, x: Tensor, shape: 'any' | 'square' = 'any'): void {
  expectTensor(op, 'the operand', x);
  const part = partType(x.dtype);
  if (part !== 'f32' && part !== 'f64')
    throw new TensorError('E_DTYPE', op, `expects f32, f64, c64 or c128: ${show(x)}`, ".cast('f32')");
  if (x.rank < 2) throw new TensorError('E_SHAPE', op, `expects matrices: ${show(x)}`);
  if (shape === 'square' && x.shape.at(-1) !== x.shape.at(-2))
    throw new TensorError('E_SHAPE', op, `expects square matrices: ${show(x)}`);
}

/** A formula of real numbers on each part of complex ones. @internal */
export function eachPart(b: GraphBuilder, x: Node, formulaOf: (part: Node) => Node): Node {
  if (!isComplex(x.dtype)) return formulaOf(x);
  return complex(b, formulaOf(real(b, x)), formulaOf(imag(b, x)));
}

/** The product of several. @internal */
export function product(b: GraphBuilder, ...factors: readonly Node[]): Node {
  return factors.reduce((x, y) => productOfTwo(b, x, y));
}

/** Every column times its own real number: `numbers` is [count, columns]. @internal */
export function timesColumns(b: GraphBuilder, x: Node, numbers: Node): Node {
  return eachPart(b, x, (part) => mul(b, part, spread(b, numbers, x, 2)));
}

/** Every row times its own real number: `numbers` is [count, rows]. @internal */
export function timesRows(b: GraphBuilder, x: Node, numbers: Node): Node {
  return eachPart(b, x, (part) => mul(b, part, spread(b, numbers, x, 1)));
}

/** `numbers` [count, n] on the diagonal of matrices [count, n, n], `rest` elsewhere. @internal */
export function withDiagonal(b: GraphBuilder, rest: Node, numbers: Node): Node {
  return where(b, onDiagonal(b, dims(rest)), spread(b, cast(b, numbers, rest.dtype), rest, 1), rest);
}

/** The diagonals, [count, n]. @internal */
export function diagonalsOf(b: GraphBuilder, x: Node): Node {
  return diagonalOf(b, x, 1, 2, 0);
}

/** `numbers[j] − numbers[i]` at row i and column j, and 1 on the diagonal. @internal */
export function gaps(b: GraphBuilder, numbers: Node): Node {
  const [count, n] = dims(numbers) as [number, number];
  const shape = [count, n, n];
  const columns = broadcast(b, reshape(b, numbers, [count, 1, n]), shape);
  const rows = broadcast(b, reshape(b, numbers, [count, n, 1]), shape);
  const difference = binary(b, 'sub', columns, rows);
  return where(b, onDiagonal(b, shape), fullLike(b, difference, 1), difference);
}

/** X − Xᴴ. @internal */
export function skew(b: GraphBuilder, x: Node): Node {
  return binary(b, 'sub', x, adjoint(b, x));
}

/**
 * Matrices whose largest element is about 1, and what they were divided by, [count, 1, 1]. What
 * holds NaN or ±∞ becomes NaN throughout: no result of it means anything.
 *
 * @internal
 */
export function scaledToOne(b: GraphBuilder, x: Node): { readonly x: Node; readonly scale: Node } {
  const size = formula.stopGradient(b, reduceKeep(b, 'max', unary(b, 'abs', x), [1, 2]));
  const nothing = binary(b, 'eq', size, 0);
  const finite = where(b, nothing, fullLike(b, size, 1), size);
  const scale = where(b, formula.isFinite(b, size), finite, fullLike(b, size, NaN));
  const spread = broadcast(b, scale, dims(x));
  return { x: eachPart(b, x, (part) => div(b, part, spread)), scale };
}

/** The distance from 1 to the next number of a dtype. @internal */
export function epsilonOf(dtype: string): number {
  return dtype === 'f64' || dtype === 'c128' ? 2 ** -52 : 2 ** -23;
}

/** Requires numbers. @internal */
export function checkNumbers(op: string, ...operands: readonly Tensor[]): void {
  for (const x of operands)
    if (x.dtype === 'bool')
      throw new TensorError('E_DTYPE', op, `expects numbers, not bool: ${show(x)}`, ".cast('f32')");
}
