// Metrics of how scores order two classes: the area under the curve of true against false positives
// (Fawcett, 2006: the chance that an item of class 1 has the greater score, ties counting half), and
// the mean precision along the recalls. Exact, of all scores at once; and from counts in bins, of
// scores that come batch by batch.

import { TensorError } from '../../errors.ts';
import * as arg from '../../ir/arguments.ts';
import { dtypeKind, isFloat } from '../../ir/dtype.ts';
import { watchRange } from '../../tensor/debug.ts';
import { aTensor, expectTensor } from '../../tensor/expect.ts';
import { zeros } from '../../tensor/ops/creation/creation.ts';
import { add, div, maximum, mul, sub } from '../../tensor/ops/elementwise/arithmetic.ts';
import { cast } from '../../tensor/ops/elementwise/cast.ts';
import { eq, gt, isNan, logicalNot, where } from '../../tensor/ops/elementwise/compare.ts';
import { clamp } from '../../tensor/ops/elementwise/elementwise.ts';
import { show } from '../../tensor/ops/operand.ts';
import { any as some, sum } from '../../tensor/ops/reduce/reduce.ts';
import { cumsum } from '../../tensor/ops/reduce/scan.ts';
import { searchsorted, sort } from '../../tensor/ops/reduce/sort.ts';
import { indexSelect } from '../../tensor/ops/shape/gather.ts';
import { select } from '../../tensor/ops/shape/indexing.ts';
import { cat } from '../../tensor/ops/shape/join.ts';
import { flip } from '../../tensor/ops/shape/movement.ts';
import { segmentSum } from '../../tensor/ops/shape/scatter.ts';
import { reshape } from '../../tensor/ops/shape/view.ts';
import type { Tensor } from '../../tensor/tensor.ts';
import type { MetricFunctions } from './metric.ts';

/** Scores and whether each is of class 1, as vectors. Targets are 0 and 1, or bool. */
function pair(op: string, scores: Tensor, targets: Tensor): { scores: Tensor; isOne: Tensor } {
  expectTensor(op, 'the scores', scores);
  expectTensor(op, 'the targets', targets);
  if (!isFloat(scores.dtype))
    throw new TensorError('E_DTYPE', op, `the scores must be floats: ${show(scores)}`);
  if (!['bool', 'int', 'uint'].includes(dtypeKind(targets.dtype)))
    throw new TensorError('E_DTYPE', op, `the targets must be 0 and 1: ${show(targets)}`, 'targets.toInt()');
  if (scores.rank !== targets.rank || scores.shape.some((size, axis) => size !== targets.shape[axis]))
    throw new TensorError('E_SHAPE', op, `expects a target for each score: ${show(scores, targets)}`);
  const labels = reshape(cast(targets, 'i32'), [targets.size]);
  watchRange(op, 'label', labels, 0, 2, 'the classes 0 and 1');
  return { scores: reshape(scores, [scores.size]), isOne: eq(labels, 1) };
}

const exactPlaces = [
  ['the scores', aTensor],
  ['the targets', aTensor],
] as const;
const takesRocAuc = arg.takes<typeof rocAuc>(...exactPlaces);
const takesAverage = arg.takes<typeof averagePrecisionScore>(...exactPlaces);

/**
 * The exact area under the receiver's curve of scores and targets of 0 and 1. NaN where a class is
 * missing, or a score is NaN.
 */
export function rocAuc(scores: Tensor, targets: Tensor): Tensor {
  takesRocAuc('rocAuc', scores, targets);
  const { values, isOne, below } = ranked('rocAuc', scores, targets);
  // Of items of class 0, how many have a lesser score, and how many no greater one.
  const zerosBelow = below(logicalNot(isOne));
  const ones = cast(sum(cast(isOne, 'i32')), 'f32');
  const others = sub(values.size, ones);
  const beaten = div(add(zerosBelow(false), zerosBelow(true)), mul(others, 2));
  return unlessNan(values, div(sum(where(isOne, beaten, 0)), ones));
}

/**
 * The exact mean, over items of class 1, of the precision at their scores: Σ (Rₙ − Rₙ₋₁)·Pₙ. NaN
 * where there are none, or a score is NaN.
 */
export function averagePrecisionScore(scores: Tensor, targets: Tensor): Tensor {
  takesAverage('averagePrecisionScore', scores, targets);
  const { values, isOne, below } = ranked('averagePrecisionScore', scores, targets);
  const ones = cast(sum(cast(isOne, 'i32')), 'f32');
  const taken = sub(values.size, below(logicalNot(isNan(values)))(false));
  const right = sub(ones, below(isOne)(false));
  return unlessNan(values, div(sum(where(isOne, div(right, maximum(taken, 1)), 0)), ones));
}

function unlessNan(scores: Tensor, figure: Tensor): Tensor {
  return where(some(isNan(scores)), NaN, figure);
}

/** For each score how many items of a kind have a lesser one, or none greater, as f32. */
function ranked(
  op: string,
  given: Tensor,
  targets: Tensor,
): { values: Tensor; isOne: Tensor; below: (kind: Tensor) => (orEqual: boolean) => Tensor } {
  const { scores, isOne } = pair(op, given, targets);
  const [ordered, order] = sort(scores, 0);
  const below = (kind: Tensor): ((orEqual: boolean) => Tensor) => {
    const counted = cumsum(cast(indexSelect(kind, 0, order), 'i32'), 0);
    const upTo = cat([zeros([1], { dtype: 'i32' }), counted], 0);
    return (orEqual) => cast(indexSelect(upTo, 0, searchsorted(ordered, scores, { right: orEqual })), 'f32');
  };
  return { values: scores, isOne, below };
}

export interface BinOptions {
  /** How many; 200 by default. */
  readonly bins?: number;
  /** Where scores lie; [0, 1] by default. What is outside counts to the outermost bins. */
  readonly range?: readonly [number, number];
}

/** How many items of each class have scores in each bin, and how many scores were NaN. */
export interface BinCounts {
  /** i32 [2, bins]. */
  readonly counts: Tensor;
  readonly nan: Tensor;
}

const binTable: arg.Table<BinOptions> = { bins: arg.count(1), range: arg.tupleOf(arg.finite, arg.finite) };
const takesAuc = arg.takes<typeof auc>(['options', arg.options<BinOptions>(binTable)]);
const takesPrecisions = arg.takes<typeof averagePrecision>(['options', arg.options<BinOptions>(binTable)]);

/**
 * The area under the receiver's curve from counts in bins: scores of one bin count as equal, so it
 * is off by at most half the chance that two items of different classes share a bin.
 */
export function auc(options: BinOptions = {}): MetricFunctions<BinCounts> {
  takesAuc('auc', options);
  return binned('auc', options, (zerosIn, onesIn) => {
    const [others, ones] = [sum(zerosIn), sum(onesIn)];
    const before = sub(cumsum(zerosIn, 0), zerosIn);
    const beaten = div(add(before, mul(zerosIn, 0.5)), others);
    return sum(mul(beaten, div(onesIn, ones)));
  });
}

/** The mean precision along the recalls, from counts in bins. */
export function averagePrecision(options: BinOptions = {}): MetricFunctions<BinCounts> {
  takesPrecisions('averagePrecision', options);
  return binned('averagePrecision', options, (zerosIn, onesIn) => {
    const above = (counts: Tensor): Tensor => flip(cumsum(flip(counts, 0), 0), 0);
    const right = above(onesIn);
    const taken = add(right, above(zerosIn));
    return sum(mul(div(right, maximum(taken, 1)), div(onesIn, sum(onesIn))));
  });
}

function binned(
  op: string,
  { bins = 200, range: [low, high] = [0, 1] }: BinOptions,
  figure: (zerosIn: Tensor, onesIn: Tensor) => Tensor,
): MetricFunctions<BinCounts> {
  if (low >= high) throw new TensorError('E_VALUE', op, `the range is empty: [${low}, ${high}]`);
  return {
    init: () => ({ counts: zeros([2, bins], { dtype: 'i32' }), nan: zeros([], { dtype: 'i32' }) }),
    update: ({ counts, nan }, given, targets) => {
      const { scores, isOne } = pair(op, given, targets);
      const lost = isNan(scores);
      const share = div(sub(cast(where(lost, low, scores), 'f32'), low), high - low);
      const bin = cast(clamp(mul(share, bins), 0, bins - 1), 'i32');
      const place = add(mul(cast(isOne, 'i32'), bins), bin);
      const seen = segmentSum(cast(logicalNot(lost), 'i32'), place, 2 * bins);
      return {
        counts: add(counts, reshape(seen, [2, bins])),
        nan: add(nan, sum(cast(lost, 'i32'))),
      };
    },
    compute: ({ counts, nan }) => {
      const wide = cast(counts, 'f32');
      return where(gt(nan, 0), NaN, figure(select(wide, 0, 0), select(wide, 0, 1)));
    },
    merge: (a, b) => ({ counts: add(a.counts, b.counts), nan: add(a.nan, b.nan) }),
  };
}
