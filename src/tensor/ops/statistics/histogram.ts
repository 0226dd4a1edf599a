// Histograms and counts: each element finds its bin, and bins add up what falls into them. Where the
// range comes from the data, it never leaves the device.

import { TensorError } from '../../../errors.ts';
import * as arg from '../../../ir/arguments.ts';
import {
  add,
  binary,
  broadcast,
  cast,
  constant,
  div,
  full,
  fullLike,
  mul,
  reduce,
  reduceKeep,
  reshape,
  sub,
  unary,
  where,
} from '../../../ir/build.ts';
import { isFloat } from '../../../ir/dtype.ts';
import { dims, type GraphBuilder, type Node } from '../../../ir/graph.ts';
import { sizeOf } from '../../../ir/shape.ts';
import { watch } from '../../debug.ts';
import { aTensor } from '../../expect.ts';
import { recordMany } from '../../record.ts';
import { Tensor } from '../../tensor.ts';
import * as formula from '../../formula/elementwise.ts';
import { apply, checkFloat, checkInteger, checkRank, show } from '../operand.ts';
import { flattened, sizeOption, type Sized, type Unsized } from '../select/count.ts';
import { checkReadable, readCount } from '../readable.ts';
import { sliceAxis } from '../../formula/layout.ts';
import { scatterNode } from '../shape/scatter.ts';

/** Values added up by bin; bins outside are dropped. */
function binned(b: GraphBuilder, bin: Node, values: Node, bins: number): Node {
  return scatterNode(b, full(b, [bins], 0, values.dtype), bin, values, 0, 'add');
}

export interface HistcOptions {
  /** 100 by default. */
  readonly bins?: number;
  /** Where bins begin; with `max` equal, from the least to the greatest element; 0 by default. */
  readonly min?: number;
  /** Where bins end, included; 0 by default. */
  readonly max?: number;
}

const takesHistc = arg.takes<typeof histc>(
  ['the operand', aTensor],
  ['options', arg.options<HistcOptions>({ bins: arg.count(1), min: arg.finite, max: arg.finite })],
);

/**
 * How many elements fall into each of equal bins, in x's dtype; others and NaN are not counted.
 *
 * @jax jnp.histogram
 * @example
 * const x = sn.tensor([[3, 1, 2], [1, 5, 1]]);
 * sn.histc(x, { bins: 4, min: 0, max: 4 });
 */
export function histc(x: Tensor, options: HistcOptions = {}): Tensor {
  takesHistc('histc', x, options);
  checkFloat('histc', x);
  const { bins = 100, min = 0, max = 0 } = options;
  if (min > max) throw new TensorError('E_VALUE', 'histc', `min must not be above max: ${min}, ${max}`);
  return apply([x], (b, node) => {
    const wide = cast(b, flattened(b, node), formula.wideType(x.dtype));
    const range = rangeOf(b, wide, min === max ? undefined : [min, max]);
    const [low, high] = widened(b, range, 1);
    const spread = (end: Node): Node => formula.spreadTo(b, end, wide);
    const place = div(b, mul(b, sub(b, wide, spread(low)), bins), spread(sub(b, high, low)));
    const bin = cast(b, unary(b, 'floor', place), 'i32');
    const inside = binary(b, 'and', binary(b, 'le', spread(low), wide), binary(b, 'le', wide, spread(high)));
    const kept = where(b, inside, binary(b, 'min', bin, bins - 1), fullLike(b, bin, bins));
    const counts = binned(b, kept, fullLike(b, kept, 1), bins);
    return cast(b, counts, x.dtype);
  });
}

/** The ends of a flat x, of rank 0; [0, 0] of nothing. */
function rangeOf(b: GraphBuilder, x: Node, given: readonly [number, number] | undefined): [Node, Node] {
  if (given !== undefined) return [constant(b, given[0], x.dtype), constant(b, given[1], x.dtype)];
  if (sizeOf(dims(x)) === 0) return [constant(b, 0, x.dtype), constant(b, 0, x.dtype)];
  return [reduce(b, 'min', x, [0]), reduce(b, 'max', x, [0])];
}

/** A range of nothing taken wider at both ends. */
function widened(b: GraphBuilder, [low, high]: readonly [Node, Node], by: number): [Node, Node] {
  const flat = binary(b, 'eq', low, high);
  return [where(b, flat, sub(b, low, by), low), where(b, flat, add(b, high, by), high)];
}

export interface HistogramOptions {
  /** Where equal bins begin and end; from the least to the greatest element by default. */
  readonly range?: readonly [number, number];
  /** What each element adds to its bin; 1 by default. */
  readonly weight?: Tensor;
  /** Divided by the total and by the widths of the bins; false by default. */
  readonly density?: boolean;
}

const takesHistogram = arg.takes<typeof histogram>(
  ['the operand', aTensor],
  ['bins', arg.either(aTensor, arg.count(1))],
  [
    'options',
    arg.options<HistogramOptions>({
      range: arg.tupleOf<readonly [number, number]>(arg.finite, arg.finite),
      weight: aTensor,
      density: arg.flag,
    }),
  ],
);

/** n + 1 ends of n equal bins, from both ends as `linspace`. */
function equalEdges(b: GraphBuilder, low: Node, high: Node, bins: number): Node {
  const shape = [bins + 1];
  const step = div(b, sub(b, high, low), bins);
  const place = cast(b, formula.iota(b, shape, 0), low.dtype);
  const spread = (end: Node): Node => broadcast(b, end, shape);
  const up = add(b, spread(low), mul(b, place, spread(step)));
  const down = sub(b, spread(high), mul(b, sub(b, fullLike(b, place, bins), place), spread(step)));
  return where(b, binary(b, 'lt', place, (bins + 1) / 2), up, down);
}

/** The bin of each value between ascending edges, the last edge included; as many as bins outside. */
function binOf(b: GraphBuilder, x: Node, edges: Node): Node {
  const bins = dims(edges)[0]! - 1;
  const above = sub(b, b.add('searchSorted', [edges, x], { right: true }) as Node, 1);
  const last = broadcast(b, sliceAxis(b, edges, 0, bins, 1), dims(x));
  const within = where(b, binary(b, 'eq', x, last), fullLike(b, above, bins - 1), above);
  const outside = binary(b, 'or', binary(b, 'lt', within, 0), binary(b, 'ne', x, x));
  return where(b, outside, fullLike(b, within, bins), within);
}

/** The widths of bins. */
function widths(b: GraphBuilder, edges: Node): Node {
  const bins = dims(edges)[0]! - 1;
  return sub(b, sliceAxis(b, edges, 0, 1, bins), sliceAxis(b, edges, 0, 0, bins));
}

function checkWeight(op: string, x: Tensor, weight: Tensor | undefined, size: number): void {
  if (weight === undefined) return;
  if (weight.size !== size)
    throw new TensorError('E_SHAPE', op, `one weight for each element: x ${show(x)}, weight ${show(weight)}`);
  if (weight.dtype !== x.dtype)
    throw new TensorError('E_DTYPE', op, `x and the weight must have one dtype: ${show(x, weight)}`);
}

/** Edges given, or so many equal bins. */
function edgesOf(
  b: GraphBuilder,
  x: Node,
  bins: number | Node,
  range: readonly [number, number] | undefined,
): Node {
  if (typeof bins !== 'number') return cast(b, bins, x.dtype);
  const found = rangeOf(b, x, range ?? (sizeOf(dims(x)) === 0 ? [0, 1] : undefined));
  const [low, high] = widened(b, found, 0.5);
  return equalEdges(b, low, high, bins);
}

function checkBins(op: string, x: Tensor, bins: number | Tensor): void {
  if (typeof bins === 'number') return;
  checkRank(op, 'the edges', bins, 1);
  if (bins.size < 2 || bins.dtype !== x.dtype) {
    const problem = `expects at least 2 edges of x's dtype: x ${show(x)}, edges ${show(bins)}`;
    throw new TensorError('E_SHAPE', op, problem);
  }
}

/**
 * How much falls into each bin: between ascending edges, or into equal bins; and the edges.
 *
 * @example
 * const x = sn.tensor([[3, 1, 2], [1, 5, 1]]);
 * sn.histogram(x, 2, { range: [0, 4] });
 */
export function histogram(
  x: Tensor,
  bins: number | Tensor,
  options: HistogramOptions = {},
): [hist: Tensor, edges: Tensor] {
  takesHistogram('histogram', x, bins, options);
  checkFloat('histogram', x);
  checkBins('histogram', x, bins);
  const { weight, range, density = false } = options;
  checkWeight('histogram', x, weight, x.size);
  const own = [bins, weight].filter((each) => each instanceof Tensor);
  const [hist, edges] = recordMany([x, ...own], (b, [node, ...rest]) => {
    const wide = cast(b, flattened(b, node!), formula.wideType(x.dtype));
    const ends = edgesOf(b, wide, typeof bins === 'number' ? bins : rest[0]!, range);
    const load = weight === undefined ? undefined : cast(b, flattened(b, rest.at(-1)!), wide.dtype);
    const sums = binned(b, binOf(b, wide, ends), load ?? fullLike(b, wide, 1), dims(ends)[0]! - 1);
    const shown = density
      ? div(b, div(b, sums, formula.spreadTo(b, reduceKeep(b, 'sum', sums, [0]), sums)), widths(b, ends))
      : sums;
    return [shown, ends].map((result) => cast(b, result, x.dtype));
  });
  return [hist!, edges!];
}

export interface HistogramddOptions {
  /** Where equal bins begin and end on each axis, from the least to the greatest by default. */
  readonly range?: readonly (readonly [number, number])[];
  /** What each point counts for; 1 by default. */
  readonly weight?: Tensor;
  /** Divides by the sum and each bin's volume; false by default. */
  readonly density?: boolean;
}

/** A number of bins for all axes, or one or the edges of each. */
export type Bins = number | readonly number[] | readonly Tensor[];

const takesHistogramdd = arg.takes<typeof histogramdd>(
  ['the operand', aTensor],
  [
    'bins',
    arg.either<readonly Tensor[], number | readonly number[]>(
      {
        accepts: (value) =>
          Array.isArray(value) && value.length > 0 && value.every((at) => aTensor.accepts(at)),
        refuse: (op, what, value) => aTensor.refuse(op, what, value),
      },
      arg.sizes(1),
    ),
  ],
  [
    'options',
    arg.options<HistogramddOptions>({
      range: arg.listOf(arg.tupleOf<readonly [number, number]>(arg.finite, arg.finite)),
      weight: aTensor,
      density: arg.flag,
    }),
  ],
);

/**
 * How much falls into each box of a grid: points are the last axis of x; and the edges of each axis.
 *
 * @example
 * const points = sn.tensor([[1, 1], [2, 3], [3, 1]]);
 * sn.histogramdd(points, [2, 2], { range: [[0, 4], [0, 4]] });
 */
export function histogramdd(
  x: Tensor,
  bins: Bins,
  options: HistogramddOptions = {},
): [hist: Tensor, edges: Tensor[]] {
  takesHistogramdd('histogramdd', x, bins, options);
  checkFloat('histogramdd', x);
  if (x.rank === 0) throw new TensorError('E_SHAPE', 'histogramdd', `expects points [.., n]: ${show(x)}`);
  const width = x.shape.at(-1)!;
  const listed: readonly (number | Tensor)[] =
    typeof bins === 'number' ? new Array<number>(width).fill(bins) : Array.from<number | Tensor>(bins);
  const { weight, range, density = false } = options;
  if (listed.length !== width || (range !== undefined && range.length !== width) || width === 0) {
    throw new TensorError('E_SHAPE', 'histogramdd', `expects bins and ranges for ${width} axes: ${show(x)}`);
  }
  for (const each of listed) checkBins('histogramdd', x, each);
  const points = sizeOf(x.shape.slice(0, -1));
  checkWeight('histogramdd', x, weight, points);
  const own = [...listed, weight].filter((each) => each instanceof Tensor);
  const [hist, ...edges] = recordMany([x, ...own], (b, [node, ...rest]) => {
    const wide = reshape(b, cast(b, node!, formula.wideType(x.dtype)), [points, width]);
    const columns = listed.map((_, axis) => reshape(b, sliceAxis(b, wide, 1, axis, 1), [points]));
    const given = [...rest];
    const ends = listed.map((each, axis) =>
      edgesOf(b, columns[axis]!, typeof each === 'number' ? each : given.shift()!, range?.[axis]),
    );
    const load = weight === undefined ? undefined : cast(b, flattened(b, given.shift()!), wide.dtype);
    const counts = ends.map((edge) => dims(edge)[0]! - 1);
    const total = sizeOf(counts);
    let inside = full(b, [points], 1, 'bool');
    let flat = full(b, [points], 0, 'i32');
    ends.forEach((edge, axis) => {
      const bin = binOf(b, columns[axis]!, edge);
      inside = binary(b, 'and', inside, binary(b, 'lt', bin, counts[axis]!));
      flat = add(b, mul(b, flat, counts[axis]!), bin);
    });
    const place = where(b, inside, flat, fullLike(b, flat, total));
    const sums = reshape(b, binned(b, place, load ?? full(b, [points], 1, wide.dtype), total), counts);
    const shown = density ? densityOf(b, sums, ends) : sums;
    return [shown, ...ends].map((result) => cast(b, result, x.dtype));
  });
  return [hist!, edges];
}

/** Sums by their total and by the boxes' volumes. */
function densityOf(b: GraphBuilder, sums: Node, ends: readonly Node[]): Node {
  const axes = ends.map((_, axis) => axis);
  const shares = div(b, sums, formula.spreadTo(b, reduceKeep(b, 'sum', sums, axes), sums));
  return ends.reduce((share, edge, axis) => {
    const along = formula.alongAxis(b, widths(b, edge), ends.length, axis);
    return div(b, share, formula.spreadTo(b, along, share));
  }, shares);
}

interface BincountBase {
  /** What each element adds to its count; 1 by default. */
  readonly weights?: Tensor;
  /** The result has at least so many counts; 0 by default. */
  readonly minlength?: number;
}

/** Counts of as many values as the data has. */
export type BincountOptions = BincountBase & Unsized;
/** Counts of the values below `size`. */
export type SizedBincountOptions = BincountBase & Sized;

const takesBincount = arg.takes<(x: Tensor, options?: BincountOptions | SizedBincountOptions) => unknown>(
  ['the operand', aTensor],
  [
    'options',
    arg.options<BincountOptions | SizedBincountOptions>({
      weights: aTensor,
      minlength: arg.count(0),
      size: sizeOption,
    }),
  ],
);

/**
 * How often 0, 1, 2… are among the integers, up to the greatest: i32, or sums of weights in their
 * dtype (f64 where they are integers). With `size` the values from there on are not counted.
 *
 * @example
 * const n = sn.tensor([1, 3, 1, 0], { dtype: 'i32' });
 * sn.bincount(n);
 */
export function bincount(x: Tensor, options: SizedBincountOptions): Tensor;
export function bincount(x: Tensor, options?: BincountOptions): Promise<Tensor>;
export function bincount(
  x: Tensor,
  options: BincountOptions | SizedBincountOptions = {},
): Tensor | Promise<Tensor> {
  takesBincount('bincount', x, options);
  checkInteger('bincount', 'the operand', x);
  checkRank('bincount', 'the operand', x, 1);
  const { weights, minlength = 0, size } = options;
  if (weights !== undefined && (weights.rank !== 1 || weights.size !== x.size))
    throw new TensorError('E_SHAPE', 'bincount', `one weight for each element: ${show(x, weights)}`);
  watch(
    'bincount',
    'E_VALUE',
    [x],
    (b, [node]) => [reduce(b, 'min', node!, [0])],
    ([least]) => (least! < 0 ? `expects no values below 0: ${least}` : undefined),
  );
  if (size !== undefined) return countsOf(x, weights, Math.max(size, minlength));
  checkReadable('bincount');
  if (x.size === 0) return Promise.resolve(countsOf(x, weights, minlength));
  const greatest = apply([x], (b, node) => reduce(b, 'max', formula.narrowIndex(b, node), [0]));
  return readCount(greatest).then((found) => countsOf(x, weights, Math.max(found + 1, minlength)));
}

function countsOf(x: Tensor, weights: Tensor | undefined, bins: number): Tensor {
  return apply([x, weights], (b, node, load) => {
    const places = formula.narrowIndex(b, node);
    const dtype = load === undefined ? 'i32' : isFloat(load.dtype) ? load.dtype : 'f64';
    const wide = formula.wideType(dtype);
    const values = load === undefined ? full(b, x.shape, 1, 'i32') : cast(b, load, wide);
    return cast(b, binned(b, places, values, bins), dtype);
  });
}
