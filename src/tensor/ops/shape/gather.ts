// Gather and scatter: reading and writing at positions that are data. Index tensors hold integers
// in [0, size). Others are an error where they are watched (debug.ts); elsewhere reads outside give
// 0, writes outside are dropped.

import { TensorError } from '../../../errors.ts';
import { add, binary, broadcast, cast, full, mul, reshape, slice, where } from '../../../ir/build.ts';
import * as arg from '../../../ir/arguments.ts';
import type { DType } from '../../../ir/dtype.ts';
import { dims, type GraphBuilder, type Node } from '../../../ir/graph.ts';
import type { ScatterMode } from '../../../ir/ops.ts';
import { normalizeAxis } from '../../../ir/shape.ts';
import { watchRange } from '../../debug.ts';
import { aTensor } from '../../expect.ts';
import type { Tensor } from '../../tensor.ts';
import * as formula from '../elementwise/formula.ts';
import { padConstant } from './layout.ts';
import { apply, checkInteger, checkRank, show } from '../operand.ts';

function gatherNode(b: GraphBuilder, x: Node, index: Node, axis: number): Node {
  return b.add('gather', [x, formula.narrowIndex(b, index)], { axis });
}

function scatterNode(
  b: GraphBuilder,
  x: Node,
  index: Node,
  source: Node,
  axis: number,
  mode: ScatterMode,
): Node {
  return b.add('scatter', [x, formula.narrowIndex(b, index), source], { axis, mode });
}

/** How values that meet in one place are added. */
export interface ScatterAddOptions {
  /**
   * In a fixed order, so that the same inputs give the same bits; true by default. Otherwise a
   * device may add them as they come, by atomic additions: no sorting, for many values in many
   * places, but f32 sums differ in their last bits.
   */
  readonly deterministic?: boolean;
}

/** x with the source added at the index's places. */
function addNode(
  b: GraphBuilder,
  x: Node,
  index: Node,
  source: Node,
  axis: number,
  options: ScatterAddOptions,
): Node {
  if (options.deterministic !== false) return scatterNode(b, x, index, source, axis, 'add');
  const wide = formula.wideType(x.dtype);
  const inputs = [formula.narrowIndex(b, index), cast(b, source, wide)];
  const sums = b.add('scatterAddAtomic', inputs, { axis, size: dims(x)[axis]! });
  const high = dims(x).map((dim, i) => dim - dims(sums)[i]!);
  const spread = padConstant(
    b,
    sums,
    high.map(() => 0),
    high,
    0,
  );
  return cast(b, add(b, cast(b, x, wide), spread), x.dtype);
}

const addOptions: arg.Table<ScatterAddOptions> = { deterministic: arg.flag };

/** Watches that positions lie in an axis. */
function watchAxis(op: string, x: Tensor, axis: number, index: Tensor): void {
  watchRange(op, 'index', index, 0, x.shape[axis]!, `axis ${axis} of ${show(x)}`);
}

/** The index must have x's rank and fit it outside the axis. */
function checkIndex(op: string, x: Tensor, axis: number, index: Tensor): number {
  checkInteger(op, 'the index', index);
  const at = normalizeAxis(op, axis, x.rank);
  const fits = index.rank === x.rank && index.shape.every((dim, i) => i === at || dim <= x.shape[i]!);
  if (!fits) {
    throw new TensorError(
      'E_SHAPE',
      op,
      `the index must have x's rank and fit it outside axis ${at}: x ${show(x)}, index ${show(index)}`,
    );
  }
  return at;
}

const takesGather = arg.takes<typeof gather>(['x', aTensor], ['axis', arg.inside()], ['the index', aTensor]);

/** out[i,j,k] = x[i, index[i,j,k], k] for axis 1. */
export function gather(x: Tensor, axis: number, index: Tensor): Tensor {
  takesGather('gather', x, axis, index);
  const at = checkIndex('gather', x, axis, index);
  watchAxis('gather', x, at, index);
  return apply([x, index], (b, node, places) => gatherNode(b, node, places, at));
}

const takesTakeAlongAxis = arg.takes<typeof takeAlongAxis>(
  ['x', aTensor],
  ['the index', aTensor],
  ['axis', arg.inside()],
);

/** As `gather`; x and index broadcast outside the axis (NumPy's take_along_axis). */
export function takeAlongAxis(x: Tensor, index: Tensor, axis: number): Tensor {
  takesTakeAlongAxis('takeAlongAxis', x, index, axis);
  checkInteger('takeAlongAxis', 'the index', index);
  const at = normalizeAxis('takeAlongAxis', axis, x.rank);
  if (index.rank !== x.rank) {
    throw new TensorError(
      'E_SHAPE',
      'takeAlongAxis',
      `the index must have x's rank: x ${show(x)}, index ${show(index)}`,
    );
  }
  watchAxis('takeAlongAxis', x, at, index);
  const outside = (shape: readonly number[], size: number): number[] =>
    shape.map((dim, i) => (i === at ? size : dim));
  const common = x.shape.map((dim, i) => (dim === 1 ? index.shape[i]! : dim));
  return apply([x, index], (b, node, places) => {
    const table = broadcast(b, node, outside(common, x.shape[at]!));
    return gatherNode(b, table, broadcast(b, places, outside(common, index.shape[at]!)), at);
  });
}

/** A vector of positions along one axis, in place of that axis. */
function selectRows(b: GraphBuilder, x: Node, index: Node, axis: number): Node {
  const shape = dims(x);
  const count = dims(index)[0]!;
  const along = formula.alongAxis(b, index, shape.length, axis);
  return gatherNode(
    b,
    x,
    broadcast(
      b,
      along,
      shape.map((dim, i) => (i === axis ? count : dim)),
    ),
    axis,
  );
}

/** The listed positions of an axis: out[o, i, j] = x[o, index[i], j]. */
export function indexSelect(x: Tensor, axis: number, index: Tensor): Tensor {
  takesGather('indexSelect', x, axis, index);
  checkInteger('indexSelect', 'the index', index);
  checkRank('indexSelect', 'the index', index, 0, 1);
  const at = normalizeAxis('indexSelect', axis, x.rank);
  watchAxis('indexSelect', x, at, index);
  return apply([x, index], (b, node, places) => selectRows(b, node, reshape(b, places, [index.size]), at));
}

const takesTake = arg.takes<typeof take>(['x', aTensor], ['the index', aTensor]);

/** Elements by their position in C-order; the result has the index's shape. */
export function take(x: Tensor, index: Tensor): Tensor {
  takesTake('take', x, index);
  checkInteger('take', 'the index', index);
  watchRange('take', 'index', index, 0, x.size, `the ${x.size} elements of ${show(x)}`);
  return apply([x, index], (b, node, places) =>
    reshape(b, gatherNode(b, reshape(b, node, [x.size]), reshape(b, places, [index.size]), 0), index.shape),
  );
}

export interface EmbeddingOptions {
  /** The row of this index gets no gradient. */
  readonly paddingIdx?: number;
}

const takesEmbedding = arg.takes<typeof embedding>(
  ['the indices', aTensor],
  ['the weight', aTensor],
  ['options', arg.options<EmbeddingOptions>({ paddingIdx: arg.integer })],
);

/** Rows of a [V, D] table: indices [..] give [.., D]. */
export function embedding(indices: Tensor, weight: Tensor, options: EmbeddingOptions = {}): Tensor {
  takesEmbedding('embedding', indices, weight, options);
  checkInteger('embedding', 'the indices', indices);
  checkRank('embedding', 'the weight', weight, 2);
  const [rows, width] = [weight.shape[0]!, weight.shape[1]!];
  watchRange('embedding', 'index', indices, 0, rows, `the ${rows} rows of ${show(weight)}`);
  const padding =
    options.paddingIdx === undefined ? undefined : normalizeAxis('embedding', options.paddingIdx, rows);
  return apply([indices, weight], (b, places, table) => {
    const flat = reshape(b, formula.narrowIndex(b, places), [indices.size]);
    const found = selectRows(b, table, flat, 0);
    if (padding === undefined) return reshape(b, found, [...indices.shape, width]);
    const padded = formula.spreadTo(b, reshape(b, binary(b, 'eq', flat, padding), [indices.size, 1]), found);
    return reshape(b, where(b, padded, formula.stopGradient(b, found), found), [...indices.shape, width]);
  });
}

/** What meets the element already there: replaces it, or is folded into it. */
export type ScatterReduce = 'sum' | 'prod' | 'amax' | 'amin';
const modes = { sum: 'add', prod: 'mul', amax: 'max', amin: 'min' } as const satisfies Record<
  ScatterReduce,
  ScatterMode
>;

function scatterWith(
  op: string,
  x: Tensor,
  axis: number,
  index: Tensor,
  source: Tensor | number,
  mode: ScatterMode,
  options: ScatterAddOptions = {},
): Tensor {
  const at = checkIndex(op, x, axis, index);
  watchAxis(op, x, at, index);
  const write = (b: GraphBuilder, node: Node, places: Node, values: Node): Node =>
    mode === 'add'
      ? addNode(b, node, places, values, at, options)
      : scatterNode(b, node, places, values, at, mode);
  if (typeof source === 'number') {
    return apply([x, index], (b, node, places) =>
      write(b, node, places, full(b, index.shape, source, x.dtype)),
    );
  }
  if (source.rank !== x.rank || !index.shape.every((dim, i) => dim <= source.shape[i]!)) {
    throw new TensorError(
      'E_SHAPE',
      op,
      `the source must cover the index: index ${show(index)}, source ${show(source)}`,
    );
  }
  if (source.dtype !== x.dtype) {
    throw new TensorError(
      'E_DTYPE',
      op,
      `x and the source must have one dtype: ${show(x, source)}`,
      `.cast('${x.dtype}')`,
    );
  }
  return apply([x, index, source], (b, node, places, values) => {
    const used = slice(
      b,
      values,
      index.shape.map(() => 0),
      index.shape,
    );
    return write(b, node, places, used);
  });
}

/** What is written: elements, or one number everywhere. */
const source: arg.Kind<Tensor | number> = {
  accepts: (value) => typeof value === 'number' || aTensor.accepts(value),
  refuse: (op, what, value) => aTensor.refuse(op, what, value),
};
const takesScatter = arg.takes<typeof scatter>(
  ['x', aTensor],
  ['axis', arg.inside()],
  ['the index', aTensor],
  ['the source', source],
);

/**
 * A copy of x with out[i, index[i,j,k], k] = source[i,j,k] for axis 1; of several writes to one
 * place the last stays.
 */
export function scatter(x: Tensor, axis: number, index: Tensor, source: Tensor | number): Tensor {
  takesScatter('scatter', x, axis, index, source);
  return scatterWith('scatter', x, axis, index, source, 'set');
}

const takesScatterAdd = arg.takes<typeof scatterAdd>(
  ['x', aTensor],
  ['axis', arg.inside()],
  ['the index', aTensor],
  ['the source', source],
  ['options', arg.options<ScatterAddOptions>(addOptions)],
);

/** A copy of x with the source added at the index's places; all writes to one place add up. */
export function scatterAdd(
  x: Tensor,
  axis: number,
  index: Tensor,
  source: Tensor | number,
  options: ScatterAddOptions = {},
): Tensor {
  takesScatterAdd('scatterAdd', x, axis, index, source, options);
  return scatterWith('scatterAdd', x, axis, index, source, 'add', options);
}

const takesScatterReduce = arg.takes<typeof scatterReduce>(
  ['x', aTensor],
  ['axis', arg.inside()],
  ['the index', aTensor],
  ['the source', source],
  ['reduction', arg.oneOf('sum', 'prod', 'amax', 'amin')],
);

/** A copy of x with the source folded in at the index's places. */
export function scatterReduce(
  x: Tensor,
  axis: number,
  index: Tensor,
  source: Tensor | number,
  reduce: ScatterReduce,
): Tensor {
  takesScatterReduce('scatterReduce', x, axis, index, source, reduce);
  return scatterWith('scatterReduce', x, axis, index, source, modes[reduce]);
}

/** Writes at a vector of positions: slice i of the source meets slice index[i] of x. */
function writeRows(
  op: string,
  x: Tensor,
  axis: number,
  index: Tensor,
  source: Tensor,
  mode: 'set' | 'add',
  { alpha = 1, ...options }: IndexAddOptions = {},
): Tensor {
  checkInteger(op, 'the index', index);
  checkRank(op, 'the index', index, 1);
  const at = normalizeAxis(op, axis, x.rank);
  const expected = x.shape.map((dim, i) => (i === at ? index.size : dim));
  if (source.rank !== x.rank || !source.shape.every((dim, i) => dim === expected[i])) {
    throw new TensorError(
      'E_SHAPE',
      op,
      `the source must be [${expected.join(',')}]: x ${show(x)}, source ${show(source)}`,
    );
  }
  if (source.dtype !== x.dtype) {
    throw new TensorError(
      'E_DTYPE',
      op,
      `x and the source must have one dtype: ${show(x, source)}`,
      `.cast('${x.dtype}')`,
    );
  }
  watchAxis(op, x, at, index);
  return apply([x, index, source], (b, node, places, values) => {
    const along = broadcast(b, formula.alongAxis(b, formula.narrowIndex(b, places), x.rank, at), expected);
    if (mode === 'set') return scatterNode(b, node, along, values, at, mode);
    return addNode(b, node, along, alpha === 1 ? values : mul(b, values, alpha), at, options);
  });
}

export interface IndexAddOptions extends ScatterAddOptions {
  /** Factor on the source, 1 by default. */
  readonly alpha?: number;
}

const takesIndexAdd = arg.takes<typeof indexAdd>(
  ['x', aTensor],
  ['axis', arg.inside()],
  ['the index', aTensor],
  ['the source', aTensor],
  ['options', arg.options<IndexAddOptions>({ ...addOptions, alpha: arg.number })],
);

/**
 * A copy of x with slice `i` of the source added to slice `index[i]` along an axis; repeated
 * positions add up.
 */
export function indexAdd(
  x: Tensor,
  axis: number,
  index: Tensor,
  source: Tensor,
  options: IndexAddOptions = {},
): Tensor {
  takesIndexAdd('indexAdd', x, axis, index, source, options);
  return writeRows('indexAdd', x, axis, index, source, 'add', options);
}

const takesIndexCopy = arg.takes<typeof indexCopy>(
  ['x', aTensor],
  ['axis', arg.inside()],
  ['the index', aTensor],
  ['the source', aTensor],
);

/** A copy of x whose slice `index[i]` along an axis is slice `i` of the source. */
export function indexCopy(x: Tensor, axis: number, index: Tensor, source: Tensor): Tensor {
  takesIndexCopy('indexCopy', x, axis, index, source);
  return writeRows('indexCopy', x, axis, index, source, 'set');
}

const takesSegmentSum = arg.takes<typeof segmentSum>(
  ['the source', aTensor],
  ['the segment ids', aTensor],
  ['the number of segments', arg.count(0)],
  ['options', arg.options<ScatterAddOptions>(addOptions)],
);

/**
 * Sums of the rows of each segment: row `e` of the source counts to segment `ids[e]`; empty
 * segments are 0.
 */
export function segmentSum(
  source: Tensor,
  ids: Tensor,
  segments: number,
  options: ScatterAddOptions = {},
): Tensor {
  takesSegmentSum('segmentSum', source, ids, segments, options);
  checkInteger('segmentSum', 'the segment ids', ids);
  if (source.rank === 0 || ids.rank !== 1 || ids.size !== source.shape[0]) {
    throw new TensorError(
      'E_SHAPE',
      'segmentSum',
      `expects one id a row: source ${show(source)}, ids ${show(ids)}`,
    );
  }
  watchRange('segmentSum', 'segment id', ids, 0, segments, `the ${segments} segments`);
  return apply([source, ids], (b, rows, places) => {
    const sums = full(b, [segments, ...source.shape.slice(1)], 0, source.dtype);
    const along = formula.spreadTo(
      b,
      formula.alongAxis(b, formula.narrowIndex(b, places), source.rank, 0),
      rows,
    );
    return addNode(b, sums, along, rows, 0, options);
  });
}

export interface OneHotOptions {
  /** i32 by default. */
  readonly dtype?: DType;
}

const takesOneHot = arg.takes<typeof oneHot>(
  ['the classes', aTensor],
  ['the number of classes', arg.count(1)],
  ['options', arg.options<OneHotOptions>({ dtype: arg.dtype })],
);

/** 1 at each element's class, 0 elsewhere, along a new last axis; devices give zeros outside. */
export function oneHot(x: Tensor, classes: number, options: OneHotOptions = {}): Tensor {
  takesOneHot('oneHot', x, classes, options);
  checkInteger('oneHot', 'the classes', x);
  watchRange('oneHot', 'class', x, 0, classes, `the ${classes} classes`);
  const shape = [...x.shape, classes];
  return apply([x], (b, node) => {
    const place = broadcast(b, reshape(b, formula.narrowIndex(b, node), [...x.shape, 1]), shape);
    const hit = binary(b, 'eq', formula.iota(b, shape, x.rank, place.dtype), place);
    return cast(b, hit, options.dtype ?? 'i32');
  });
}
