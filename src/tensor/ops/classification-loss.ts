// Losses of classes: negative log-likelihood and cross-entropy, of labels or of probabilities.

import { TensorError } from '../../errors.ts';
import * as arg from '../../ir/arguments.ts';
import { add, binary, cast, div, fullLike, mul, neg, reduce, where } from '../../ir/build.ts';
import { isFloat, type FloatDType } from '../../ir/dtype.ts';
import { dims, type GraphBuilder, type Node } from '../../ir/graph.ts';
import { watchRange } from '../debug.ts';
import { aTensor } from '../expect.ts';
import { Tensor } from '../tensor.ts';
import * as formula from '../formula/elementwise.ts';
import { allAxes, type LossOptions, lossOptions, reduced } from './loss-reduction.ts';
import { apply, casted, checkFloat, checkInteger, show } from './operand.ts';

export interface NllOptions extends LossOptions {
  /** One factor per class; the mean divides by the sum of the targets' factors; 1 each by default. */
  readonly weight?: Tensor;
  /** Targets of this class count for nothing. None by default (PyTorch: −100). */
  readonly ignoreIndex?: number;
}

export interface CrossEntropyOptions extends NllOptions {
  /** How much of the target is spread evenly over all classes; 0 by default. */
  readonly labelSmoothing?: number;
}

/** @internal */
export const nllOptions: arg.Table<NllOptions> = {
  ...lossOptions,
  weight: aTensor,
  ignoreIndex: arg.integer,
};

/** Axis of the classes: the only one, or the second. Checks the target against the rest. */
function classAxis(op: string, x: Tensor, target: Tensor, weight: Tensor | undefined): number {
  if (x.rank === 0) throw new TensorError('E_SHAPE', op, `expects [C] or [N,C,…]: ${show(x)}`);
  const axis = x.rank === 1 ? 0 : 1;
  const expected = x.shape.filter((_, i) => i !== axis);
  if (target.rank !== expected.length || !target.shape.every((dim, i) => dim === expected[i])) {
    throw new TensorError(
      'E_SHAPE',
      op,
      `targets must be [${expected.join(',')}] classes for ${show(x)}: ${show(target)}`,
      x.rank > 2 ? 'classes on axis 1: [N,C,…]' : undefined,
    );
  }
  checkWeight(op, weight, x.shape[axis]!);
  return axis;
}

function watchLabels(op: string, x: Tensor, axis: number, target: Tensor, ignored: number | undefined): void {
  const classes = x.shape[axis]!;
  watchRange(op, 'label', target, 0, classes, `the ${classes} classes of ${show(x)}`, ignored);
}

function checkWeight(op: string, weight: Tensor | undefined, classes: number): void {
  if (weight !== undefined && (weight.rank !== 1 || weight.size !== classes)) {
    throw new TensorError('E_SHAPE', op, `the weight must be [${classes}]: ${show(weight)}`);
  }
}

/** What a formula of class losses works on. */
interface Picked {
  readonly logp: Node;
  readonly axis: number;
  /** One factor per class along `axis`, spread to `logp`. */
  readonly weight: Node | undefined;
}

/** −Σ over classes of what `share` gives each class's (weighted) log-probability. */
function classSum(b: GraphBuilder, { logp, axis, weight }: Picked, share: (weighted: Node) => Node): Node {
  const weighted = weight === undefined ? logp : mul(b, logp, weight);
  return neg(b, reduce(b, 'sum', share(weighted), [axis]));
}

/** Losses of integer targets, smoothed, ignored and reduced. */
function targetLoss(b: GraphBuilder, picked: Picked, target: Node, options: CrossEntropyOptions): Node {
  const { reduction = 'mean', labelSmoothing = 0, ignoreIndex } = options;
  const { logp, axis, weight } = picked;
  const hit = formula.pointedAt(b, logp, target, axis);
  const onlyTarget = (x: Node): Node => where(b, hit, x, fullLike(b, x, 0));
  let losses = classSum(b, picked, onlyTarget);
  if (labelSmoothing > 0) {
    const even = classSum(b, picked, (x) => x);
    losses = add(b, mul(b, losses, 1 - labelSmoothing), mul(b, even, labelSmoothing / dims(logp)[axis]!));
  }
  if (ignoreIndex === undefined && weight === undefined) return reduced(b, losses, reduction);
  const one = fullLike(b, losses, 1);
  let factor = weight === undefined ? one : reduce(b, 'sum', onlyTarget(weight), [axis]);
  if (ignoreIndex !== undefined) {
    const ignored = binary(b, 'eq', cast(b, formula.narrowIndex(b, target), 'i32'), ignoreIndex);
    losses = where(b, ignored, fullLike(b, losses, 0), losses);
    factor = where(b, ignored, fullLike(b, factor, 0), factor);
  }
  return reduced(b, losses, reduction, reduce(b, 'sum', factor, allAxes(factor)));
}

function spreadWeight(b: GraphBuilder, weight: Node | undefined, like: Node, axis: number): Node | undefined {
  if (weight === undefined) return undefined;
  return formula.spreadTo(
    b,
    formula.alongAxis(b, cast(b, weight, like.dtype), dims(like).length, axis),
    like,
  );
}

const takesNllLoss = arg.takes<typeof nllLoss>(
  ['x', aTensor],
  ['the targets', aTensor],
  ['options', arg.options<NllOptions>(nllOptions)],
);

/**
 * −x at the target class, for log-probabilities x [N,C,…] (or [C]) and integer targets [N,…].
 *
 * @example
 * const labels = sn.tensor([2, 0], { dtype: 'i32' });
 * const logp = sn.tensor([[-0.5, -1, -3], [-2, -0.25, -4]]);
 * sn.nllLoss(logp, labels);
 */
export function nllLoss(x: Tensor, target: Tensor, options: NllOptions = {}): Tensor<FloatDType> {
  takesNllLoss('nllLoss', x, target, options);
  checkFloat('nllLoss', x, options.weight);
  checkInteger('nllLoss', 'the targets', target);
  const axis = classAxis('nllLoss', x, target, options.weight);
  watchLabels('nllLoss', x, axis, target, options.ignoreIndex);
  return apply([casted('nllLoss', x), target, options.weight], (b, node, classes, w) =>
    formula.widened(b, node, (logp) =>
      targetLoss(b, { logp, axis, weight: spreadWeight(b, w, logp, axis) }, classes, options),
    ),
  );
}

/** @internal */
export const crossEntropyOptions: arg.Table<CrossEntropyOptions> = {
  ...nllOptions,
  labelSmoothing: arg.share,
};
const takesCrossEntropy = arg.takes<typeof crossEntropy>(
  ['the logits', aTensor],
  ['the target', aTensor],
  ['options', arg.options<CrossEntropyOptions>(crossEntropyOptions)],
);

/**
 * −log softmax of the logits [N,C,…] (or [C]) at the target: integer classes [N,…], or
 * probabilities of the logits' shape.
 *
 * @example
 * const x = sn.tensor([[1, -2, 3], [0.5, 4, -1]]);
 * const labels = sn.tensor([2, 0], { dtype: 'i32' });
 * sn.crossEntropy(x, labels);
 */
export function crossEntropy(
  logits: Tensor,
  target: Tensor,
  options: CrossEntropyOptions = {},
): Tensor<FloatDType> {
  takesCrossEntropy('crossEntropy', logits, target, options);
  const op = 'crossEntropy';
  const { weight } = options;
  checkFloat(op, logits, weight);
  if (isFloat(target.dtype)) return probabilityLoss(op, casted(op, logits), target, options);
  checkInteger(op, 'the targets', target);
  const axis = classAxis(op, logits, target, weight);
  watchLabels(op, logits, axis, target, options.ignoreIndex);
  return apply([casted(op, logits), target, weight], (b, node, classes, w) =>
    formula.widened(b, node, (wide) => {
      const logp = formula.logSoftmax(b, wide, [axis]);
      return targetLoss(b, { logp, axis, weight: spreadWeight(b, w, logp, axis) }, classes, options);
    }),
  );
}

function probabilityLoss(op: string, logits: Tensor, target: Tensor, options: CrossEntropyOptions): Tensor {
  const { reduction = 'mean', labelSmoothing = 0, weight, ignoreIndex } = options;
  if (
    logits.rank === 0 ||
    logits.rank !== target.rank ||
    !logits.shape.every((dim, i) => dim === target.shape[i])
  ) {
    throw new TensorError(
      'E_SHAPE',
      op,
      `class probabilities must have the logits' shape: ${show(logits, target)}`,
      'integer targets for classes',
    );
  }
  if (ignoreIndex !== undefined) {
    throw new TensorError('E_VALUE', op, `ignoreIndex needs integer targets: ${show(target)}`);
  }
  const axis = logits.rank === 1 ? 0 : 1;
  const classes = logits.shape[axis]!;
  checkWeight(op, weight, classes);
  return apply([logits, target, weight], (b, node, probabilities, w) =>
    formula.widened(b, node, (wide) => {
      const logp = formula.logSoftmax(b, wide, [axis]);
      const given = cast(b, probabilities, wide.dtype);
      const smooth =
        labelSmoothing === 0 ? given : add(b, mul(b, given, 1 - labelSmoothing), labelSmoothing / classes);
      const picked = { logp, axis, weight: spreadWeight(b, w, logp, axis) };
      const losses = classSum(b, picked, (x) => mul(b, x, smooth));
      const samples = dims(losses).reduce((product, dim) => product * dim, 1);
      if (reduction !== 'mean') return reduced(b, losses, reduction);
      return div(b, reduce(b, 'sum', losses, allAxes(losses)), samples);
    }),
  );
}
