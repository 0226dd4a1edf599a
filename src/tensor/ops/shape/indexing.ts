// Indexing: `x.at(2, null, '...', { start: 1, step: 2 }, index)`. Numbers, ranges and new axes are
// views; integer tensors and lists gather. As in PyTorch, several tensors broadcast together; their
// axes stand where the first of them stood if they were neighbours, else in front.

import type { DType } from '../../../ir/dtype.ts';
import { showValue, TensorError } from '../../../errors.ts';
import {
  add,
  binary,
  broadcast,
  cast,
  constant,
  mul,
  permute,
  reshape,
  slice as cut,
  where,
} from '../../../ir/build.ts';
import { dims, type GraphBuilder, type Node } from '../../../ir/graph.ts';
import * as arg from '../../../ir/arguments.ts';
import { normalizeAxis, sizeOf } from '../../../ir/shape.ts';
import { watchRange } from '../../debug.ts';
import { aTensor } from '../../expect.ts';
import { fromHost, record } from '../../record.ts';
import { Tensor } from '../../tensor.ts';
import { iota, narrowIndex, spreadTo } from '../../formula/elementwise.ts';
import { apply, checkInteger, commonShape, show, takesOne } from '../operand.ts';
import { selectRows } from './gather.ts';
import { sliceAxis } from '../../formula/layout.ts';

/**
 * As Python's `start:stop:step`: negative positions count from the end, what leaves the axis is cut
 * off.
 */
export interface Range {
  readonly start?: number | null | undefined;
  readonly stop?: number | null | undefined;
  readonly step?: number | null | undefined;
}

/**
 * One entry of an index: a position (the axis vanishes), a range, `':'` for a whole axis, `null`
 * for a new axis of size 1, `'...'` for all axes not named, or a list or integer tensor of
 * positions.
 */
export type Index = number | null | '...' | ':' | Range | readonly number[] | Tensor;

/**
 * First position, number of positions and step of a range on an axis of `size`, clamped as Python
 * does.
 *
 * @internal
 */
export function resolveRange(
  op: string,
  range: Range,
  size: number,
): [start: number, length: number, step: number] {
  const step = range.step ?? 1;
  const ends = [range.start, range.stop, step];
  if (step === 0 || !ends.every((end) => end === undefined || end === null || Number.isInteger(end))) {
    throw new TensorError(
      'E_INDEX',
      op,
      `a range takes integers and a step that is not 0: ${showRange(range)}`,
    );
  }
  const [low, high] = step > 0 ? [0, size] : [-1, size - 1];
  const clamp = (end: number): number => Math.min(high, Math.max(low, end < 0 ? end + size : end));
  const start =
    range.start === undefined || range.start === null ? (step > 0 ? low : high) : clamp(range.start);
  const stop = range.stop === undefined || range.stop === null ? (step > 0 ? high : low) : clamp(range.stop);
  return [start, Math.max(0, Math.ceil((stop - start) / step)), step];
}

function showRange({ start, stop, step }: Range): string {
  return `{ start: ${showValue(start)}, stop: ${showValue(stop)}, step: ${showValue(step)} }`;
}

/** @internal */
export function resolvePosition(op: string, position: number, size: number, axis: number, x: Tensor): number {
  if ((position as unknown) instanceof Tensor) {
    const hint = 'x.at(…), of whose indices each may be a tensor; stack([…]) makes one of several';
    throw new TensorError('E_INDEX', op, `a position is a number, got ${showValue(position)}`, hint);
  }
  if (!Number.isInteger(position) || position < -size || position >= size) {
    throw new TensorError(
      'E_INDEX',
      op,
      `index ${showValue(position)} is outside axis ${axis} of ${show(x)}`,
    );
  }
  return position < 0 ? position + size : position;
}

/** An end of a range; null and nothing are its own end. */
const rangeEnd: arg.Kind<number | null | undefined> = arg.kind(
  'an integer',
  (value) => value === undefined || value === null || Number.isInteger(value),
);
const takesSlice = arg.takes<typeof slice>(
  ['x', aTensor],
  ['axis', arg.inside()],
  ['the start', rangeEnd],
  ['the stop', rangeEnd],
  ['the step', arg.optional(arg.integer)],
);

/**
 * The range of one axis.
 *
 * @method
 * @jax lax.slice_in_dim
 * @example
 * const x = sn.tensor([[1, 2, 3], [4, 5, 6]]);
 * sn.slice(x, 1, 2, 0, -1);
 */
export function slice<D extends DType>(
  x: Tensor<D>,
  axis: number,
  start?: number | null,
  stop?: number | null,
  step?: number,
): Tensor<D> {
  takesSlice('slice', x, axis, start, stop, step);
  const at = normalizeAxis('slice', axis, x.rank);
  const [first, length, stride] = resolveRange('slice', { start, stop, step }, x.shape[at]!);
  return apply([x], (b, node) => sliceAxis(b, node, at, first, length, stride));
}

/** A position, or an integer tensor of one element that holds it. @internal */
export const aStart: arg.Kind<number | Tensor> = arg.either(aTensor, arg.integer);
const takesNarrow = arg.takes<typeof narrow>(
  ['x', aTensor],
  ['axis', arg.inside()],
  ['the start', aStart],
  ['the length', arg.count(0)],
);

/** The positions of `length` elements from a start that the device knows, below 0 from the end. @internal */
export function runFrom(b: GraphBuilder, start: Node, size: number, length: number): Node {
  const place = reshape(b, cast(b, narrowIndex(b, start), 'i32'), []);
  const first = where(b, binary(b, 'lt', place, 0), add(b, place, size), place);
  return add(b, broadcast(b, first, [length]), iota(b, [length], 0));
}

/** A start on the device must be one integer, and is watched. @internal */
export function checkStart(op: string, x: Tensor, axis: number, start: Tensor, length: number): void {
  checkInteger(op, 'the start', start);
  if (start.size !== 1) throw new TensorError('E_SHAPE', op, `the start must be one element: ${show(start)}`);
  const size = x.shape[axis]!;
  if (length > size)
    throw new TensorError('E_INDEX', op, `${length} elements leave axis ${axis} of ${show(x)}`);
  watchRange(op, 'start', start, -size, size - length + 1, `axis ${axis} of ${show(x)}, less ${length}`);
}

/**
 * `length` elements of an axis from `start`; all of them must be there.
 *
 * @method
 * @jax lax.dynamic_slice_in_dim
 * @example
 * const x = sn.tensor([[1, 2, 3], [4, 5, 6]]);
 * sn.narrow(x, 1, 1, 2);
 */
export function narrow<D extends DType>(
  x: Tensor<D>,
  axis: number,
  start: number | Tensor,
  length: number,
): Tensor<D> {
  takesNarrow('narrow', x, axis, start, length);
  const at = normalizeAxis('narrow', axis, x.rank);
  if (typeof start !== 'number') {
    checkStart('narrow', x, at, start, length);
    return apply([x, start], (b, node, place) =>
      selectRows(b, node, runFrom(b, place, x.shape[at]!, length), at),
    );
  }
  const size = x.shape[at]!;
  const from = start < 0 ? start + size : start;
  if (from < 0 || from + length > size) {
    throw new TensorError(
      'E_INDEX',
      'narrow',
      `[${start}, ${start + length}) leaves axis ${axis} of ${show(x)}`,
    );
  }
  return apply([x], (b, node) => sliceAxis(b, node, at, from, length));
}

const takesSelect = arg.takes<typeof select>(
  ['x', aTensor],
  ['axis', arg.inside()],
  ['the index', arg.inside()],
);

/**
 * One position of an axis; the axis vanishes.
 *
 * @method
 * @jax lax.index_in_dim
 * @example
 * const x = sn.tensor([[1, 2, 3], [4, 5, 6]]);
 * sn.select(x, 1, 2);
 */
export function select<D extends DType>(x: Tensor<D>, axis: number, index: number): Tensor<D> {
  takesSelect('select', x, axis, index);
  const at = normalizeAxis('select', axis, x.rank);
  const position = resolvePosition('select', index, x.shape[at]!, at, x);
  const left = x.shape.filter((_, i) => i !== at);
  return apply([x], (b, node) => reshape(b, sliceAxis(b, node, at, position, 1), left));
}

/**
 * What an index does to x: one slice, then a shape without selected and with new axes, then tensors
 * on axes of that.
 *
 * @internal
 */
export interface IndexPlan {
  readonly start: number[];
  readonly size: number[];
  readonly step: number[];
  readonly shape: number[];
  readonly gathers: { readonly axis: number; readonly index: Tensor }[];
  /** What the tensors broadcast to. */
  readonly common: readonly number[];
}

function checkIndex(op: string, entry: Index): void {
  const isFine =
    entry === null ||
    entry === ':' ||
    entry === '...' ||
    typeof entry === 'number' ||
    entry instanceof Tensor ||
    Array.isArray(entry) ||
    (arg.isPlainObject(entry) && Object.keys(entry).every((key) => ['start', 'stop', 'step'].includes(key)));
  if (isFine) return;
  const known = "a number, { start, stop, step }, ':', '...', null, a list or a tensor of integers";
  throw new TensorError('E_INDEX', op, `${showValue(entry)} is no index`, known);
}

function isRange(entry: Index): entry is Range {
  return typeof entry === 'object' && entry !== null && !Array.isArray(entry) && !(entry instanceof Tensor);
}

/** The entries with `'...'` written out, and with whole axes for those not named. */
function spell(op: string, x: Tensor, indices: readonly Index[]): Index[] {
  for (const entry of indices) checkIndex(op, entry);
  const dots = indices.filter((entry) => entry === '...').length;
  if (dots > 1) throw new TensorError('E_INDEX', op, "'...' stands for all other axes: it can appear once");
  const used = indices.filter((entry) => entry !== null && entry !== '...').length;
  if (used > x.rank) throw new TensorError('E_INDEX', op, `${used} indices for ${show(x)}`);
  const rest = new Array<Index>(x.rank - used).fill(':');
  const spelled = indices.flatMap((entry) => (entry === '...' ? rest : [entry]));
  return dots === 1 ? spelled : [...spelled, ...rest];
}

/** What an index of the operation `op` reads, or writes, of x. @internal */
export function plan(op: string, x: Tensor, indices: readonly Index[]): IndexPlan {
  const out: Omit<IndexPlan, 'common'> = { start: [], size: [], step: [], shape: [], gathers: [] };
  for (const entry of spell(op, x, indices)) {
    if (entry === null) {
      out.shape.push(1);
      continue;
    }
    const axis = out.size.length;
    const size = x.shape[axis]!;
    const [start, length, step] =
      typeof entry === 'number'
        ? [resolvePosition(op, entry, size, axis, x), 1, 1]
        : resolveRange(op, isRange(entry) ? entry : {}, size);
    out.start.push(length === 0 ? 0 : start);
    out.size.push(length);
    out.step.push(step);
    if (entry instanceof Tensor || Array.isArray(entry)) {
      out.gathers.push({
        axis: out.shape.length,
        index: positions(op, entry as Tensor | readonly number[], size, axis, x),
      });
    }
    if (typeof entry !== 'number') out.shape.push(length);
  }
  const tensors = out.gathers.map(({ index }) => index);
  return { ...out, common: commonShape(op, tensors) };
}

function positions(
  op: string,
  entry: Tensor | readonly number[],
  size: number,
  axis: number,
  x: Tensor,
): Tensor {
  if (!(entry instanceof Tensor)) {
    const list = Array.from(entry, (position) => resolvePosition(op, position, size, axis, x));
    return fromHost(Int32Array.from(list), [list.length], 'i32');
  }
  if (entry.dtype === 'bool') {
    throw new TensorError(
      'E_INDEX',
      op,
      `a mask selects a number of elements that only its data knows: ${show(entry)}`,
      'await maskedAt(x, mask), where(mask, x, 0), or maskedFill',
    );
  }
  checkInteger(op, 'an index', entry);
  return entry;
}

/**
 * Elements, slices and gathers of x, one entry per axis; see `Index`.
 *
 * @method
 * @jax jax.Array.at
 * @example
 * const x = sn.tensor([[1, 2, 3], [4, 5, 6]]);
 * sn.at(x, [0, -1], 1);
 */
export function at<D extends DType>(x: Tensor<D>, ...indices: Index[]): Tensor<D> {
  takesOne('at', x);
  const planned = plan('at', x, indices);
  watchPlan('at', x, planned);
  return record([x, ...planned.gathers.map(({ index }) => index)], (b, [node, ...places]) =>
    readPlan(b, node!, places, planned),
  );
}

/** Positions on the device are watched. @internal */
export function watchPlan(op: string, x: Tensor, { shape, gathers }: IndexPlan): void {
  for (const { axis, index } of gathers) {
    const size = shape[axis]!;
    watchRange(op, 'index', index, -size, size, `an axis of ${size} of ${show(x)}`);
  }
}

/** What the plan reads of a node in the shape that it was made for; `places` are its tensors. @internal */
export function readPlan(
  b: GraphBuilder,
  x: Node,
  places: readonly Node[],
  { start, size, step, shape, gathers, common }: IndexPlan,
): Node {
  const basic = reshape(b, cut(b, x, start, size, step), shape);
  if (places.length === 0) return basic;
  return gatherAxes(
    b,
    basic,
    gathers.map(({ axis }) => axis),
    places.map((place) => broadcast(b, cast(b, narrowIndex(b, place), 'i32'), common)),
  );
}

/** Some axes of a shape brought together as one, and where it stands among the others. @internal */
export interface Merged {
  readonly before: readonly number[];
  readonly axes: readonly number[];
  readonly after: readonly number[];
}

/** Neighbouring axes are merged where they stand, others in front of all the rest (as PyTorch). @internal */
export function mergedAxes(rank: number, axes: readonly number[]): Merged {
  const neighbours = axes.length - 1 === axes.at(-1)! - axes[0]!;
  const others = Array.from({ length: rank }, (_, axis) => axis).filter((axis) => !axes.includes(axis));
  const before = neighbours ? others.filter((axis) => axis < axes[0]!) : [];
  return { before, axes, after: others.filter((axis) => !before.includes(axis)) };
}

/**
 * Elements at positions given per axis (equal shapes): the axes are merged, the positions made one,
 * and gathered.
 */
function gatherAxes(b: GraphBuilder, x: Node, axes: readonly number[], places: readonly Node[]): Node {
  const shape = dims(x);
  const { before, after } = mergedAxes(shape.length, axes);
  const sizes = (list: readonly number[]): number[] => list.map((axis) => shape[axis]!);
  const merged = sizeOf(sizes(axes));
  const table = reshape(b, permute(b, x, [...before, ...axes, ...after]), [
    ...sizes(before),
    merged,
    ...sizes(after),
  ]);
  const common = dims(places[0]!);
  const count = sizeOf(common);
  const flat = reshape(b, flatPosition(b, sizes(axes), places), [
    ...before.map(() => 1),
    count,
    ...after.map(() => 1),
  ]);
  const spread = broadcast(b, flat, [...sizes(before), count, ...sizes(after)]);
  const found = b.add('gather', [table, spread], { axis: before.length });
  return reshape(b, found, [...sizes(before), ...common, ...sizes(after)]);
}

/**
 * Row-major position of a tuple of positions; −1, which reads 0, when one of several is outside its
 * axis.
 *
 * @internal
 */
export function flatPosition(b: GraphBuilder, sizes: readonly number[], places: readonly Node[]): Node {
  const wrapped = places.map((place, i) =>
    where(b, binary(b, 'lt', place, 0), add(b, place, sizes[i]!), place),
  );
  if (wrapped.length === 1) return wrapped[0]!;
  let inside = spreadTo(b, constant(b, 1, 'bool'), wrapped[0]!);
  let flat = spreadTo(b, constant(b, 0, 'i32'), wrapped[0]!);
  wrapped.forEach((place, i) => {
    const within = binary(
      b,
      'and',
      binary(b, 'le', spreadTo(b, constant(b, 0, 'i32'), place), place),
      binary(b, 'lt', place, sizes[i]!),
    );
    inside = binary(b, 'and', inside, within);
    flat = add(b, mul(b, flat, sizes[i]!), place);
  });
  return where(b, inside, flat, spreadTo(b, constant(b, -1, 'i32'), flat));
}
