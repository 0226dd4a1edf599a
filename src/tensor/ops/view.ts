// Views: the same elements under another shape or order of axes. They are index maps in the graph and cost nothing; shapes
// and axis lists are arrays, axes may be negative.

import { TensorError } from '../../errors.ts';
import { broadcast, permute as reorder, reshape as reform } from '../../ir/build.ts';
import { checkList, checkShape, normalizeAxes, normalizeAxis, sizeOf } from '../../ir/shape.ts';
import type { Tensor } from '../tensor.ts';
import { apply, checkRank, show } from './operand.ts';

/** The sizes with one −1 replaced by what `size` elements leave for it. Throws E_SHAPE when they do not fit. */
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

/** The same value as a tensor of its own: what is assigned to one does not change the other. */
export function clone(x: Tensor): Tensor {
  return apply([x], (_, node) => node);
}

/** The elements in C-order under another shape; one size may be −1, the rest of the elements. */
export function reshape(x: Tensor, shape: readonly number[]): Tensor {
  const to = resolve('reshape', shape, x.size, show(x));
  return apply([x], (b, node) => reform(b, node, to));
}

/** PyTorch's other name for `reshape`. */
export function view(x: Tensor, shape: readonly number[]): Tensor {
  const to = resolve('view', shape, x.size, show(x));
  return apply([x], (b, node) => reform(b, node, to));
}

/** x in the shape of another tensor of as many elements. */
export function viewAs(x: Tensor, other: Tensor): Tensor {
  return reshape(x, other.shape);
}

/** Axes `from` to `to` (both included; all by default) made one. */
export function flatten(x: Tensor, from = 0, to = -1): Tensor {
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

/** Axis `axis` split into several; one size may be −1. */
export function unflatten(x: Tensor, axis: number, sizes: readonly number[]): Tensor {
  const at = normalizeAxis('unflatten', axis, x.rank);
  const parts = resolve('unflatten', sizes, x.shape[at]!, `axis ${axis} of ${show(x)}`);
  return apply([x], (b, node) =>
    reform(b, node, [...x.shape.slice(0, at), ...parts, ...x.shape.slice(at + 1)]),
  );
}

/** Axes in another order: axis `i` of the result is axis `order[i]` of x. */
export function permute(x: Tensor, order: readonly number[]): Tensor {
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

/** Two axes exchanged; the last two by default. */
export function transpose(x: Tensor, first = -2, second = -1): Tensor {
  const [p, q] = [normalizeAxis('transpose', first, x.rank), normalizeAxis('transpose', second, x.rank)];
  const order = x.shape.map((_, axis) => (axis === p ? q : axis === q ? p : axis));
  return apply([x], (b, node) => reorder(b, node, order));
}

/** The transposed matrix; rank 0 and 1 stay as they are. */
export function t(x: Tensor): Tensor {
  checkRank('t', 'the operand', x, 0, 1, 2);
  return x.rank < 2 ? x : transpose(x);
}

/** Axes `from` moved to the places `to`; the others keep their order. */
export function moveaxis(
  x: Tensor,
  from: number | readonly number[],
  to: number | readonly number[],
): Tensor {
  const list = (axes: number | readonly number[]): number[] =>
    (typeof axes === 'number' ? [axes] : [...axes]).map((axis) => normalizeAxis('moveaxis', axis, x.rank));
  const [sources, places] = [list(from), list(to)];
  const distinct = new Set(sources).size === sources.length && new Set(places).size === places.length;
  if (sources.length !== places.length || !distinct) {
    throw new TensorError(
      'E_AXIS',
      'moveaxis',
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

/** x repeated along axes of size 1 and new leading axes; −1 keeps a size. No element is copied. */
export function expand(x: Tensor, shape: readonly number[]): Tensor {
  checkList('expand', 'a shape', shape);
  const lead = shape.length - x.rank;
  const to = Array.from(shape, (dim, axis) => (dim === -1 && axis >= lead ? x.shape[axis - lead]! : dim));
  checkShape('expand', to);
  const fits = lead >= 0 && x.shape.every((dim, axis) => dim === 1 || dim === to[axis + lead]);
  if (!fits) {
    throw new TensorError(
      'E_SHAPE',
      'expand',
      `${show(x)} does not broadcast to [${shape.join(',')}]`,
      'only axes of size 1 and new leading axes can be repeated',
    );
  }
  return apply([x], (b, node) => broadcast(b, node, to));
}

/** NumPy's name for `expand`. */
export const broadcastTo: (x: Tensor, shape: readonly number[]) => Tensor = expand;

/** x repeated to the shape of another tensor. */
export function expandAs(x: Tensor, other: Tensor): Tensor {
  return expand(x, other.shape);
}

/** Without the axes of size 1: all of them, or those named that have it. */
export function squeeze(x: Tensor, axes?: number | readonly number[]): Tensor {
  const named = normalizeAxes('squeeze', axes, x.rank);
  const left = x.shape.filter((dim, axis) => dim !== 1 || !named.includes(axis));
  return apply([x], (b, node) => reform(b, node, left));
}

/** With an axis of size 1 put at place `axis` of the result. */
export function unsqueeze(x: Tensor, axis: number): Tensor {
  const at = normalizeAxis('unsqueeze', axis, x.rank + 1);
  return apply([x], (b, node) => reform(b, node, [...x.shape.slice(0, at), 1, ...x.shape.slice(at)]));
}

/** Overlapping windows of one axis, `step` apart: their elements become a new last axis of length `size`. */
export function unfold(x: Tensor, axis: number, size: number, step = 1): Tensor {
  const at = normalizeAxis('unfold', axis, x.rank);
  if (!Number.isInteger(size) || size < 1 || !Number.isInteger(step) || step < 1 || size > x.shape[at]!) {
    throw new TensorError(
      'E_VALUE',
      'unfold',
      `windows of ${size}, ${step} apart, do not fit axis ${axis} of ${show(x)}`,
    );
  }
  return apply([x], (b, node) => b.add('window', [node], { axis: at, size, stride: step, dilation: 1 }));
}
