// Comparisons, logic, bits, and selection by a condition. Comparisons give bool; with NaN only `ne`
// is true.

import type { Common } from '../operand.ts';
import { TensorError } from '../../../errors.ts';
import { binary, cast, unary, where as select } from '../../../ir/build.ts';
import { isInexact, type DType } from '../../../ir/dtype.ts';
import type { GraphBuilder, Node } from '../../../ir/graph.ts';
import type { BinaryOp } from '../../../ir/ops.ts';
import { expectOperand, expectTensor } from '../../expect.ts';
import type { Tensor, TensorLike } from '../../tensor.ts';
import * as formula from '../../formula/elementwise.ts';
import {
  apply,
  combine,
  fit,
  resultType,
  show,
  takesOne,
  type Binary,
  type Comparison,
  type Predicate,
} from '../operand.ts';

/* @__NO_SIDE_EFFECTS__ */
function comparison(name: string, op: 'eq' | 'ne' | 'lt' | 'le', swap = false): Comparison {
  const isOrdered = op === 'lt' || op === 'le';
  return (x, y) =>
    combine(name, [x, y], isOrdered ? 'ordered' : 'any', (b, p, q) => {
      const [left, right] = [p, q].map((node) =>
        isOrdered && node.dtype === 'bool' ? cast(b, node, 'i32') : node,
      ) as [Node, Node];
      return swap ? binary(b, op, right, left) : binary(b, op, left, right);
    });
}

/**
 * x = y.
 *
 * @method
 * @jax jnp.equal
 * @example
 * const x = sn.tensor([[1, -2, 3], [0.5, 4, -1]]);
 * const y = sn.tensor([[2, 3, 1], [1, 5, 4]]);
 * sn.eq(x, y);
 */
export const eq: Comparison = comparison('eq', 'eq');
/**
 * x ≠ y.
 *
 * @method
 * @jax jnp.not_equal
 * @example
 * const x = sn.tensor([[1, -2, 3], [0.5, 4, -1]]);
 * const y = sn.tensor([[2, 3, 1], [1, 5, 4]]);
 * sn.ne(x, y);
 * @example <caption>number</caption>
 * const x = sn.tensor([[1, -2, 3], [0.5, 4, -1]]);
 * sn.ne(x, 0.5);
 */
export const ne: Comparison = comparison('ne', 'ne');
/**
 * x < y.
 *
 * @method
 * @jax jnp.less
 * @example
 * const x = sn.tensor([[1, -2, 3], [0.5, 4, -1]]);
 * const y = sn.tensor([[2, 3, 1], [1, 5, 4]]);
 * sn.lt(x, y);
 */
export const lt: Comparison = comparison('lt', 'lt');
/**
 * x ≤ y.
 *
 * @method
 * @jax jnp.less_equal
 * @example
 * const x = sn.tensor([[1, -2, 3], [0.5, 4, -1]]);
 * const y = sn.tensor([[2, 3, 1], [1, 5, 4]]);
 * sn.le(x, y);
 */
export const le: Comparison = comparison('le', 'le');
/**
 * x > y.
 *
 * @method
 * @jax jnp.greater
 * @example
 * const x = sn.tensor([[1, -2, 3], [0.5, 4, -1]]);
 * const y = sn.tensor([[2, 3, 1], [1, 5, 4]]);
 * sn.gt(x, y);
 */
export const gt: Comparison = comparison('gt', 'lt', true);
/**
 * x ≥ y.
 *
 * @method
 * @jax jnp.greater_equal
 * @example
 * const x = sn.tensor([[1, -2, 3], [0.5, 4, -1]]);
 * const y = sn.tensor([[2, 3, 1], [1, 5, 4]]);
 * sn.ge(x, y);
 */
export const ge: Comparison = comparison('ge', 'le', true);

/* @__NO_SIDE_EFFECTS__ */
function predicate(op: string, make: (b: GraphBuilder, x: Node) => Node): Predicate {
  return (x) => {
    takesOne(op, x);
    return apply([x], make);
  };
}

/**
 * true where NaN; all false for integers.
 *
 * @method
 * @example
 * const edge = sn.tensor([NaN, Infinity, -Infinity, 1]);
 * sn.isNan(edge);
 */
export const isNan: Predicate = predicate('isNan', formula.isNan);
/**
 * true where +∞ or −∞.
 *
 * @method
 * @example
 * const edge = sn.tensor([NaN, Infinity, -Infinity, 1]);
 * sn.isInf(edge);
 */
export const isInf: Predicate = predicate('isInf', formula.isInf);
/**
 * true where neither NaN nor ±∞.
 *
 * @method
 * @example
 * const edge = sn.tensor([NaN, Infinity, -Infinity, 1]);
 * sn.isFinite(edge);
 */
export const isFinite: Predicate = predicate('isFinite', formula.isFinite);

/* @__NO_SIDE_EFFECTS__ */
function logical(name: string, op: 'and' | 'or' | 'xor'): Comparison {
  return (x, y) =>
    fit(
      name,
      [x, y],
      (value) => resultType([value]),
      (b, p, q) => binary(b, op, formula.truth(b, p), formula.truth(b, q)),
    );
}

/**
 * Both ≠ 0.
 *
 * @method
 * @example
 * const x = sn.tensor([[1, -2, 3], [0.5, 4, -1]]);
 * const y = sn.tensor([[2, 3, 1], [1, 5, 4]]);
 * sn.logicalAnd(x, y);
 */
export const logicalAnd: Comparison = logical('logicalAnd', 'and');
/**
 * One or both ≠ 0.
 *
 * @method
 * @example
 * const x = sn.tensor([[1, -2, 3], [0.5, 4, -1]]);
 * const y = sn.tensor([[2, 3, 1], [1, 5, 4]]);
 * sn.logicalOr(x, y);
 */
export const logicalOr: Comparison = logical('logicalOr', 'or');
/**
 * Exactly one ≠ 0.
 *
 * @method
 * @example
 * const x = sn.tensor([[1, -2, 3], [0.5, 4, -1]]);
 * const y = sn.tensor([[2, 3, 1], [1, 5, 4]]);
 * sn.logicalXor(x, y);
 */
export const logicalXor: Comparison = logical('logicalXor', 'xor');
/**
 * true where x = 0.
 *
 * @method
 * @example
 * const x = sn.tensor([[1, -2, 3], [0.5, 4, -1]]);
 * sn.logicalNot(x);
 */
export const logicalNot: Predicate = predicate('logicalNot', (b, node) =>
  unary(b, 'not', formula.truth(b, node)),
);

/* @__NO_SIDE_EFFECTS__ */
function bitwise(name: string, op: BinaryOp, allowsBool: boolean): Binary {
  return (x, y) => {
    for (const operand of [x, y]) expectOperand(name, operand);
    const dtype = resultType([x, y]);
    if (isInexact(dtype) || (dtype === 'bool' && !allowsBool)) {
      const wanted = allowsBool ? 'integers or bool' : 'integers';
      throw new TensorError('E_DTYPE', name, `expects ${wanted}: ${show(x, y)}`, ".cast('i32')");
    }
    return combine(name, [x, y], 'any', (b, p, q) => binary(b, op, p, q));
  };
}

/**
 * The bits set in both; on bool, logical and.
 *
 * @method
 * @example
 * const i = sn.tensor([6, 3, 1], { dtype: 'i32' });
 * const j = sn.tensor([3, 1, 2], { dtype: 'i32' });
 * sn.bitwiseAnd(i, j);
 */
export const bitwiseAnd: Binary = bitwise('bitwiseAnd', 'and', true);
/**
 * The bits set in one or both; on bool, logical or.
 *
 * @method
 * @example
 * const i = sn.tensor([6, 3, 1], { dtype: 'i32' });
 * const j = sn.tensor([3, 1, 2], { dtype: 'i32' });
 * sn.bitwiseOr(i, j);
 */
export const bitwiseOr: Binary = bitwise('bitwiseOr', 'or', true);
/**
 * The bits set in exactly one; on bool, logical xor.
 *
 * @method
 * @example
 * const i = sn.tensor([6, 3, 1], { dtype: 'i32' });
 * const j = sn.tensor([3, 1, 2], { dtype: 'i32' });
 * sn.bitwiseXor(i, j);
 */
export const bitwiseXor: Binary = bitwise('bitwiseXor', 'xor', true);
/**
 * x·2^y, low bits kept; 0 when y is negative or not less than the width.
 *
 * @method
 * @jax jnp.bitwise_left_shift, jnp.left_shift
 * @example
 * const i = sn.tensor([6, 3, 1], { dtype: 'i32' });
 * const j = sn.tensor([3, 1, 2], { dtype: 'i32' });
 * sn.bitwiseLeftShift(i, j);
 */
export const bitwiseLeftShift: Binary = bitwise('bitwiseLeftShift', 'shl', false);
/**
 * Shifts right, keeping the sign; an out-of-range count leaves −1 or 0.
 *
 * @method
 * @jax jnp.bitwise_right_shift, jnp.right_shift
 * @example
 * const i = sn.tensor([6, 3, 1], { dtype: 'i32' });
 * const j = sn.tensor([3, 1, 2], { dtype: 'i32' });
 * sn.bitwiseRightShift(i, j);
 */
export const bitwiseRightShift: Binary = bitwise('bitwiseRightShift', 'shr', false);

/**
 * All bits flipped; on bool, logical not.
 *
 * @method
 * @jax jnp.bitwise_not, jnp.bitwise_invert, jnp.invert
 * @example
 * const i = sn.tensor([6, 3, 1], { dtype: 'i32' });
 * sn.bitwiseNot(i);
 */
export function bitwiseNot<D extends DType>(x: Tensor<D>): Tensor<D> {
  takesOne('bitwiseNot', x);
  if (isInexact(x.dtype)) {
    throw new TensorError('E_DTYPE', 'bitwiseNot', `expects integers or bool: ${show(x)}`, ".cast('i32')");
  }
  return apply([x], (b, node) => unary(b, 'not', node));
}

function checkCondition(op: string, what: string, condition: Tensor): void {
  expectTensor(op, `the ${what}`, condition);
  if (condition.dtype !== 'bool') {
    throw new TensorError('E_DTYPE', op, `the ${what} must be bool: ${show(condition)}`, '.ne(0)');
  }
}

/**
 * x where the condition holds, else y; neither value nor gradient of the side not taken gets
 * through.
 *
 * @method
 * @example
 * const x = sn.tensor([[1, -2, 3], [0.5, 4, -1]]);
 * const y = sn.tensor([[2, 3, 1], [1, 5, 4]]);
 * const mask = sn.tensor([[true, false, true], [false, true, false]], { dtype: 'bool' });
 * sn.where(mask, x, y);
 */
export function where<X extends TensorLike, Y extends TensorLike>(
  condition: Tensor,
  x: X,
  y: Y,
): Tensor<Common<X, Y>> {
  checkCondition('where', 'condition', condition);
  for (const operand of [x, y]) expectOperand('where', operand);
  return selection('where', condition, x, y, resultType([x, y]));
}

/**
 * `value` where the mask holds, else x; the value takes x's dtype.
 *
 * @method
 * @example
 * const x = sn.tensor([[1, -2, 3], [0.5, 4, -1]]);
 * const mask = sn.tensor([[true, false, true], [false, true, false]], { dtype: 'bool' });
 * sn.maskedFill(x, mask, 0);
 */
export function maskedFill<D extends DType>(x: Tensor<D>, mask: Tensor, value: TensorLike): Tensor<D> {
  expectTensor('maskedFill', 'x', x);
  checkCondition('maskedFill', 'mask', mask);
  expectOperand('maskedFill', value);
  return selection('maskedFill', mask, value, x, x.dtype);
}

function selection(op: string, condition: Tensor, x: TensorLike, y: TensorLike, dtype: DType): Tensor {
  return fit(op, [condition, x, y], (_, position) => (position === 0 ? 'bool' : dtype), select);
}
