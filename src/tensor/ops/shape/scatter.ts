// Scatter: writing at positions that are data, where what meets one place is added, multiplied,
// compared or replaced. Writes outside are dropped.

import { TensorError } from '../../../errors.ts';
import * as arg from '../../../ir/arguments.ts';
import { add, broadcast, cast, full, mul, slice } from '../../../ir/build.ts';
import { dims, type GraphBuilder, type Node } from '../../../ir/graph.ts';
import type { ScatterMode } from '../../../ir/ops.ts';
import { normalizeAxis } from '../../../ir/shape.ts';
import { watchRange } from '../../debug.ts';
import { aTensor } from '../../expect.ts';
import type { Tensor } from '../../tensor.ts';
import * as formula from '../elementwise/formula.ts';
import { apply, checkInteger, checkRank, show } from '../operand.ts';
import { checkIndex, watchAxis } from './places.ts';
import { padConstant } from './layout.ts';

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

/** How values that are added to one place are summed. */
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

/** How a value is combined with the element already there: it replaces it, or is folded into it. */
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
