// Constant folding: work whose result is known before the program runs. Elementwise ops on rank-0
// constants are evaluated with the interpreter's own scalar functions, so folding cannot change a
// bit; `canonicalise` has brought arithmetic on spread constants to rank 0. Folds over axes are
// answered where all orders of evaluation agree.

import { isFloat, type DType } from '../dtype.ts';
import type { Graph, Node } from '../graph.ts';
import { isElementwise, opNames, type Monoid } from '../ops.ts';
import { combineMonoid, evaluateScalar } from '../interpret/scalar.ts';
import { sizeOf } from '../shape.ts';
import type { Scalar } from '../value.ts';
import { constantOf, held, knownShape, scalarOf, spread, spreadConstant } from './pattern.ts';
import { rule, rulePass, type RewriteRule } from './rules.ts';

const elementwise: readonly RewriteRule[] = [
  rule('elementwise', 'f(c, d) = the value of f at c, d', opNames.filter(isElementwise), (node, b) => {
    if (node.shape.length !== 0) return undefined;
    const values: Scalar[] = [];
    for (const input of node.inputs) {
      const value = constantOf(input);
      if (value === undefined) return undefined;
      values.push(value);
    }
    const value = evaluateScalar(node.op, values, node.inputs.at(-1)!.dtype, node.dtype);
    return spreadConstant(b, value, node.dtype, node.shape);
  }),
  rule('where', 'where(true, x, y) = x; where(false, x, y) = y', 'where', (node) => {
    const condition = constantOf(node.inputs[0]!);
    return condition === undefined ? undefined : node.inputs[condition === 0 ? 2 : 1];
  }),
];

const folds: readonly RewriteRule[] = [
  rule('empty-reduce', 'reduce over an empty axis = identity', 'reduce', (node, b) => {
    const from = knownShape(node.inputs[0]!);
    const { monoid, axes } = node.attrs;
    if (from === undefined || !axes.some((axis) => from[axis] === 0) || isEmpty(node)) return undefined;
    return spreadConstant(b, combineMonoid(monoid, node.dtype).identity, node.dtype, node.shape);
  }),
  rule('empty-dot', 'Σ over an empty axis = 0', 'dot', (node, b) => {
    const empty = node.attrs.lhsContract.some((axis) => node.inputs[0]!.shape[axis] === 0);
    return empty && !isEmpty(node) ? spreadConstant(b, 0, node.dtype, node.shape) : undefined;
  }),
  rule('reduce-constant', 'reduce(spread c) = c ∘ c ∘ …', 'reduce', (node, b) => {
    const from = knownShape(node.inputs[0]!);
    const value = constantOf(node.inputs[0]!);
    if (from === undefined || value === undefined) return undefined;
    const count = sizeOf(node.attrs.axes.map((axis) => from[axis]!));
    const result = foldCopies(node.attrs.monoid, value, count, node.dtype);
    return result === undefined ? undefined : spreadConstant(b, result, node.dtype, node.shape);
  }),
  rule('arg-reduce-spread', 'argReduce(spread a) = 0', 'argReduce', (node, b) =>
    scalarOf(node.inputs[0]!) === undefined ? undefined : spreadConstant(b, 0, 'i32', node.shape),
  ),
  rule('scan-constant', 'scan(spread c) = spread c where c ∘ c = c', 'scan', (node, b) => {
    const value = constantOf(node.inputs[0]!);
    const { monoid, exclusive } = node.attrs;
    if (value === undefined) return undefined;
    const idempotent = foldCopies(monoid, value, 2, node.dtype);
    // An exclusive scan begins with the identity.
    const same = exclusive
      ? Object.is(value, combineMonoid(monoid, node.dtype).identity)
      : Object.is(idempotent, value);
    return same ? spread(b, scalarOf(node.inputs[0]!)!, node.shape) : undefined;
  }),
  rule('iota-one', 'iota along an axis of size 1 = 0', 'iota', (node, b) =>
    node.shape[node.attrs.axis] === 1 ? spreadConstant(b, 0, node.dtype, node.shape) : undefined,
  ),
];

function isEmpty(node: Node): boolean {
  return node.shape.includes(0);
}

/** Integers up to here, and their sums, are exact in a float dtype. */
const exactUpTo: Partial<Record<DType, number>> = { f64: 2 ** 53, f32: 2 ** 24, f16: 2 ** 11, bf16: 2 ** 8 };

/**
 * `count` copies of a value folded, where the order of evaluation and rounding do not matter;
 * undefined elsewhere.
 */
function foldCopies(monoid: Monoid, value: Scalar, count: number, dtype: DType): Scalar | undefined {
  const { identity, combine } = combineMonoid(monoid, dtype);
  if (count === 0) return identity;
  switch (monoid) {
    case 'min':
    case 'max':
    case 'and':
    case 'or':
      return value;
    case 'prod':
      // 0 and 1 stay themselves however often they are multiplied; −0 alternates.
      return Number(value) === 1 || (Number(value) === 0 && !Object.is(value, -0))
        ? combine(identity, value)
        : undefined;
    case 'sum':
      if (!isFloat(dtype)) return held(BigInt(value) * BigInt(count), dtype);
      return sumIsExact(value as number, count, dtype) ? (value as number) * count : undefined;
  }
}

function sumIsExact(value: number, count: number, dtype: DType): boolean {
  return (
    Number.isInteger(value) && !Object.is(value, -0) && Math.abs(value) * count <= (exactUpTo[dtype] ?? 0)
  );
}

/** The rules, in the order they are tried. */
export const foldRules: readonly RewriteRule[] = [...elementwise, ...folds];

/** Replaces expressions of constants by their values. */
export const foldConstants: (graph: Graph) => Graph = rulePass('foldConstants', foldRules);
