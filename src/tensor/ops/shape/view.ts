// Views: the same elements under another shape or order of axes. They are index maps in the graph
// and cost nothing; shapes and axis lists are arrays, axes may be negative.

import type { DType } from '../../../ir/dtype.ts';
import { TensorError } from '../../../errors.ts';
import { broadcast, permute as reorder, reshape as reform } from '../../../ir/build.ts';
import * as arg from '../../../ir/arguments.ts';
import { checkList, checkShape, normalizeAxes, normalizeAxis, sizeOf } from '../../../ir/shape.ts';
import { aTensor } from '../../expect.ts';
import type { Tensor } from '../../tensor.ts';
import { apply, checkRank, show, takesOne } from '../operand.ts';

/**
 * The sizes with one −1 replaced by what `size` elements leave for it. Throws E_SHAPE when they do
 * not fit.
 */
function resolve(op: string, given: readonly number[], size: number, seen: string): number[] {
  checkList(op, 'a shape', given);
  const shape = [...given];
  const open = shape.indexOf(-1);
  const known = shape.filter((_, axis) => axis !== open);
  checkShape(op, known);
  const count = sizeOf(known);
  const fits = open < 0 ? count === size : count > 0 && size % count === 0;
  if (!fits) {
    const wanted = open < 0 ? `${count} elements` : `a multiple of ${count}`;
    throw new TensorError('E_SHAPE', op, `[${shape.join(',')}] takes ${wanted}, ${seen} has ${size}`);
  }
  return shape.map((dim, axis) => (axis === open ? size / count : dim));
}

/**
 * The same value as a tensor of its own: what is assigned to one does not change the other.
 *
 * @method
 * @jax jnp.copy
 * @example
 * const x = sn.tensor([[1, 2, 3], [4, 5, 6]]);
 * sn.clone(x);
 */
export function clone<D extends DType>(x: Tensor<D>): Tensor<D> {
  takesOne('clone', x);
  return apply([x], (_, node) => node);
}

const takesReshape = arg.takes<typeof reshape>(['x', aTensor], ['the shape', arg.inside()]);

/**
 * The elements in C-order under another shape; one size may be −1, the rest of the elements.
 *
 * @method
 * @example
 * const x = sn.tensor([[1, 2, 3], [4, 5, 6]]);
 * sn.reshape(x, [3, 2]);
 */
export function reshape<D extends DType>(x: Tensor<D>, shape: readonly number[]): Tensor<D> {
  takesReshape('reshape', x, shape);
  const to = resolve('reshape', shape, x.size, show(x));
  return apply([x], (b, node) => reform(b, node, to));
}

/**
 * PyTorch's other name for `reshape`.
 *
 * @method
 * @jax jnp.reshape
 * @example
 * const x = sn.tensor([[1, 2, 3], [4, 5, 6]]);
 * sn.view(x, [3, 2]);
 */
export function view<D extends DType>(x: Tensor<D>, shape: readonly number[]): Tensor<D> {
  takesReshape('view', x, shape);
  const to = resolve('view', shape, x.size, show(x));
  return apply([x], (b, node) => reform(b, node, to));
}

const takesViewAs = arg.takes<typeof viewAs>(['x', aTensor], ['the other', aTensor]);

/**
 * x in the shape of another tensor of as many elements.
 *
 * @example
 * const v = sn.tensor([1, 2, 3]);
 * const row = sn.tensor([[1, 2, 3]]);
 * sn.viewAs(row, v.unsqueeze(1));
 */
export function viewAs<D extends DType>(x: Tensor<D>, other: Tensor): Tensor<D> {
  takesViewAs('viewAs', x, other);
  const to = resolve('viewAs', other.shape, x.size, show(x));
  return apply([x], (b, node) => reform(b, node, to));
}

const takesFlatten = arg.takes<typeof flatten>(['x', aTensor], ['from', arg.inside()], ['to', arg.inside()]);

/**
 * Axes `from` to `to` (both included; all by default) made one.
 *
 * @method
 * @jax jnp.ravel
 * @example
 * const cube = sn.linspace(0, 7, 8).reshape([2, 2, 2]);
 * sn.flatten(cube, 1);
 */
export function flatten<D extends DType>(x: Tensor<D>, from = 0, to = -1): Tensor<D> {
  takesFlatten('flatten', x, from, to);
  if (x.rank === 0) return apply([x], (b, node) => reform(b, node, [1]));
  const first = normalizeAxis('flatten', from, x.rank);
  const last = normalizeAxis('flatten', to, x.rank);
  if (first > last)
    throw new TensorError('E_AXIS', 'flatten', `axis ${from} comes after axis ${to}: ${show(x)}`);
  const merged = sizeOf(x.shape.slice(first, last + 1));
  return apply([x], (b, node) =>
    reform(b, node, [...x.shape.slice(0, first), merged, ...x.shape.slice(last + 1)]),
  );
}

const takesUnflatten = arg.takes<typeof unflatten>(
  ['x', aTensor],
  ['axis', arg.inside()],
  ['sizes', arg.inside()],
);

/**
 * Axis `axis` split into several; one size may be −1.
 *
 * @method
 * @example
 * const x = sn.tensor([[1, 2, 3], [4, 5, 6]]);
 * sn.unflatten(x, 1, [3, 1]);
 */
export function unflatten<D extends DType>(x: Tensor<D>, axis: number, sizes: readonly number[]): Tensor<D> {
  takesUnflatten('unflatten', x, axis, sizes);
  const at = normalizeAxis('unflatten', axis, x.rank);
  const parts = resolve('unflatten', sizes, x.shape[at]!, `axis ${axis} of ${show(x)}`);
  return apply([x], (b, node) =>
    reform(b, node, [...x.shape.slice(0, at), ...parts, ...x.shape.slice(at + 1)]),
  );
}

const takesPermute = arg.takes<typeof permute>(['x', aTensor], ['order', arg.inside()]);

/**
 * Axes in another order: axis `i` of the result is axis `order[i]` of x.
 *
 * @method
 * @jax jnp.transpose, jnp.permute_dims
 * @example
 * const cube = sn.linspace(0, 7, 8).reshape([2, 2, 2]);
 * sn.permute(cube, [2, 0, 1]);
 */
export function permute<D extends DType>(x: Tensor<D>, order: readonly number[]): Tensor<D> {
  takesPermute('permute', x, order);
  checkList('permute', 'an order of axes', order);
  const axes = Array.from(order, (axis) => normalizeAxis('permute', axis, x.rank));
  if (axes.length !== x.rank || new Set(axes).size !== x.rank) {
    throw new TensorError(
      'E_AXIS',
      'permute',
      `[${order.join(',')}] is no order of the ${x.rank} axes of ${show(x)}`,
    );
  }
  return apply([x], (b, node) => reorder(b, node, axes));
}

const takesTranspose = arg.takes<typeof transpose>(
  ['x', aTensor],
  ['first', arg.inside()],
  ['second', arg.inside()],
);

/**
 * Two axes exchanged; the last two by default.
 *
 * @method
 * @jax jnp.swapaxes
 * @example
 * const x = sn.tensor([[1, 2, 3], [4, 5, 6]]);
 * sn.transpose(x);
 */
export function transpose<D extends DType>(x: Tensor<D>, first = -2, second = -1): Tensor<D> {
  takesTranspose('transpose', x, first, second);
  // The axes of rank 0 are 0 and −1 when they are named.
  const rank = x.rank === 0 && first !== -2 ? 1 : x.rank;
  const [p, q] = [normalizeAxis('transpose', first, rank), normalizeAxis('transpose', second, rank)];
  const order = x.shape.map((_, axis) => (axis === p ? q : axis === q ? p : axis));
  return apply([x], (b, node) => reorder(b, node, order));
}

/**
 * The transposed matrix; rank 0 and 1 stay as they are.
 *
 * @method
 * @jax jnp.transpose, jnp.matrix_transpose
 * @example
 * const x = sn.tensor([[1, 2, 3], [4, 5, 6]]);
 * sn.t(x);
 */
export function t<D extends DType>(x: Tensor<D>): Tensor<D> {
  takesOne('t', x);
  checkRank('t', 'the operand', x, 0, 1, 2);
  return x.rank < 2 ? x : transpose(x);
}

const takesMoveaxis = arg.takes<typeof moveaxis>(
  ['x', aTensor],
  ['from', arg.inside()],
  ['to', arg.inside()],
);

/**
 * Axes `from` moved to the places `to`; the others keep their order.
 *
 * @method
 * @example
 * const cube = sn.linspace(0, 7, 8).reshape([2, 2, 2]);
 * sn.moveaxis(cube, 0, 2);
 */
export function moveaxis<D extends DType>(
  x: Tensor<D>,
  from: number | readonly number[],
  to: number | readonly number[],
): Tensor<D> {
  takesMoveaxis('moveaxis', x, from, to);
  return moved('moveaxis', x, from, to);
}

/** As `moveaxis`, for what is named `op`. @internal */
export function moved(
  op: string,
  x: Tensor,
  from: number | readonly number[],
  to: number | readonly number[],
): Tensor {
  const list = (axes: number | readonly number[]): number[] => {
    if (typeof axes !== 'number') checkList(op, 'axes', axes);
    return Array.from(typeof axes === 'number' ? [axes] : axes, (axis) => normalizeAxis(op, axis, x.rank));
  };
  const [sources, places] = [list(from), list(to)];
  const distinct = new Set(sources).size === sources.length && new Set(places).size === places.length;
  if (sources.length !== places.length || !distinct) {
    throw new TensorError(
      'E_AXIS',
      op,
      `[${sources.join(',')}] cannot move to [${places.join(',')}]: ${show(x)}`,
    );
  }
  const rest = x.shape.map((_, axis) => axis).filter((axis) => !sources.includes(axis));
  const order = x.shape.map((_, axis) => {
    const moved = places.indexOf(axis);
    return moved < 0 ? rest.shift()! : sources[moved]!;
  });
  return apply([x], (b, node) => reorder(b, node, order));
}

/**
 * x repeated along axes of size 1 and new leading axes; −1 keeps a size. No element is copied.
 *
 * @method
 * @jax jnp.broadcast_to
 * @example
 * const row = sn.tensor([[1, 2, 3]]);
 * sn.expand(row, [2, 3]);
 */
export function expand<D extends DType>(x: Tensor<D>, shape: readonly number[]): Tensor<D> {
  return expanded('expand', x, shape);
}

function expanded(op: string, x: Tensor, shape: readonly number[]): Tensor {
  takesReshape(op, x, shape);
  checkList(op, 'a shape', shape);
  const lead = shape.length - x.rank;
  const to = Array.from(shape, (dim, axis) => (dim === -1 && axis >= lead ? x.shape[axis - lead]! : dim));
  checkShape(op, to);
  const fits = lead >= 0 && x.shape.every((dim, axis) => dim === 1 || dim === to[axis + lead]);
  if (!fits) {
    throw new TensorError(
      'E_SHAPE',
      op,
      `${show(x)} does not broadcast to [${shape.join(',')}]`,
      'only axes of size 1 and new leading axes can be repeated',
    );
  }
  return apply([x], (b, node) => broadcast(b, node, to));
}

/**
 * NumPy's name for `expand`.
 *
 * @method
 * @example
 * const row = sn.tensor([[1, 2, 3]]);
 * sn.broadcastTo(row, [2, 3]);
 */
export function broadcastTo<D extends DType>(x: Tensor<D>, shape: readonly number[]): Tensor<D> {
  return expanded('broadcastTo', x, shape);
}

/**
 * x repeated to the shape of another tensor.
 *
 * @method
 * @example
 * const x = sn.tensor([[1, 2, 3], [4, 5, 6]]);
 * const row = sn.tensor([[1, 2, 3]]);
 * sn.expandAs(row, x);
 */
export function expandAs<D extends DType>(x: Tensor<D>, other: Tensor): Tensor<D> {
  takesViewAs('expandAs', x, other);
  return expanded('expandAs', x, other.shape);
}

const takesSqueeze = arg.takes<typeof squeeze>(['x', aTensor], ['axes', arg.inside()]);

/**
 * Without the axes of size 1: all of them, or those named that have it.
 *
 * @method
 * @example
 * const row = sn.tensor([[1, 2, 3]]);
 * sn.squeeze(row);
 */
export function squeeze<D extends DType>(x: Tensor<D>, axes?: number | readonly number[]): Tensor<D> {
  takesSqueeze('squeeze', x, axes);
  const named = normalizeAxes('squeeze', axes, axes === undefined ? x.rank : Math.max(1, x.rank));
  const left = x.shape.filter((dim, axis) => dim !== 1 || !named.includes(axis));
  return apply([x], (b, node) => reform(b, node, left));
}

const takesUnsqueeze = arg.takes<typeof unsqueeze>(['x', aTensor], ['axis', arg.inside()]);

/**
 * With an axis of size 1 put at place `axis` of the result.
 *
 * @method
 * @jax jnp.expand_dims
 * @example
 * const v = sn.tensor([1, 2, 3]);
 * sn.unsqueeze(v, 1);
 */
export function unsqueeze<D extends DType>(x: Tensor<D>, axis: number): Tensor<D> {
  takesUnsqueeze('unsqueeze', x, axis);
  const at = normalizeAxis('unsqueeze', axis, x.rank + 1);
  return apply([x], (b, node) => reform(b, node, [...x.shape.slice(0, at), 1, ...x.shape.slice(at)]));
}

const takesUnfold = arg.takes<typeof unfold>(
  ['x', aTensor],
  ['axis', arg.inside()],
  ['the size', arg.count(1)],
  ['the step', arg.optional(arg.count(1))],
);

/**
 * Overlapping windows of one axis, `step` apart: their elements become a new last axis of length
 * `size`.
 *
 * @example
 * const v = sn.tensor([1, 2, 3]);
 * sn.unfold(v, 0, 2);
 */
export function unfold<D extends DType>(x: Tensor<D>, axis: number, size: number, step = 1): Tensor<D> {
  takesUnfold('unfold', x, axis, size, step);
  const at = normalizeAxis('unfold', axis, Math.max(1, x.rank));
  const sizes = x.rank === 0 ? [1] : x.shape;
  if (size > sizes[at]!) {
    throw new TensorError(
      'E_VALUE',
      'unfold',
      `windows of ${size}, ${step} apart, do not fit axis ${axis} of ${show(x)}`,
    );
  }
  return apply([x], (b, node) => {
    const windows = b.add('window', [reform(b, node, sizes)], { axis: at, size, stride: step, dilation: 1 });
    return x.rank === 0 ? reform(b, windows, [size]) : windows;
  });
}

/**
 * All axes in reverse order.
 *
 * @internal
 * @getter T
 */
export function reversedAxes<D extends DType>(x: Tensor<D>): Tensor<D> {
  return permute(
    x,
    x.shape.map((_, axis) => x.rank - 1 - axis),
  );
}

/**
 * The last two axes exchanged.
 *
 * @internal
 * @getter mT
 */
export function matrixTransposed<D extends DType>(x: Tensor<D>): Tensor<D> {
  return transpose(x);
}
