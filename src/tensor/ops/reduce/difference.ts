// Differences of neighbours along axes, and areas below sampled curves.

import { TensorError } from '../../../errors.ts';
import * as arg from '../../../ir/arguments.ts';
import { isInexact } from '../../../ir/dtype.ts';
import { checkList, normalizeAxes, normalizeAxis } from '../../../ir/shape.ts';
import { aTensor } from '../../expect.ts';
import { Tensor } from '../../tensor.ts';
import { add, div, mul, sub } from '../elementwise/arithmetic.ts';
import { cast } from '../elementwise/cast.ts';
import { logicalXor } from '../elementwise/compare.ts';
import { show } from '../operand.ts';
import { cat } from '../shape/join.ts';
import { narrow } from '../shape/indexing.ts';
import { reshape } from '../shape/view.ts';
import { sum } from './reduce.ts';
import { cumsum } from './scan.ts';
import type { Axes } from './axes.ts';

export interface DiffOptions {
  /** What is put before x along the axis; nothing by default. */
  readonly prepend?: Tensor;
  /** What is put behind x along the axis; nothing by default. */
  readonly append?: Tensor;
}

const takesDiff = arg.takes<typeof diff>(
  ['x', aTensor],
  ['the order', arg.optional(arg.count(0))],
  ['axis', arg.inside()],
  ['options', arg.options<DiffOptions>({ prepend: aTensor, append: aTensor })],
);

/**
 * Differences of neighbours along an axis, taken `order` times; of bool, whether they differ.
 *
 * @example
 * const v = sn.tensor([1, 2, 4, 3]);
 * sn.diff(v);
 */
export function diff(x: Tensor, order = 1, axis = -1, options: DiffOptions = {}): Tensor {
  takesDiff('diff', x, order, axis, options);
  const at = normalizeAxis('diff', axis, x.rank);
  const { prepend, append } = options;
  const parts = [prepend, x, append].filter((part) => part !== undefined);
  let result = parts.length === 1 ? x : cat(parts, at);
  for (let i = 0; i < order && result.shape[at]! > 0; i++) {
    const [later, earlier] = neighbours(result, at);
    result = result.dtype === 'bool' ? logicalXor(later, earlier) : sub(later, earlier);
  }
  return result;
}

/** All but the first along an axis, and all but the last. */
function neighbours(x: Tensor, axis: number): [later: Tensor, earlier: Tensor] {
  const left = Math.max(0, x.shape[axis]! - 1);
  return [narrow(x, axis, Math.min(1, x.shape[axis]!), left), narrow(x, axis, 0, left)];
}

/** Integers and bool as f32: halves and slopes have fractions. */
const fractional = (x: Tensor): Tensor => (isInexact(x.dtype) ? x : cast(x, 'f32'));

export interface TrapezoidOptions {
  /** Where the values were taken, along the axis; by default `dx` apart. */
  readonly x?: Tensor;
  /** How far apart they were taken, 1 by default. */
  readonly dx?: number;
}

const takesTrapezoid = arg.takes<typeof trapezoid>(
  ['y', aTensor],
  ['axis', arg.inside()],
  ['options', arg.options<TrapezoidOptions>({ x: aTensor, dx: arg.number })],
);

/**
 * The area below values along an axis, by the trapezoidal rule.
 *
 * @torch torch.trapezoid, torch.trapz
 * @example
 * const v = sn.tensor([1, 2, 4, 3]);
 * sn.trapezoid(v);
 */
export function trapezoid(y: Tensor, axis = -1, options: TrapezoidOptions = {}): Tensor {
  takesTrapezoid('trapezoid', y, axis, options);
  const [areas, at] = trapezoids('trapezoid', y, axis, options);
  return sum(areas, at);
}

/**
 * The areas below values up to each of them but the first, by the trapezoidal rule.
 *
 * @example
 * const v = sn.tensor([1, 2, 4, 3]);
 * sn.cumulativeTrapezoid(v);
 */
export function cumulativeTrapezoid(y: Tensor, axis = -1, options: TrapezoidOptions = {}): Tensor {
  takesTrapezoid('cumulativeTrapezoid', y, axis, options);
  const [areas, at] = trapezoids('cumulativeTrapezoid', y, axis, options);
  return cumsum(areas, at);
}

function trapezoids(op: string, y: Tensor, axis: number, options: TrapezoidOptions): [Tensor, number] {
  const at = normalizeAxis(op, axis, y.rank);
  if (options.x !== undefined && options.dx !== undefined)
    throw new TensorError('E_VALUE', op, 'takes x or dx, not both');
  const halved = (areas: Tensor): Tensor => mul(fractional(areas), 0.5);
  if (options.x === undefined) {
    const { dx = 1 } = options;
    const sums = add(...neighbours(fractional(y), at));
    return [dx === 1 ? halved(sums) : mul(halved(sums), dx), at];
  }
  // Between places, integers are added, subtracted and multiplied as such, and wrap, as in PyTorch.
  const sums = add(...neighbours(y.dtype === 'bool' ? fractional(y) : y, at));
  const places = options.x.dtype === 'bool' ? fractional(options.x) : options.x;
  const along = places.rank === 1 ? 0 : at - y.rank + places.rank;
  if (along < 0 || places.shape[along] !== y.shape[at])
    throw new TensorError('E_SHAPE', op, `x does not fit axis ${axis}: ${show(options.x, y)}`);
  const [right, left] = neighbours(places, along);
  const widths = reach(sub(right, left), places.rank === 1 ? at : undefined, y.rank);
  return [halved(mul(sums, widths)), at];
}

/** A vector along axis `at` of tensors of a rank; others broadcast as they are. */
function reach(widths: Tensor, at: number | undefined, rank: number): Tensor {
  if (at === undefined) return widths;
  return reshape(
    widths,
    Array.from({ length: rank }, (_, axis) => (axis === at ? widths.size : 1)),
  );
}

export interface GradientOptions {
  /**
   * How far apart neighbours are: one number, one an axis, or the places as a vector an axis; 1 by
   * default.
   */
  readonly spacing?: number | readonly (number | Tensor)[];
  /** The order of the formula at both ends: 1 (default) or 2. */
  readonly edgeOrder?: 1 | 2;
}

const aSpacing: arg.Kind<number | readonly (number | Tensor)[]> = arg.kind(
  'a number, or a list of numbers and tensors',
  (value) =>
    arg.number.accepts(value) ||
    (Array.isArray(value) && value.every((item) => arg.number.accepts(item) || aTensor.accepts(item))),
);
const anEdgeOrder: arg.Kind<1 | 2> = arg.kind('1 or 2', (value) => value === 1 || value === 2);

const takesGradient = arg.takes<typeof gradient>(
  ['x', aTensor],
  ['axes', arg.inside()],
  ['options', arg.options<GradientOptions>({ spacing: aSpacing, edgeOrder: anEdgeOrder })],
);

/**
 * Slopes of sampled values along each of the axes (all by default): central differences, exact for
 * squares also where samples are not equally far apart, and one-sided ones at the ends.
 *
 * @example
 * const v = sn.tensor([1, 2, 4, 3]);
 * sn.gradient(v);
 */
export function gradient(x: Tensor, axes?: Axes, options: GradientOptions = {}): Tensor[] {
  takesGradient('gradient', x, axes, options);
  const { spacing = 1, edgeOrder = 1 } = options;
  if (axes !== undefined && typeof axes !== 'number') checkList('gradient', 'axes', axes);
  const list =
    axes === undefined
      ? normalizeAxes('gradient', undefined, x.rank)
      : Array.from(typeof axes === 'number' ? [axes] : axes, (axis) =>
          normalizeAxis('gradient', axis, x.rank),
        );
  const steps = typeof spacing === 'number' ? list.map(() => spacing) : spacing;
  if (steps.length !== list.length)
    throw new TensorError('E_VALUE', 'gradient', `expects ${list.length} spacings, got ${steps.length}`);
  const values = fractional(x);
  return list.map((axis, i) => slopes(values, axis, steps[i]!, edgeOrder));
}

function slopes(x: Tensor, axis: number, spacing: number | Tensor, edgeOrder: 1 | 2): Tensor {
  const size = x.shape[axis]!;
  if (size < edgeOrder + 1) {
    const problem = `needs at least ${edgeOrder + 1} values along axis ${axis}: ${show(x)}`;
    throw new TensorError('E_SHAPE', 'gradient', problem);
  }
  // Steps between neighbours, and slopes over them.
  const steps = spacing instanceof Tensor ? stepsOf(spacing, x, axis) : spacing;
  const [later, earlier] = neighbours(x, axis);
  const between = div(sub(later, earlier), steps);
  const part = (from: Tensor, start: number, length: number): Tensor => narrow(from, axis, start, length);
  const count = size - 1;
  const step = (start: number, length: number): Tensor | number =>
    typeof steps === 'number' ? steps : part(steps, start, length);
  const weighted = (start: number, length: number): Tensor => {
    // The slope at the point between two steps: that of the parabola through all three.
    const [before, after] = [part(between, start, length), part(between, start + 1, length)];
    if (typeof steps === 'number') return mul(add(before, after), 0.5);
    const [left, right] = [step(start, length), step(start + 1, length)];
    return div(add(mul(before, right), mul(after, left)), add(left, right));
  };
  // The parabola's slope at an outer point: from the step beside it, and the one behind that.
  const outer = (near: number, far: number): Tensor => {
    const first = part(between, near, 1);
    if (edgeOrder === 1) return first;
    const second = part(between, far, 1);
    if (typeof steps === 'number') return sub(mul(first, 1.5), mul(second, 0.5));
    const [h, k] = [step(near, 1), step(far, 1)];
    return add(first, div(mul(sub(first, second), h), add(h, k)));
  };
  const middle = count > 1 ? [weighted(0, count - 1)] : [];
  return cat([outer(0, 1), ...middle, outer(count - 1, count - 2)], axis);
}

function stepsOf(places: Tensor, x: Tensor, axis: number): Tensor {
  if (places.rank !== 1 || places.size !== x.shape[axis])
    throw new TensorError('E_SHAPE', 'gradient', `places do not fit axis ${axis}: ${show(places, x)}`);
  const [right, left] = neighbours(fractional(places), 0);
  return reach(sub(right, left), axis, x.rank);
}
