// Losses. `reduction` is 'mean' (default), 'sum' or 'none'; 16-bit floats are computed in f32.
// Class losses pick the target by comparing positions, not by gathering, so that loss and gradient
// are row reductions that fuse.

import { TensorError } from '../../errors.ts';
import {
  add,
  binary,
  cast,
  div,
  fullLike,
  mul,
  neg,
  reduce,
  reshape,
  sub,
  unary,
  where,
} from '../../ir/build.ts';
import * as arg from '../../ir/arguments.ts';
import { isFloat } from '../../ir/dtype.ts';
import { dims, type GraphBuilder, type Node } from '../../ir/graph.ts';
import { watchRange, watchShares } from '../debug.ts';
import { anOperand, aTensor } from '../expect.ts';
import { Tensor, type TensorLike } from '../tensor.ts';
import { binaryEntropy, logitEntropy } from '../formula/binary-entropy.ts';
import * as formula from './elementwise/formula.ts';
import { apply, checkFloat, checkInteger, fit, operandType, show } from './operand.ts';

/** What becomes of the losses of the elements. */
export type Reduction = 'mean' | 'sum' | 'none';

export interface LossOptions {
  /** What becomes of the elements' losses; 'mean' by default. */
  readonly reduction?: Reduction;
}

const lossOptions: arg.Table<LossOptions> = { reduction: arg.oneOf('mean', 'sum', 'none') };

function allAxes(x: Node): number[] {
  return dims(x).map((_, axis) => axis);
}

/** The losses, their sum, or their sum over `count` (how many they are by default). */
function reduced(b: GraphBuilder, losses: Node, reduction: Reduction, count?: Node): Node {
  if (reduction === 'none') return losses;
  const total = reduce(b, 'sum', losses, allAxes(losses));
  if (reduction === 'sum') return total;
  if (count !== undefined) return div(b, total, count);
  const all = formula.mean(b, losses, allAxes(losses));
  return reshape(b, all, []);
}

/** A loss of each pair of elements, in f32 for 16-bit floats. */
function elementwise(
  op: string,
  x: Tensor,
  target: TensorLike,
  options: LossOptions,
  make: (b: GraphBuilder, x: Node, target: Node) => Node,
): Tensor {
  const reduction = options.reduction ?? 'mean';
  const dtype = operandType(op, [x, target], 'float');
  return fit(
    op,
    [x, target],
    () => formula.wideType(dtype),
    (b, p, q) => cast(b, reduced(b, make(b, p, q), reduction), dtype),
  );
}

const takesMseLoss = arg.takes<typeof mseLoss>(
  ['x', aTensor],
  ['the target', anOperand],
  ['options', arg.options<LossOptions>(lossOptions)],
);

/** (x − target)². */
export function mseLoss(x: Tensor, target: TensorLike, options: LossOptions = {}): Tensor {
  takesMseLoss('mseLoss', x, target, options);
  return elementwise('mseLoss', x, target, options, (b, p, q) => formula.square(b, sub(b, p, q)));
}

/** |x − target|. */
export function l1Loss(x: Tensor, target: TensorLike, options: LossOptions = {}): Tensor {
  takesMseLoss('l1Loss', x, target, options);
  return elementwise('l1Loss', x, target, options, (b, p, q) => unary(b, 'abs', sub(b, p, q)));
}

/** ½·d² for |d| below `knee` and for NaN (whose derivative is NaN), else knee·(|d| − ½·knee). */
function huberOf(b: GraphBuilder, d: Node, knee: number): Node {
  const size = unary(b, 'abs', d);
  const square = mul(b, formula.square(b, d), 0.5);
  const line = mul(b, sub(b, size, knee / 2), knee);
  return where(b, binary(b, 'le', fullLike(b, size, knee), size), line, square);
}

export interface SmoothL1Options extends LossOptions {
  /** Where the square becomes the line, 1 by default; 0 gives `l1Loss`. */
  readonly beta?: number;
}

const takesSmoothL1Loss = arg.takes<typeof smoothL1Loss>(
  ['x', aTensor],
  ['the target', anOperand],
  ['options', arg.options<SmoothL1Options>({ ...lossOptions, beta: arg.notNegative })],
);

/** ½·d²/beta for |d| below beta, else |d| − ½·beta. */
export function smoothL1Loss(x: Tensor, target: TensorLike, options: SmoothL1Options = {}): Tensor {
  takesSmoothL1Loss('smoothL1Loss', x, target, options);
  const { beta = 1 } = options;
  return elementwise('smoothL1Loss', x, target, options, (b, p, q) => {
    const d = sub(b, p, q);
    return beta === 0 ? unary(b, 'abs', d) : div(b, huberOf(b, d, beta), beta);
  });
}

export interface HuberOptions extends LossOptions {
  /** Where the square becomes the line, 1 by default. */
  readonly delta?: number;
}

const takesHuberLoss = arg.takes<typeof huberLoss>(
  ['x', aTensor],
  ['the target', anOperand],
  ['options', arg.options<HuberOptions>({ ...lossOptions, delta: arg.positive })],
);

/** ½·d² for |d| below delta, else delta·(|d| − ½·delta). */
export function huberLoss(x: Tensor, target: TensorLike, options: HuberOptions = {}): Tensor {
  takesHuberLoss('huberLoss', x, target, options);
  const { delta = 1 } = options;
  return elementwise('huberLoss', x, target, options, (b, p, q) => huberOf(b, sub(b, p, q), delta));
}

/**
 * −target·log x − (1 − target)·log(1 − x) for probabilities x and targets in [0, 1]; logarithms are
 * not below −100.
 */
export function bceLoss(x: Tensor, target: TensorLike, options: LossOptions = {}): Tensor {
  takesMseLoss('bceLoss', x, target, options);
  watchShares('bceLoss', 'x', x);
  if (target instanceof Tensor) watchShares('bceLoss', 'the target', target);
  return elementwise('bceLoss', x, target, options, binaryEntropy);
}

export interface BceWithLogitsOptions extends LossOptions {
  /** Factor on the loss of positive targets. */
  readonly posWeight?: TensorLike;
}

const takesBceWithLogits = arg.takes<typeof bceWithLogits>(
  ['x', aTensor],
  ['the target', anOperand],
  ['options', arg.options<BceWithLogitsOptions>({ ...lossOptions, posWeight: anOperand })],
);

/** `bceLoss` of sigmoid(x), from the logits x and stable for all of them. */
export function bceWithLogits(x: Tensor, target: TensorLike, options: BceWithLogitsOptions = {}): Tensor {
  takesBceWithLogits('bceWithLogits', x, target, options);
  const op = 'bceWithLogits';
  const { posWeight, reduction = 'mean' } = options;
  if (posWeight === undefined) return elementwise(op, x, target, options, logitEntropy);
  const dtype = operandType(op, [x, target], 'float');
  return fit(
    op,
    [x, target, posWeight],
    () => formula.wideType(dtype),
    (b, p, q, w) => cast(b, reduced(b, logitEntropy(b, p, q, w), reduction), dtype),
  );
}

export interface KlDivOptions {
  /**
   * 'batchmean' divides the sum by the first size; PyTorch's default 'mean' divides by all
   * elements.
   */
  readonly reduction?: Reduction | 'batchmean';
  /** The target is given as logarithms; false by default. */
  readonly logTarget?: boolean;
}

const klReduction = arg.oneOf('mean', 'sum', 'none', 'batchmean');
const takesKlDiv = arg.takes<typeof klDiv>(
  ['x', aTensor],
  ['the target', aTensor],
  ['options', arg.options<KlDivOptions>({ reduction: klReduction, logTarget: arg.flag })],
);

/** target·(log target − x) for log-probabilities x; 0 where the target is 0. */
export function klDiv(x: Tensor, target: Tensor, options: KlDivOptions = {}): Tensor {
  takesKlDiv('klDiv', x, target, options);
  const op = 'klDiv';
  const { reduction = 'mean', logTarget = false } = options;
  const dtype = operandType(op, [x, target], 'float');
  return fit(
    op,
    [x, target],
    () => formula.wideType(dtype),
    (b, p, q) => {
      const losses = logTarget ? mul(b, unary(b, 'exp', q), sub(b, q, p)) : divergence(b, p, q);
      if (reduction !== 'batchmean') return cast(b, reduced(b, losses, reduction), dtype);
      return cast(b, div(b, reduced(b, losses, 'sum'), Math.max(1, x.shape[0] ?? 1)), dtype);
    },
  );
}

function divergence(b: GraphBuilder, logProbability: Node, target: Node): Node {
  const positive = binary(b, 'lt', fullLike(b, target, 0), target);
  const safe = where(b, positive, target, fullLike(b, target, 1));
  const entropy = where(b, positive, mul(b, target, unary(b, 'log', safe)), fullLike(b, target, 0));
  return sub(b, entropy, mul(b, target, logProbability));
}

export interface HingeEmbeddingOptions extends LossOptions {
  /** 1 by default. */
  readonly margin?: number;
}

const takesHingeEmbeddingLoss = arg.takes<typeof hingeEmbeddingLoss>(
  ['x', aTensor],
  ['the target', anOperand],
  ['options', arg.options<HingeEmbeddingOptions>({ ...lossOptions, margin: arg.number })],
);

/** x where the target is 1, max(0, margin − x) where it is −1. */
export function hingeEmbeddingLoss(
  x: Tensor,
  target: TensorLike,
  options: HingeEmbeddingOptions = {},
): Tensor {
  takesHingeEmbeddingLoss('hingeEmbeddingLoss', x, target, options);
  const { margin = 1 } = options;
  return elementwise('hingeEmbeddingLoss', x, target, options, (b, p, q) => {
    const gap = sub(b, margin, p);
    const zero = fullLike(b, gap, 0);
    // The derivative passes at the kink, and not at NaN.
    const fixed = binary(b, 'max', formula.stopGradient(b, gap), zero);
    const hinge = where(b, binary(b, 'le', zero, gap), gap, fixed);
    return where(b, binary(b, 'eq', q, 1), p, hinge);
  });
}

export interface NllOptions extends LossOptions {
  /** One factor per class; the mean divides by the sum of the targets' factors. */
  readonly weight?: Tensor;
  /** Targets of this class count for nothing. None by default (PyTorch: −100). */
  readonly ignoreIndex?: number;
}

export interface CrossEntropyOptions extends NllOptions {
  /** How much of the target is spread evenly over all classes; 0 by default. */
  readonly labelSmoothing?: number;
}

const nllOptions: arg.Table<NllOptions> = { ...lossOptions, weight: aTensor, ignoreIndex: arg.integer };

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

/** −x at the target class, for log-probabilities x [N,C,…] (or [C]) and integer targets [N,…]. */
export function nllLoss(x: Tensor, target: Tensor, options: NllOptions = {}): Tensor {
  takesNllLoss('nllLoss', x, target, options);
  checkFloat('nllLoss', x, options.weight);
  checkInteger('nllLoss', 'the targets', target);
  const axis = classAxis('nllLoss', x, target, options.weight);
  watchLabels('nllLoss', x, axis, target, options.ignoreIndex);
  return apply([x, target, options.weight], (b, node, classes, w) =>
    formula.widened(b, node, (logp) =>
      targetLoss(b, { logp, axis, weight: spreadWeight(b, w, logp, axis) }, classes, options),
    ),
  );
}

const takesCrossEntropy = arg.takes<typeof crossEntropy>(
  ['the logits', aTensor],
  ['the target', aTensor],
  ['options', arg.options<CrossEntropyOptions>({ ...nllOptions, labelSmoothing: arg.share })],
);

/**
 * −log softmax of the logits [N,C,…] (or [C]) at the target: integer classes [N,…], or
 * probabilities of the logits' shape.
 */
export function crossEntropy(logits: Tensor, target: Tensor, options: CrossEntropyOptions = {}): Tensor {
  takesCrossEntropy('crossEntropy', logits, target, options);
  const op = 'crossEntropy';
  const { weight } = options;
  checkFloat(op, logits, weight);
  if (isFloat(target.dtype)) return probabilityLoss(op, logits, target, options);
  checkInteger(op, 'the targets', target);
  const axis = classAxis(op, logits, target, weight);
  watchLabels(op, logits, axis, target, options.ignoreIndex);
  return apply([logits, target, weight], (b, node, classes, w) =>
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
