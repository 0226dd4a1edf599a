// Scatter: writing at positions that are data, where what meets one place is added, multiplied,
// compared or replaced. Writes outside are dropped.

import { TensorError } from '../../../errors.ts';
import { fromInteger } from '../../../ir/value.ts';
import * as arg from '../../../ir/arguments.ts';
import { add, binary, broadcast, cast, div, full, fullLike, mul, reshape, slice } from '../../../ir/build.ts';
import { integerRange, isFloat, type DType } from '../../../ir/dtype.ts';
import { dims, type GraphBuilder, type Node } from '../../../ir/graph.ts';
import type { ScatterMode } from '../../../ir/ops.ts';
import { normalizeAxis } from '../../../ir/shape.ts';
import { watchRange } from '../../debug.ts';
import { aTensor } from '../../expect.ts';
import type { Tensor } from '../../tensor.ts';
import * as formula from '../../formula/elementwise.ts';
import { checkHeld } from '../number.ts';
import { apply, checkInteger, checkNotComplex, checkRank, show } from '../operand.ts';
import { checkIndex, lineShape, watchAxis } from './places.ts';
import { padConstant } from '../../formula/layout.ts';

/**
 * x with the source folded in at the index's places. On bool, sums and maxima are `or`, products
 * and minima `and`.
 *
 * @internal
 */
export function scatterNode(
  b: GraphBuilder,
  x: Node,
  index: Node,
  source: Node,
  axis: number,
  mode: ScatterMode,
): Node {
  const places = formula.narrowIndex(b, index);
  if (x.dtype !== 'bool' || mode === 'set') return b.add('scatter', [x, places, source], { axis, mode });
  const counted = [cast(b, x, 'i32'), places, cast(b, source, 'i32')];
  const folded = mode === 'add' ? 'max' : mode === 'mul' ? 'min' : mode;
  return cast(b, b.add('scatter', counted, { axis, mode: folded }) as Node, 'bool');
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
  if (options.deterministic !== false || x.dtype === 'bool')
    return scatterNode(b, x, index, source, axis, 'add');
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

/** How the values that meet one place are folded. */
export type ScatterReduce = 'sum' | 'prod' | 'mean' | 'amax' | 'amin';
const modes = { sum: 'add', prod: 'mul', mean: 'add', amax: 'max', amin: 'min' } as const satisfies Record<
  ScatterReduce,
  ScatterMode
>;

export interface ScatterReduceOptions {
  /** Whether the element already there counts among the values; true by default. */
  readonly includeSelf?: boolean;
}

/** What folding starts from where the element already there does not count. */
function identityOf(reduce: ScatterReduce, dtype: DType): number | bigint {
  if (reduce === 'sum' || reduce === 'mean') return 0;
  if (reduce === 'prod') return 1;
  const isLeast = reduce === 'amax';
  if (dtype === 'bool') return isLeast ? 0 : 1;
  if (isFloat(dtype)) return isLeast ? -Infinity : Infinity;
  return integerRange(dtype)[isLeast ? 0 : 1];
}

/** Complex numbers have sums and products, and no order. @internal */
export function checkFolded(op: string, reduce: ScatterReduce, x: Tensor): void {
  if (reduce === 'amax' || reduce === 'amin') checkNotComplex(op, x);
  if (reduce === 'mean' && x.dtype === 'bool')
    throw new TensorError('E_DTYPE', op, `bool has no mean: ${show(x)}`, ".cast('f32')");
}

/** x with the source folded in at the index's places. @internal */
export function reduceAt(
  b: GraphBuilder,
  x: Node,
  index: Node,
  source: Node,
  axis: number,
  reduce: ScatterReduce,
  { includeSelf = true }: ScatterReduceOptions,
): Node {
  const wide = reduce === 'mean' ? formula.meanType(x.dtype, dims(source)[axis]! + 1) : x.dtype;
  const [own, values] = [cast(b, x, wide), cast(b, source, wide)];
  return cast(b, foldedAt(b, own, index, values, axis, reduce, includeSelf), x.dtype);
}

function foldedAt(
  b: GraphBuilder,
  x: Node,
  index: Node,
  source: Node,
  axis: number,
  reduce: ScatterReduce,
  includeSelf: boolean,
): Node {
  const start = includeSelf
    ? x
    : scatterNode(b, x, index, fullLike(b, source, identityOf(reduce, x.dtype)), axis, 'set');
  const folded = scatterNode(b, start, index, source, axis, modes[reduce]);
  if (reduce !== 'mean') return folded;
  const self = fullLike(b, x, includeSelf ? 1 : 0);
  const count = binary(b, 'max', scatterNode(b, self, index, fullLike(b, source, 1), axis, 'add'), 1);
  return isFloat(x.dtype) ? div(b, folded, count) : formula.floorDivide(b, folded, count);
}

type Write = (b: GraphBuilder, x: Node, index: Node, source: Node, axis: number) => Node;

function scatterWith(
  op: string,
  x: Tensor,
  axis: number,
  index: Tensor,
  source: Tensor | number,
  write: Write,
): Tensor {
  const at = checkIndex(op, x, axis, index);
  const [line, row] = [lineShape(x), lineShape(index)];
  watchAxis(op, x, at, index);
  const written = (b: GraphBuilder, node: Node, places: Node, values: Node): Node =>
    reshape(b, write(b, reshape(b, node, line), reshape(b, places, row), values, at), x.shape);
  if (typeof source === 'number') {
    checkHeld(op, source, x.dtype);
    return apply([x, index], (b, node, places) => written(b, node, places, full(b, row, source, x.dtype)));
  }
  const given = lineShape(source);
  if (given.length !== line.length || !row.every((dim, i) => dim <= given[i]!)) {
    throw new TensorError(
      'E_SHAPE',
      op,
      `the source must cover the index: index ${show(index)}, source ${show(source)}`,
    );
  }
  checkSameType(op, x, source);
  return apply([x, index, source], (b, node, places, values) => {
    const none = row.map(() => 0);
    return written(b, node, places, slice(b, reshape(b, values, given), none, row));
  });
}

/** What is written has the dtype of what it is written into. @internal */
export function checkSameType(op: string, x: Tensor, source: Tensor): void {
  if (source.dtype === x.dtype) return;
  const problem = `x and the source must have one dtype: ${show(x, source)}`;
  throw new TensorError('E_DTYPE', op, problem, `.cast('${x.dtype}')`);
}

const added =
  (options: ScatterAddOptions): Write =>
  (b, x, index, source, axis) =>
    addNode(b, x, index, source, axis, options);

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
 *
 * @method
 * @example
 * const x = sn.tensor([[1, 2, 3], [4, 5, 6]]);
 * const places = sn.tensor([[0, 2], [1, 1]], { dtype: 'i32' });
 * const s = sn.tensor([[7, 8], [9, 10]]);
 * sn.scatter(x, 1, places, s);
 * @example <caption>number</caption>
 * const x = sn.tensor([[1, 2, 3], [4, 5, 6]]);
 * const places = sn.tensor([[0, 2], [1, 1]], { dtype: 'i32' });
 * sn.scatter(x, 1, places, 1);
 */
export function scatter<D extends DType>(
  x: Tensor<D>,
  axis: number,
  index: Tensor,
  source: Tensor | number,
): Tensor<D> {
  takesScatter('scatter', x, axis, index, source);
  return scatterWith('scatter', x, axis, index, source, (b, node, places, values, at) =>
    scatterNode(b, node, places, values, at, 'set'),
  );
}

const takesScatterAdd = arg.takes<typeof scatterAdd>(
  ['x', aTensor],
  ['axis', arg.inside()],
  ['the index', aTensor],
  ['the source', source],
  ['options', arg.options<ScatterAddOptions>(addOptions)],
);

/**
 * A copy of x with the source added at the index's places; all writes to one place add up.
 *
 * @method
 * @example
 * const x = sn.tensor([[1, 2, 3], [4, 5, 6]]);
 * const places = sn.tensor([[0, 2], [1, 1]], { dtype: 'i32' });
 * const s = sn.tensor([[7, 8], [9, 10]]);
 * sn.scatterAdd(x, 1, places, s);
 * @example <caption>line</caption>
 * const v = sn.tensor([1, 2, 3]);
 * const i = sn.tensor([1, 0], { dtype: 'i32' });
 * sn.scatterAdd(sn.zerosLike(v), 0, i, v.slice(0, 0, 2));
 */
export function scatterAdd<D extends DType>(
  x: Tensor<D>,
  axis: number,
  index: Tensor,
  source: Tensor | number,
  options: ScatterAddOptions = {},
): Tensor<D> {
  takesScatterAdd('scatterAdd', x, axis, index, source, options);
  return scatterWith('scatterAdd', x, axis, index, source, added(options));
}

const takesScatterReduce = arg.takes<typeof scatterReduce>(
  ['x', aTensor],
  ['axis', arg.inside()],
  ['the index', aTensor],
  ['the source', source],
  ['reduction', arg.oneOf('sum', 'prod', 'mean', 'amax', 'amin')],
  ['options', arg.options<ScatterReduceOptions>({ includeSelf: arg.flag })],
);

/**
 * A copy of x with the source folded in at the index's places; means of integers are floored.
 *
 * @example
 * const x = sn.tensor([[1, 2, 3], [4, 5, 6]]);
 * const places = sn.tensor([[0, 2], [1, 1]], { dtype: 'i32' });
 * const s = sn.tensor([[7, 8], [9, 10]]);
 * sn.scatterReduce(x, 1, places, s, 'amax');
 */
export function scatterReduce(
  x: Tensor,
  axis: number,
  index: Tensor,
  source: Tensor | number,
  reduce: ScatterReduce,
  options: ScatterReduceOptions = {},
): Tensor {
  takesScatterReduce('scatterReduce', x, axis, index, source, reduce, options);
  checkFolded('scatterReduce', reduce, x);
  return scatterWith('scatterReduce', x, axis, index, source, (b, node, places, values, at) =>
    reduceAt(b, node, places, values, at, reduce, options),
  );
}

/** Writes at a vector of positions: slice i of the source meets slice index[i] of x. @internal */
export function writeRows(
  op: string,
  x: Tensor,
  axis: number,
  index: Tensor,
  source: Tensor,
  write: Write,
): Tensor {
  checkInteger(op, 'the index', index);
  checkRank(op, 'the index', index, 0, 1);
  const [line, given] = [lineShape(x), lineShape(source)];
  const at = normalizeAxis(op, axis, line.length);
  const expected = line.map((dim, i) => (i === at ? index.size : dim));
  if (given.length !== line.length || !given.every((dim, i) => dim === expected[i])) {
    throw new TensorError(
      'E_SHAPE',
      op,
      `the source must be [${expected.join(',')}]: x ${show(x)}, source ${show(source)}`,
    );
  }
  checkSameType(op, x, source);
  watchAxis(op, x, at, index);
  return apply([x, index, source], (b, node, places, values) => {
    const row = reshape(b, formula.narrowIndex(b, places), [index.size]);
    const along = broadcast(b, formula.alongAxis(b, row, line.length, at), expected);
    const written = write(b, reshape(b, node, line), along, reshape(b, values, given), at);
    return reshape(b, written, x.shape);
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
 *
 * @method
 * @example
 * const x = sn.tensor([[1, 2, 3], [4, 5, 6]]);
 * const i = sn.tensor([1, 0], { dtype: 'i32' });
 * const rows = sn.tensor([[7, 8, 9], [1, 1, 1]]);
 * sn.indexAdd(x, 0, i, rows);
 */
export function indexAdd<D extends DType>(
  x: Tensor<D>,
  axis: number,
  index: Tensor,
  source: Tensor,
  options: IndexAddOptions = {},
): Tensor<D> {
  takesIndexAdd('indexAdd', x, axis, index, source, options);
  const { alpha = 1 } = options;
  return writeRows('indexAdd', x, axis, index, source, (b, node, places, values, at) =>
    addNode(b, node, places, alpha === 1 ? values : scaled(b, values, alpha), at, options),
  );
}

/** The source times a factor, as `or`s and `and`s on bool. */
function scaled(b: GraphBuilder, source: Node, alpha: number): Node {
  if (source.dtype === 'bool') return alpha === 0 ? fullLike(b, source, 0) : source;
  if (isFloat(source.dtype)) return mul(b, source, alpha);
  if (!Number.isSafeInteger(alpha))
    throw new TensorError('E_VALUE', 'indexAdd', `a factor of integers must be one: ${alpha}`);
  // Integers wrap: −1 is 255 times a u8.
  const factor = Number(fromInteger(source.dtype)(BigInt(alpha)));
  return mul(b, source, fullLike(b, source, factor));
}

const takesIndexCopy = arg.takes<typeof indexCopy>(
  ['x', aTensor],
  ['axis', arg.inside()],
  ['the index', aTensor],
  ['the source', aTensor],
);

/**
 * A copy of x whose slice `index[i]` along an axis is slice `i` of the source.
 *
 * @example
 * const x = sn.tensor([[1, 2, 3], [4, 5, 6]]);
 * const i = sn.tensor([1, 0], { dtype: 'i32' });
 * const rows = sn.tensor([[7, 8, 9], [1, 1, 1]]);
 * sn.indexCopy(x, 0, i, rows);
 */
export function indexCopy<D extends DType>(
  x: Tensor<D>,
  axis: number,
  index: Tensor,
  source: Tensor,
): Tensor<D> {
  takesIndexCopy('indexCopy', x, axis, index, source);
  return writeRows('indexCopy', x, axis, index, source, (b, node, places, values, at) =>
    scatterNode(b, node, places, values, at, 'set'),
  );
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
 *
 * @jax jax.ops.segment_sum
 * @example
 * const x = sn.tensor([[1, 2, 3], [4, 5, 6]]);
 * const i = sn.tensor([1, 0], { dtype: 'i32' });
 * sn.segmentSum(x, i, 2);
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
      `expects one id for each row: source ${show(source)}, ids ${show(ids)}`,
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
