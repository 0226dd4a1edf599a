// Converts predictions and targets of classes to two vectors of labels, and says which of their positions
// count.

import { TensorError } from '../../errors.ts';
import { dtypeKind, isFloat } from '../../ir/dtype.ts';
import { watchRange } from '../../tensor/debug.ts';
import { expectTensor } from '../../tensor/expect.ts';
import { cast } from '../../tensor/ops/elementwise/cast.ts';
import { eq, ge, gt, logicalAnd, lt, ne } from '../../tensor/ops/elementwise/compare.ts';
import { show } from '../../tensor/ops/operand.ts';
import { any as some } from '../../tensor/ops/reduce/reduce.ts';
import { argmax } from '../../tensor/ops/reduce/extremum.ts';
import { topk } from '../../tensor/ops/reduce/sort.ts';
import { reshape, unsqueeze } from '../../tensor/ops/shape/view.ts';
import type { Tensor } from '../../tensor/tensor.ts';

export interface LabelOptions {
  /** Above which a score stands for class 1, where predictions have no axis of classes; 0.5 by default. */
  readonly threshold?: number;
  /** Targets of this label count for nothing; none by default. */
  readonly ignoreIndex?: number;
}

/** Labels as vectors of i32. */
export interface Labels {
  readonly predicted: Tensor;
  readonly target: Tensor;
  /** bool: which of them count. */
  readonly counts: Tensor;
}

const ofIntegers = (x: Tensor): boolean => ['int', 'uint', 'bool'].includes(dtypeKind(x.dtype));

function same(a: readonly number[], b: readonly number[]): boolean {
  return a.length === b.length && a.every((size, axis) => size === b[axis]);
}

/** The axis of classes of scores: the only one, or the second; undefined where there is none. */
function classAxis(op: string, preds: Tensor, targets: Tensor): number | undefined {
  expectTensor(op, 'the predictions', preds);
  expectTensor(op, 'the targets', targets);
  if (!ofIntegers(targets))
    throw new TensorError('E_DTYPE', op, `the targets must be labels: ${show(targets)}`, 'targets.toInt()');
  if (same(preds.shape, targets.shape)) return undefined;
  const axis = preds.rank === 1 ? 0 : 1;
  const rest = preds.shape.filter((_, i) => i !== axis);
  if (isFloat(preds.dtype) && preds.rank > 0 && same(rest, targets.shape)) return axis;
  const problem = `expects labels of one shape, or scores [N,C,…] for targets [N,…]: ${show(preds, targets)}`;
  throw new TensorError('E_SHAPE', op, problem);
}

const flat = (x: Tensor): Tensor => reshape(x, [x.size]);

/** The label that scores stand for, or the labels themselves, beside the targets. `classes` are known. */
export function labelsOf(
  op: string,
  preds: Tensor,
  targets: Tensor,
  { threshold = 0.5, ignoreIndex }: LabelOptions,
  classes?: number,
): Labels {
  const axis = classAxis(op, preds, targets);
  if (axis !== undefined && classes !== undefined && preds.shape[axis] !== classes)
    throw new TensorError('E_SHAPE', op, `the scores must be of ${classes} classes: ${show(preds)}`);
  const scored = isFloat(preds.dtype) ? gt(preds, threshold) : preds;
  const predicted = flat(cast(axis === undefined ? scored : argmax(preds, axis), 'i32'));
  const target = flat(cast(targets, 'i32'));
  const counts = ignoreIndex === undefined ? eq(target, target) : ne(target, ignoreIndex);
  if (classes === undefined) return { predicted, target, counts };
  const where = `the ${classes} classes`;
  watchRange(op, 'label', target, 0, classes, where, ignoreIndex);
  watchRange(op, 'predicted label', predicted, 0, classes, where);
  const inside = (x: Tensor): Tensor => logicalAnd(ge(x, 0), lt(x, classes));
  return { predicted, target, counts: logicalAnd(counts, logicalAnd(inside(predicted), inside(target))) };
}

/** Which targets are among the `k` greatest scores, as `labelsOf` counts them: bool. */
export function hits(op: string, preds: Tensor, targets: Tensor, k: number, options: LabelOptions): Tensor {
  const { predicted, target } = labelsOf(op, preds, targets, options);
  if (k === 1) return eq(predicted, target);
  const axis = classAxis(op, preds, targets);
  if (axis === undefined)
    throw new TensorError('E_SHAPE', op, `the top ${k} need scores, one for each class: ${show(preds)}`);
  const [, best] = topk(preds, k, axis);
  return flat(some(eq(best, unsqueeze(cast(targets, 'i32'), axis)), axis));
}
