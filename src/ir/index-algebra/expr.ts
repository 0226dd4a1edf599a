// The index algebra, in one import. Views never survive into kernels: reshape, permute, slice, pad,
// concat and window are maps from the index where a value is needed to the index where it is
// stored, composed by `substitute` and read at flat row-major offsets. A reshape is
// `delinearize(linearize(index, from), to)`, and a chain of them that leads back gives back the
// very axes it began with. Values: index-algebra/node.ts; laws: index-algebra/simplify.ts;
// conditions: index-algebra/guard.ts.

import { CompilerBug } from '../../errors.ts';
import type { IndexExpr } from './node.ts';
import { divIndex, modIndex, weightedSum } from './simplify.ts';
import { stridesOf } from '../shape.ts';

export {
  atomsOf,
  axisIndex,
  coefficientOf,
  compareIndex,
  constantIndex,
  dynamicIndex,
  evaluateIndex,
  interval,
  largestIndex,
  printIndex,
  showIndex,
  termsOf,
  type Atom,
  type AxisExpr,
  type ConstExpr,
  type DivExpr,
  type DynamicExpr,
  type IndexExpr,
  type Leaf,
  type ModExpr,
  type SumExpr,
  type IndexTerm,
} from './node.ts';
export {
  addIndex,
  divIndex,
  modIndex,
  offsetIndex,
  scaleIndex,
  subIndex,
  substitute,
  weightedSum,
} from './simplify.ts';
export {
  andGuards,
  evaluateGuard,
  printGuard,
  substituteGuard,
  within,
  type Guard,
  type IndexBound,
} from './guard.ts';

/** The flat row-major offset of an index into a shape: Σ index·stride. */
export function linearize(indices: readonly IndexExpr[], shape: readonly number[]): IndexExpr {
  if (indices.length !== shape.length)
    throw new CompilerBug('index', `${indices.length} indices for shape [${shape.join(',')}]`);
  const strides = stridesOf(shape);
  return weightedSum(indices.map((index, axis) => [strides[axis]!, index] as const));
}

/**
 * The index into a shape (no size 0) at a flat row-major offset: (flat // stride) % size, each
 * taken only where needed.
 */
export function delinearize(flat: IndexExpr, shape: readonly number[]): IndexExpr[] {
  const strides = stridesOf(shape);
  return shape.map((size, axis) => modIndex(divIndex(flat, strides[axis]!), size));
}
