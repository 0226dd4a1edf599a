// Writing into a copy where `x.at(...)` reads: JAX's `x.at[…].set(v)`. Numbers, ranges and new axes
// choose a part by where it stands, which fuses with what reads the copy; integer tensors and lists
// scatter into that part; a mask chooses element by element.

import type { DType } from '../../../ir/dtype.ts';
import { TensorError } from '../../../errors.ts';
import * as arg from '../../../ir/arguments.ts';
import { broadcast, cast, full, reshape, slice, where } from '../../../ir/build.ts';
import { isComplex, partType } from '../../../ir/dtype.ts';
import { dims, type GraphBuilder, type Node } from '../../../ir/graph.ts';
import type { ScatterMode } from '../../../ir/ops.ts';
import { placeSlice } from '../../../autograd/rules-view.ts';
import { anOperand, aTensor } from '../../expect.ts';
import { asTensor, numberOf, record } from '../../record.ts';
import { Tensor, type TensorLike } from '../../tensor.ts';
import { narrowIndex } from '../../formula/elementwise.ts';
import { apply, show } from '../operand.ts';
import { plan, watchPlan, type Index, type IndexPlan } from '../shape/indexing.ts';
import { checkSameType } from '../shape/scatter.ts';
import { checkMask, checkSpread, folded, writeAxes, writtenShape } from './write.ts';

type WriteAt = typeof setAt;

const takesWriteAt = arg.takes<WriteAt>(
  ['the operand', aTensor],
  // What each of them may be is the plan's to say.
  ['the indices', arg.kind('an array of indices', Array.isArray)],
  ['the value', anOperand],
);

function writeAt(
  op: string,
  mode: ScatterMode,
  x: Tensor,
  indices: readonly Index[],
  value: TensorLike,
): Tensor {
  takesWriteAt(op, x, indices, value);
  if (isComplex(x.dtype) && (mode === 'min' || mode === 'max'))
    throw new TensorError('E_DTYPE', op, `complex numbers have no order: ${show(x)}`);
  const values = valueOf(op, x, value);
  const [mask] = indices;
  if (indices.length === 1 && mask instanceof Tensor && mask.dtype === 'bool')
    return writeByMask(op, mode, x, mask, values);
  const planned = plan(op, x, indices);
  watchPlan(op, x, planned);
  const axes = planned.gathers.map(({ axis }) => axis);
  checkSpread(
    op,
    values,
    axes.length === 0 ? planned.shape : writtenShape(planned.shape, axes, planned.common),
  );
  const tensors = planned.gathers.map(({ index }) => index);
  return record([x, values, ...tensors], (b, [node, source, ...indexNodes]) => {
    const part = reshape(b, slice(b, node!, planned.start, planned.size, planned.step), planned.shape);
    const from = cast(b, source!, x.dtype);
    const places = indexNodes.map((index) =>
      broadcast(b, cast(b, narrowIndex(b, index), 'i32'), planned.common),
    );
    const written =
      axes.length === 0
        ? folded(b, part, broadcast(b, from, planned.shape), mode)
        : writeAxes(b, part, axes, places, from, mode);
    return putBack(b, node!, written, planned);
  });
}

/** x with this in place of the part that the plan slices. */
function putBack(b: GraphBuilder, x: Node, part: Node, { start, size, step }: IndexPlan): Node {
  const shape = dims(x);
  const isWhole = size.every((count, axis) => count === shape[axis] && start[axis] === 0 && step[axis]! > 0);
  const laid = reshape(b, part, size);
  if (isWhole) return laid;
  const attrs = { start, size, step };
  const inside = placeSlice(b, full(b, size, 1, 'bool'), shape, attrs);
  return where(b, inside, placeSlice(b, laid, shape, attrs), x);
}

/** A number is a constant of the parts' dtype: complex ones are made of two. */
function valueOf(op: string, x: Tensor, value: TensorLike): Tensor {
  const values = asTensor(value, partType(x.dtype), op);
  if (value instanceof Tensor && numberOf(value) === undefined) checkSameType(op, x, values);
  return values;
}

/** Elements where the mask over leading axes is true, each folded with the values of its place. */
function writeByMask(op: string, mode: ScatterMode, x: Tensor, mask: Tensor, values: Tensor): Tensor {
  checkMask(op, x, mask);
  checkSpread(op, values, x.shape.slice(mask.rank));
  return apply([x, mask, values], (b, node, kept, source) => {
    const column = reshape(b, kept, [...mask.shape, ...x.shape.slice(mask.rank).map(() => 1)]);
    const spread = broadcast(b, cast(b, source, x.dtype), x.shape);
    return where(b, broadcast(b, column, x.shape), folded(b, node, spread, mode), node);
  });
}

/**
 * A copy of x with the value, which broadcasts, where `x.at(...indices)` reads: indices as those of
 * `at`, or one mask over leading axes. Of several values for one place the last one stays; positions
 * of an integer tensor that leave their axis are not written. The value is of x's dtype, or a number.
 *
 * @method
 * @jax jax.Array.at
 * @example
 * const x = sn.tensor([[1, 2, 3], [4, 5, 6]]);
 * const i = sn.tensor([1, 0], { dtype: 'i32' });
 * sn.setAt(x, [i, { start: 1, step: 2 }], 0);
 */
export function setAt<D extends DType>(
  x: Tensor<D>,
  indices: readonly Index[],
  value: TensorLike,
): Tensor<D> {
  return writeAt('setAt', 'set', x, indices, value);
}

/**
 * As `setAt`, adding to what is there: of several values for one place all are added.
 *
 * @method
 * @jax jax.Array.at
 * @example
 * const x = sn.tensor([[1, 2, 3], [4, 5, 6]]);
 * const i = sn.tensor([1, 0], { dtype: 'i32' });
 * const rows = sn.tensor([[7, 8, 9], [1, 1, 1]]);
 * sn.addAt(x, [i], rows);
 */
export function addAt<D extends DType>(
  x: Tensor<D>,
  indices: readonly Index[],
  value: TensorLike,
): Tensor<D> {
  return writeAt('addAt', 'add', x, indices, value);
}

/**
 * As `addAt`, multiplying.
 *
 * @jax jax.Array.at
 * @example
 * const x = sn.tensor([[1, 2, 3], [4, 5, 6]]);
 * sn.mulAt(x, [1], 2);
 */
export function mulAt<D extends DType>(
  x: Tensor<D>,
  indices: readonly Index[],
  value: TensorLike,
): Tensor<D> {
  return writeAt('mulAt', 'mul', x, indices, value);
}

/**
 * As `addAt`, keeping the least.
 *
 * @jax jax.Array.at
 * @example
 * const x = sn.tensor([[1, 2, 3], [4, 5, 6]]);
 * const i = sn.tensor([1, 0], { dtype: 'i32' });
 * const rows = sn.tensor([[7, 8, 9], [1, 1, 1]]);
 * sn.minAt(x, [i], rows);
 */
export function minAt<D extends DType>(
  x: Tensor<D>,
  indices: readonly Index[],
  value: TensorLike,
): Tensor<D> {
  return writeAt('minAt', 'min', x, indices, value);
}

/**
 * As `addAt`, keeping the greatest.
 *
 * @jax jax.Array.at
 * @example
 * const x = sn.tensor([[1, 2, 3], [4, 5, 6]]);
 * const i = sn.tensor([1, 0], { dtype: 'i32' });
 * const rows = sn.tensor([[7, 8, 9], [1, 1, 1]]);
 * sn.maxAt(x, [i], rows);
 */
export function maxAt<D extends DType>(
  x: Tensor<D>,
  indices: readonly Index[],
  value: TensorLike,
): Tensor<D> {
  return writeAt('maxAt', 'max', x, indices, value);
}
