// Margins between the scores of classes: one class, or several, of each sample.

import type { FloatDType } from '../../../ir/dtype.ts';
import { TensorError } from '../../../errors.ts';
import * as arg from '../../../ir/arguments.ts';
import {
  add,
  binary,
  broadcast,
  cast,
  div,
  fullLike,
  mul,
  neg,
  reduce,
  reshape,
  sub,
  where,
} from '../../../ir/build.ts';
import { dims, type Node } from '../../../ir/graph.ts';
import { watchRange } from '../../debug.ts';
import { anOperand, aTensor } from '../../expect.ts';
import type { Tensor, TensorLike } from '../../tensor.ts';
import * as formula from '../../formula/elementwise.ts';
import { hinge, lossOptions, reduced, type LossOptions } from '../loss-reduction.ts';
import { apply, casted, checkFloat, checkInteger, fit, operandType, show } from '../operand.ts';

const takesSoftMargin = arg.takes<typeof softMarginLoss>(
  ['x', aTensor],
  ['the target', anOperand],
  ['options', arg.options<LossOptions>(lossOptions)],
);

/**
 * log(1 + e^(−target·x)) for targets 1 and −1.
 *
 * @example
 * const x = sn.tensor([[1, -2, 3], [0.5, 4, -1]]);
 * const signs = sn.tensor([[1, -1, 1], [1, 1, -1]]);
 * sn.softMarginLoss(x, signs);
 */
export function softMarginLoss(x: Tensor, target: TensorLike, options: LossOptions = {}): Tensor<FloatDType> {
  takesSoftMargin('softMarginLoss', x, target, options);
  const dtype = operandType('softMarginLoss', [x, target], 'realFloat');
  return fit(
    'softMarginLoss',
    [x, target],
    () => formula.wideType(dtype),
    (b, p, q) => {
      const losses = formula.softplus(b, neg(b, mul(b, q, p)));
      return cast(b, reduced(b, losses, options.reduction ?? 'mean'), dtype);
    },
  );
}

/** Requires scores [N, C] or [C] and what belongs to them. */
function checkScores(op: string, x: Tensor, target: Tensor, shape: readonly number[], what: string): void {
  if ((x.rank === 1 || x.rank === 2) && x.size > 0 && sameSizes(target, shape)) return;
  throw new TensorError('E_SHAPE', op, `expects [N,C] or [C] and ${what}: ${show(x, target)}`);
}

function sameSizes(x: Tensor, shape: readonly number[]): boolean {
  return x.rank === shape.length && x.shape.every((dim, i) => dim === shape[i]);
}

export interface MultiMarginOptions extends LossOptions {
  /** The exponent of each margin, 1 (default) or 2. */
  readonly p?: number;
  /** 1 by default. */
  readonly margin?: number;
  /** One factor per class; 1 each by default. */
  readonly weight?: Tensor;
}

/** @internal */
export const multiMarginOptions: arg.Table<MultiMarginOptions> = {
  ...lossOptions,
  p: arg.kind<number>('1 or 2', (value) => value === 1 || value === 2),
  margin: arg.number,
  weight: aTensor,
};
const takesMultiMargin = arg.takes<typeof multiMarginLoss>(
  ['x', aTensor],
  ['the targets', aTensor],
  ['options', arg.options<MultiMarginOptions>(multiMarginOptions)],
);

/**
 * Σ over other classes of max(0, margin − x[target] + x)ᵖ, over the number of classes, for scores
 * [N, C] and classes [N].
 *
 * @example
 * const x = sn.tensor([[1, -2, 3], [0.5, 4, -1]]);
 * const labels = sn.tensor([2, 0], { dtype: 'i32' });
 * sn.multiMarginLoss(x, labels);
 */
export function multiMarginLoss(
  x: Tensor,
  target: Tensor,
  options: MultiMarginOptions = {},
): Tensor<FloatDType> {
  takesMultiMargin('multiMarginLoss', x, target, options);
  const op = 'multiMarginLoss';
  const { p = 1, margin = 1, weight, reduction = 'mean' } = options;
  checkFloat(op, x, weight);
  checkInteger(op, 'the targets', target);
  checkScores(op, x, target, x.shape.slice(0, -1), 'classes [N] or []');
  const classes = x.shape.at(-1)!;
  if (weight !== undefined && !sameSizes(weight, [classes]))
    throw new TensorError('E_SHAPE', op, `the weight must be [${classes}]: ${show(weight)}`);
  watchRange(op, 'label', target, 0, classes, `the ${classes} classes of ${show(x)}`);
  const last = x.rank - 1;
  return apply([casted(op, x), target, weight], (b, node, labels, w) =>
    formula.widened(b, node, (wide) => {
      const hit = formula.pointedAt(b, wide, labels, last);
      const zero = fullLike(b, wide, 0);
      const own = (values: Node): Node => {
        const sum = reduce(b, 'sum', where(b, hit, values, zero), [last]);
        return broadcast(b, reshape(b, sum, [...x.shape.slice(0, -1), 1]), x.shape);
      };
      const gap = hinge(b, add(b, sub(b, wide, own(wide)), margin));
      const powers = p === 2 ? formula.square(b, gap) : gap;
      const scaled =
        w === undefined ? powers : mul(b, powers, own(broadcast(b, cast(b, w, wide.dtype), x.shape)));
      const losses = div(b, reduce(b, 'sum', where(b, hit, zero, scaled), [last]), classes);
      return reduced(b, losses, reduction);
    }),
  );
}

const takesMultilabelMargin = arg.takes<typeof multilabelMarginLoss>(
  ['x', aTensor],
  ['the targets', aTensor],
  ['options', arg.options<LossOptions>(lossOptions)],
);

/**
 * Σ over the sample's classes t and all others i of max(0, 1 − x[t] + x[i]), over the number of
 * classes. Targets [N, C] list the sample's classes, and end at the first negative one.
 *
 * @example
 * const x = sn.tensor([[1, -2, 3], [0.5, 4, -1]]);
 * const sets = sn.tensor([[0, 2, -1], [1, -1, 0]], { dtype: 'i32' });
 * sn.multilabelMarginLoss(x, sets);
 */
export function multilabelMarginLoss(
  x: Tensor,
  target: Tensor,
  options: LossOptions = {},
): Tensor<FloatDType> {
  takesMultilabelMargin('multilabelMarginLoss', x, target, options);
  const op = 'multilabelMarginLoss';
  checkFloat(op, x);
  checkInteger(op, 'the targets', target);
  checkScores(op, x, target, x.shape, "targets of the scores' shape");
  const classes = x.shape.at(-1)!;
  const lead = x.shape.slice(0, -1);
  const last = x.rank - 1;
  return apply([casted(op, x), target], (b, node, labels) =>
    formula.widened(b, node, (wide) => {
      const narrow = cast(b, formula.narrowIndex(b, labels), 'i32');
      // A label counts as long as none before it was negative.
      const ended = b.add('scan', [cast(b, binary(b, 'lt', narrow, 0), 'i32')], {
        monoid: 'sum',
        axis: last,
        reverse: false,
        exclusive: false,
      }) as Node;
      const counts = binary(b, 'eq', ended, 0);
      // [.., targets, classes].
      const pairs = [...lead, classes, classes];
      const across = (values: Node): Node => broadcast(b, reshape(b, values, [...lead, classes, 1]), pairs);
      const isHere = binary(b, 'eq', formula.iota(b, pairs, last + 1), across(narrow));
      const hit = binary(b, 'and', isHere, across(counts));
      const along = broadcast(b, reshape(b, wide, [...lead, 1, classes]), pairs);
      const zero = fullLike(b, along, 0);
      const own = reduce(b, 'sum', where(b, hit, along, zero), [last + 1]);
      const isTarget = reduce(b, 'max', cast(b, hit, 'i32'), [last]);
      const isOther = broadcast(b, reshape(b, binary(b, 'eq', isTarget, 0), [...lead, 1, classes]), pairs);
      const gap = hinge(b, add(b, sub(b, along, across(own)), 1));
      const counted = binary(b, 'and', isOther, across(counts));
      const losses = div(b, reduce(b, 'sum', where(b, counted, gap, zero), [last, last + 1]), classes);
      return reduced(b, losses, options.reduction ?? 'mean');
    }),
  );
}

export interface MultilabelSoftMarginOptions extends LossOptions {
  /** A factor per class; 1 each by default. */
  readonly weight?: TensorLike;
}

/** @internal */
export const multilabelSoftMarginOptions: arg.Table<MultilabelSoftMarginOptions> = {
  ...lossOptions,
  weight: anOperand,
};
const takesMultilabelSoft = arg.takes<typeof multilabelSoftMarginLoss>(
  ['x', aTensor],
  ['the targets', anOperand],
  ['options', arg.options<MultilabelSoftMarginOptions>(multilabelSoftMarginOptions)],
);

/**
 * The mean over classes (the last axis) of the binary cross-entropy of sigmoid(x), targets 0 or 1.
 *
 * @example
 * const x = sn.tensor([[1, -2, 3], [0.5, 4, -1]]);
 * const q = sn.tensor([[0.5, 0.25, 0.25], [0, 1, 0]]);
 * sn.multilabelSoftMarginLoss(x, q);
 */
export function multilabelSoftMarginLoss(
  x: Tensor,
  target: TensorLike,
  options: MultilabelSoftMarginOptions = {},
): Tensor<FloatDType> {
  takesMultilabelSoft('multilabelSoftMarginLoss', x, target, options);
  const op = 'multilabelSoftMarginLoss';
  if (x.rank === 0) throw new TensorError('E_SHAPE', op, `expects [..,C]: ${show(x)}`);
  const { weight = 1, reduction = 'mean' } = options;
  const dtype = operandType(op, [x, target], 'realFloat');
  return fit(
    op,
    [x, target, weight],
    () => formula.wideType(dtype),
    (b, p, q, w) => {
      const positive = mul(b, q, formula.softplus(b, neg(b, p)));
      const negative = mul(b, sub(b, 1, q), formula.softplus(b, p));
      const losses = mul(b, add(b, positive, negative), w);
      const last = dims(losses).length - 1;
      const means = div(b, reduce(b, 'sum', losses, [last]), dims(losses)[last]!);
      return cast(b, reduced(b, means, reduction), dtype);
    },
  );
}
