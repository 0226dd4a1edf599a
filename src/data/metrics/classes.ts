// Metrics of classes: how often the predicted one is right, and the table of which was taken for
// which, with what follows from it.

import { TensorError } from '../../errors.ts';
import * as arg from '../../ir/arguments.ts';
import { zeros } from '../../tensor/ops/creation/creation.ts';
import { add, div, mul, sub } from '../../tensor/ops/elementwise/arithmetic.ts';
import { cast } from '../../tensor/ops/elementwise/cast.ts';
import { gt, logicalAnd, where } from '../../tensor/ops/elementwise/compare.ts';
import { sum } from '../../tensor/ops/reduce/reduce.ts';
import { diagonal } from '../../tensor/ops/shape/movement.ts';
import { segmentSum } from '../../tensor/ops/shape/scatter.ts';
import { reshape } from '../../tensor/ops/shape/view.ts';
import type { Tensor } from '../../tensor/tensor.ts';
import { hits, labelsOf, type LabelOptions } from './labels.ts';
import type { MetricFunctions } from './metric.ts';
import { plus, together, valueOf, zeroTotal, type Total } from './total.ts';

/** How figures of classes become one: by counting items alike, classes alike, classes by how many items they have; or not. */
export type Averaging = 'micro' | 'macro' | 'weighted' | 'none';

export interface AccuracyOptions extends LabelOptions {
  /** A target counts as found among so many of the greatest scores; 1 by default. */
  readonly topK?: number;
  /** The mean over items (`micro`, the default) or over classes that occur (`macro`). */
  readonly average?: 'micro' | 'macro';
  /** How many classes there are, for `macro`; none by default. */
  readonly classes?: number;
}

/** What was right, and how many there were: of all, or of each class. */
export interface Rate {
  readonly right: Total;
  readonly seen: Total;
}

const labelTable: arg.Table<LabelOptions> = { threshold: arg.finite, ignoreIndex: arg.integer };
const takesAccuracy = arg.takes<typeof accuracy>([
  'options',
  arg.options<AccuracyOptions>({
    ...labelTable,
    topK: arg.count(1),
    average: arg.oneOf('micro', 'macro'),
    classes: arg.count(1),
  }),
]);

/**
 * The share of targets that are predicted. Predictions are scores [N, C, …], labels, or scores of
 * class 1 in the targets' shape.
 */
export function accuracy(options: AccuracyOptions = {}): MetricFunctions<Rate> {
  takesAccuracy('accuracy', options);
  const { topK = 1, average = 'micro', classes } = options;
  if (average === 'macro' && classes === undefined)
    throw new TensorError(
      'E_VALUE',
      'accuracy',
      'the average over classes needs their number',
      '{ classes: 10 }',
    );
  const known = average === 'macro' ? classes : undefined;
  const shape = known === undefined ? [] : [known];
  return {
    init: () => ({ right: zeroTotal(shape), seen: zeroTotal(shape) }),
    update: ({ right, seen }, preds, targets) => {
      const { target, counts } = labelsOf('accuracy', preds, targets, options, known);
      const found = logicalAnd(counts, hits('accuracy', preds, targets, topK, options));
      const counted = (mask: Tensor): Tensor =>
        known === undefined
          ? cast(sum(cast(mask, 'i32')), 'f32')
          : cast(segmentSum(cast(mask, 'i32'), where(mask, target, 0), known), 'f32');
      return { right: plus(right, counted(found)), seen: plus(seen, counted(counts)) };
    },
    compute: ({ right, seen }) => {
      const [found, there] = [valueOf(right), valueOf(seen)];
      if (known === undefined) return div(found, there);
      return meanOf(div(found, there), gt(there, 0));
    },
    merge: (a, b) => ({ right: together(a.right, b.right), seen: together(a.seen, b.seen) }),
  };
}

/** The mean of the values where the mask holds. */
function meanOf(values: Tensor, mask: Tensor): Tensor {
  return div(sum(where(mask, values, 0)), cast(sum(cast(mask, 'i32')), 'f32'));
}

export interface ConfusionOptions extends LabelOptions {
  /** How many classes there are. */
  readonly classes: number;
  /** Counts as shares of their target's class, of the predicted one's, or of all; counts (i32) by default. */
  readonly normalize?: 'target' | 'predicted' | 'all';
}

const classCount = { ...labelTable, classes: arg.count(1) };
const takesConfusion = arg.takes<typeof confusionMatrix>([
  'options',
  arg.settings<ConfusionOptions>({ ...classCount, normalize: arg.oneOf('target', 'predicted', 'all') }, [
    'classes',
  ]),
]);

/** [C, C]: how many items of class `row` were taken for class `column`. */
export function confusionMatrix(options: ConfusionOptions): MetricFunctions<Tensor> {
  takesConfusion('confusionMatrix', options);
  return tableOf('confusionMatrix', options, (table) => {
    if (options.normalize === undefined) return table;
    const counts = cast(table, 'f32');
    const axes = { target: 1, predicted: 0, all: [0, 1] }[options.normalize];
    const whole = sum(counts, axes, { keepdim: true });
    return where(gt(whole, 0), div(counts, whole), 0);
  });
}

/** A metric that follows from the table of targets and predictions. */
function tableOf(
  op: string,
  options: LabelOptions & { readonly classes: number },
  compute: (table: Tensor) => Tensor,
): MetricFunctions<Tensor> {
  const { classes } = options;
  return {
    init: () => zeros([classes, classes], { dtype: 'i32' }),
    update: (table, preds, targets) => {
      const { predicted, target, counts } = labelsOf(op, preds, targets, options, classes);
      const place = where(counts, add(mul(target, classes), predicted), 0);
      return add(
        table,
        reshape(segmentSum(cast(counts, 'i32'), place, classes * classes), [classes, classes]),
      );
    },
    compute,
    merge: (a, b) => add(a, b),
  };
}

export interface ClassOptions extends LabelOptions {
  /** How many classes there are. */
  readonly classes: number;
  /** `macro` by default: the mean over the classes that occur. */
  readonly average?: Averaging;
}

export interface F1Options extends ClassOptions {
  /** How much more recall counts than precision; 1 by default. */
  readonly beta?: number;
}

const averaging: arg.Kind<Averaging> = arg.oneOf('micro', 'macro', 'weighted', 'none');
const classOptions = arg.settings<ClassOptions>({ ...classCount, average: averaging }, ['classes']);
const takesPrecision = arg.takes<typeof precision>(['options', classOptions]);
const takesRecall = arg.takes<typeof recall>(['options', classOptions]);
const takesF1 = arg.takes<typeof f1>([
  'options',
  arg.settings<F1Options>({ ...classCount, average: averaging, beta: arg.positive }, ['classes']),
]);

/** Of the items that were taken for a class, the share that is of it; 0 where none was. */
export function precision(options: ClassOptions): MetricFunctions<Tensor> {
  takesPrecision('precision', options);
  return averaged('precision', options, ({ right, predicted }) => ratio(right, predicted));
}

/** Of the items of a class, the share that was taken for it; 0 where there are none. */
export function recall(options: ClassOptions): MetricFunctions<Tensor> {
  takesRecall('recall', options);
  return averaged('recall', options, ({ right, target }) => ratio(right, target));
}

/** The harmonic mean of precision and recall, (1 + β²)·right / (β²·targets + predicted). */
export function f1(options: F1Options): MetricFunctions<Tensor> {
  takesF1('f1', options);
  const squared = (options.beta ?? 1) ** 2;
  return averaged('f1', options, ({ right, target, predicted }) =>
    ratio(mul(right, 1 + squared), add(mul(target, squared), predicted)),
  );
}

/** How many items of each class were found, there are, and were predicted. */
interface Counts {
  readonly right: Tensor;
  readonly target: Tensor;
  readonly predicted: Tensor;
}

function ratio(part: Tensor, whole: Tensor): Tensor {
  return where(gt(whole, 0), div(part, whole), 0);
}

function averaged(
  op: string,
  options: ClassOptions,
  figure: (counts: Counts) => Tensor,
): MetricFunctions<Tensor> {
  const { average = 'macro' } = options;
  return tableOf(op, options, (table) => {
    const counts = cast(table, 'f32');
    const [right, target, predicted] = [diagonal(counts), sum(counts, 1), sum(counts, 0)];
    switch (average) {
      case 'micro':
        return figure({ right: sum(right), target: sum(target), predicted: sum(predicted) });
      case 'none':
        return figure({ right, target, predicted });
      case 'weighted':
        return div(sum(mul(figure({ right, target, predicted }), target)), sum(target));
      case 'macro': {
        const occurs = gt(sub(add(target, predicted), right), 0);
        return meanOf(figure({ right, target, predicted }), occurs);
      }
      default:
        return average satisfies never;
    }
  });
}
