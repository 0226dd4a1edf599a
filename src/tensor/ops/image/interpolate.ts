// Images in other sizes. Axes are resized one after another: where an output element lies in the
// input is a formula of its position, so that nothing is uploaded and compiled programs hold no
// tables. Linear and cubic read two and four elements an axis; smoothed ones (`antialias`) and means
// of areas are products with a matrix of weights, which is a formula too.

import { TensorError } from '../../../errors.ts';
import * as arg from '../../../ir/arguments.ts';
import {
  add,
  binary,
  broadcast,
  cast,
  fullLike,
  mul,
  reshape,
  sub,
  unary,
  where,
} from '../../../ir/build.ts';
import { isFloat, type DType } from '../../../ir/dtype.ts';
import { dims, type GraphBuilder, type Node } from '../../../ir/graph.ts';
import { aTensor } from '../../expect.ts';
import type { Tensor } from '../../tensor.ts';
import * as formula from '../../formula/elementwise.ts';
import { apply, checkFloat, perAxis, show, type PerAxis } from '../operand.ts';
import { sliceAxis } from '../../formula/layout.ts';
import { selectRows } from '../shape/gather.ts';
import { averageTo, weightedAxis } from '../window/adaptive.ts';

export interface InterpolateOptions {
  /**
   * Sizes of the spatial axes of the result; either this or `scaleFactor`; by default `scaleFactor`
   * says them.
   */
  readonly size?: PerAxis;
  /** How many times as long each spatial axis becomes, rounded down; by default `size` says it. */
  readonly scaleFactor?: PerAxis;
  /**
   * `nearest` (default), `nearestExact`, `linear` over any number of axes, `cubic`, or `area`. As in
   * PyTorch `bilinear`, `trilinear` and `bicubic` are linear and cubic of images of that many axes.
   */
  readonly mode?:
    | 'nearest'
    | 'nearestExact'
    | 'linear'
    | 'bilinear'
    | 'trilinear'
    | 'cubic'
    | 'bicubic'
    | 'area';
  /** Whether the centres of the outermost elements stay in place; false by default. */
  readonly alignCorners?: boolean;
  /** Smooths what becomes smaller; for linear and cubic. false by default. */
  readonly antialias?: boolean;
  /** Uses the ratio of the sizes in place of the given `scaleFactor`; false by default. */
  readonly recomputeScaleFactor?: boolean;
}

/** Spatial axes that a mode demands, where it does. */
const axesOfMode: Readonly<Record<string, number>> = { bilinear: 2, trilinear: 3, bicubic: 2 };

/** One axis: its size before and after, and elements of the input for each of the result. */
interface Axis {
  readonly axis: number;
  readonly size: number;
  readonly count: number;
  readonly scale: number;
}

const factors: arg.Kind<PerAxis> = {
  accepts: (value) =>
    arg.positive.accepts(value) ||
    (Array.isArray(value) && Array.from<unknown>(value).every((at) => arg.positive.accepts(at))),
  refuse: (op, what, value) => arg.positive.refuse(op, what, value),
};

/** @internal */
export const interpolateOptions: arg.Table<InterpolateOptions> = {
  size: arg.sizes(1),
  scaleFactor: factors,
  mode: arg.oneOf('nearest', 'nearestExact', 'linear', 'bilinear', 'trilinear', 'cubic', 'bicubic', 'area'),
  alignCorners: arg.flag,
  antialias: arg.flag,
  recomputeScaleFactor: arg.flag,
};

const takesInterpolate = arg.takes<typeof interpolate>(
  ['x', aTensor],
  ['options', arg.options<InterpolateOptions>(interpolateOptions)],
);

/** What floats the places of elements are computed in. */
function placeType(dtype: DType): DType {
  return dtype === 'f64' ? 'f64' : 'f32';
}

/** 0, 1, 2… over the output axis, in floats, plus `shift`. */
function outputs(b: GraphBuilder, { count }: Axis, dtype: DType, shift: number): Node {
  const place = cast(b, formula.iota(b, [count], 0), dtype);
  return shift === 0 ? place : add(b, place, shift);
}

/** Where the centre of each output element lies in the input. */
function centres(b: GraphBuilder, at: Axis, dtype: DType, alignCorners: boolean): Node {
  if (alignCorners) return mul(b, outputs(b, at, dtype, 0), at.scale);
  return sub(b, mul(b, outputs(b, at, dtype, 0.5), at.scale), 0.5);
}

/** The elements of an axis at whole places (floats), those outside being the nearest edge. */
function read(b: GraphBuilder, x: Node, at: Axis, place: Node): Node {
  const inside = binary(b, 'min', binary(b, 'max', cast(b, place, 'i32'), 0), at.size - 1);
  return selectRows(b, x, inside, at.axis);
}

function weighted(b: GraphBuilder, x: Node, at: Axis, taps: readonly (readonly [Node, Node])[]): Node {
  return taps
    .map(([place, weight]) => {
      const value = read(b, x, at, place);
      const along = formula.alongAxis(b, cast(b, weight, x.dtype), dims(x).length, at.axis);
      return mul(b, value, broadcast(b, along, dims(value)));
    })
    .reduce((p, q) => add(b, p, q));
}

function linearAxis(b: GraphBuilder, x: Node, at: Axis, alignCorners: boolean): Node {
  const centre = binary(b, 'max', centres(b, at, placeType(x.dtype), alignCorners), 0);
  const base = unary(b, 'floor', centre);
  const t = sub(b, centre, base);
  return weighted(b, x, at, [
    [base, sub(b, 1, t)],
    [add(b, base, 1), t],
  ]);
}

/** Keys' kernel (1981) with its parameter `a`, for |x| ≤ 1 and for 1 < |x| < 2. */
function keys(b: GraphBuilder, a: number): { near: (x: Node) => Node; far: (x: Node) => Node } {
  return {
    near: (x) => add(b, mul(b, mul(b, sub(b, mul(b, x, a + 2), a + 3), x), x), 1),
    far: (x) => sub(b, mul(b, add(b, mul(b, sub(b, mul(b, x, a), 5 * a), x), 8 * a), x), 4 * a),
  };
}

function cubicAxis(b: GraphBuilder, x: Node, at: Axis, alignCorners: boolean): Node {
  const centre = centres(b, at, placeType(x.dtype), alignCorners);
  const base = unary(b, 'floor', centre);
  const t = sub(b, centre, base);
  const rest = sub(b, 1, t);
  const { near } = keys(b, -0.75);
  // Keys' kernel beyond 1, of t and of 1 − t: a·t·(1 − t)² and a·t²·(1 − t).
  const far = (p: Node, q: Node): Node => mul(b, mul(b, mul(b, p, -0.75), q), q);
  return weighted(b, x, at, [
    [sub(b, base, 1), far(t, rest)],
    [base, near(t)],
    [add(b, base, 1), near(rest)],
    [add(b, base, 2), far(rest, t)],
  ]);
}

function nearestAxis(b: GraphBuilder, x: Node, at: Axis, isExact: boolean): Node {
  const { axis, size, count, scale } = at;
  const shape = dims(x);
  const [lead, rest] = [shape.slice(0, axis), shape.slice(axis + 1)];
  if (!isExact && count % size === 0 && scale === size / count) {
    // Each element repeated: a view.
    const open = reshape(b, x, [...lead, size, 1, ...rest]);
    const repeated = broadcast(b, open, [...lead, size, count / size, ...rest]);
    return reshape(b, repeated, [...lead, count, ...rest]);
  }
  if (!isExact && size % count === 0 && scale === size / count)
    return sliceAxis(b, x, axis, 0, count, size / count);
  const place = mul(b, outputs(b, at, placeType(x.dtype), isExact ? 0.5 : 0), scale);
  return read(b, x, at, unary(b, 'floor', place));
}

/** Triangle and Keys' kernel with a = −0.5, spread over the elements that one output stands for. */
function smoothAxis(b: GraphBuilder, x: Node, at: Axis, isCubic: boolean): Node {
  const { count, size, scale } = at;
  const spread = Math.max(1, scale);
  const support = (isCubic ? 2 : 1) * spread;
  const shape = [count, size];
  const dtype = placeType(x.dtype);
  const row = cast(b, formula.iota(b, shape, 0), dtype);
  const column = cast(b, formula.iota(b, shape, 1), dtype);
  const middle = mul(b, add(b, row, 0.5), scale);
  // The elements from ⌊middle − support + ½⌋ up to ⌊middle + support + ½⌋.
  const first = unary(b, 'floor', add(b, sub(b, middle, support), 0.5));
  const until = unary(b, 'floor', add(b, add(b, middle, support), 0.5));
  const isIn = binary(b, 'and', binary(b, 'le', first, column), binary(b, 'lt', column, until));
  const distance = unary(b, 'abs', mul(b, add(b, sub(b, column, middle), 0.5), 1 / spread));
  const zero = fullLike(b, distance, 0);
  const triangle = binary(b, 'max', sub(b, 1, distance), zero);
  const { near, far } = keys(b, -0.5);
  const outer = where(b, binary(b, 'lt', distance, 2), far(distance), zero);
  const kernel = isCubic ? where(b, binary(b, 'le', distance, 1), near(distance), outer) : triangle;
  const weights = where(b, isIn, kernel, zero);
  return weightedAxis(b, x, at.axis, weights);
}

/** Sizes after, and the scale of each axis. */
function axesOf(op: string, x: Tensor, options: InterpolateOptions): Axis[] {
  const { size, scaleFactor, alignCorners = false, recomputeScaleFactor = false } = options;
  const spatial = x.rank - 2;
  if ((size === undefined) === (scaleFactor === undefined)) {
    throw new TensorError('E_VALUE', op, 'needs either size or scaleFactor', '{ scaleFactor: 2 }');
  }
  const given = typeof scaleFactor === 'number' ? new Array<number>(spatial).fill(scaleFactor) : scaleFactor;
  if (given !== undefined && given.length !== spatial) {
    throw new TensorError('E_SHAPE', op, `scaleFactor takes ${spatial} values: [${given.join(',')}]`);
  }
  const counts =
    size === undefined
      ? x.shape.slice(2).map((dim, i) => Math.floor(dim * given![i]!))
      : perAxis(op, 'size', size, spatial, 1);
  return counts.map((count, i): Axis => {
    const axis = i + 2;
    const from = x.shape[axis]!;
    if (count < 1 || from < 1)
      throw new TensorError('E_SHAPE', op, `axis ${axis} would have ${count} elements: ${show(x)}`);
    if (alignCorners) return { axis, size: from, count, scale: count > 1 ? (from - 1) / (count - 1) : 0 };
    const factor = recomputeScaleFactor ? undefined : given?.[i];
    return { axis, size: from, count, scale: factor === undefined ? from / count : 1 / factor };
  });
}

/**
 * [N, C, S…] with its spatial axes resized, to a size or by a factor.
 *
 * @jax jax.image.resize
 * @example
 * const channels = sn.linspace(0, 15, 16).reshape([1, 4, 2, 2]);
 * sn.interpolate(channels, { size: [3, 3], mode: 'linear' });
 */
export function interpolate<D extends DType>(x: Tensor<D>, options: InterpolateOptions = {}): Tensor<D> {
  takesInterpolate('interpolate', x, options);
  const op = 'interpolate';
  const { mode = 'nearest', alignCorners = false, antialias = false } = options;
  const spatial = x.rank - 2;
  if (spatial < 1 || spatial !== (axesOfMode[mode] ?? spatial)) {
    const wanted = axesOfMode[mode];
    const expected = wanted === undefined ? '[N,C,S…]' : `[N,C] and ${wanted} spatial axes for '${mode}'`;
    throw new TensorError('E_SHAPE', op, `expects ${expected}: ${show(x)}`);
  }
  const isNearest = mode === 'nearest' || mode === 'nearestExact';
  const isLinear = mode === 'linear' || mode === 'bilinear' || mode === 'trilinear';
  if (!isNearest) checkFloat(op, x);
  if (alignCorners && (isNearest || mode === 'area'))
    throw new TensorError('E_VALUE', op, `alignCorners is for linear and cubic, not '${mode}'`);
  if (antialias && (isNearest || mode === 'area'))
    throw new TensorError('E_VALUE', op, `antialias is for linear and cubic, not '${mode}'`);
  const axes = axesOf(op, x, options);
  if (mode === 'area') {
    const counts = axes.map(({ count }) => count);
    return apply([x], (b, node) => formula.widened(b, node, (wide) => averageTo(b, wide, counts)));
  }
  const resize = (b: GraphBuilder, node: Node): Node =>
    axes.reduce((out, at) => {
      if (at.size === at.count && at.scale === 1) return out;
      if (isNearest) return nearestAxis(b, out, at, mode === 'nearestExact');
      if (antialias) return smoothAxis(b, out, at, !isLinear);
      return isLinear ? linearAxis(b, out, at, alignCorners) : cubicAxis(b, out, at, alignCorners);
    }, node);
  if (isNearest || !isFloat(x.dtype)) return apply([x], resize);
  return apply([x], (b, node) => formula.widened(b, node, (wide) => resize(b, wide)));
}
