// Losses. `reduction` is 'mean' (default), 'sum' or 'none'; 16-bit floats are computed in f32.
// Class losses pick the target by comparing positions, not by gathering, so that loss and gradient
// are row reductions that fuse.

import { add, binary, cast, div, fullLike, mul, sub, unary, where } from '../../ir/build.ts';
import * as arg from '../../ir/arguments.ts';
import { isComplex, type FloatDType } from '../../ir/dtype.ts';
import { type GraphBuilder, type Node } from '../../ir/graph.ts';
import { watchShares } from '../debug.ts';
import { anOperand, aTensor } from '../expect.ts';
import { Tensor, type TensorLike } from '../tensor.ts';
import { binaryEntropy, logitEntropy } from '../formula/binary-entropy.ts';
import * as formula from '../formula/elementwise.ts';
import { checkNotComplex, combine, fit, operandType } from './operand.ts';
import { hinge, type LossOptions, lossOptions, reduced, type Reduction } from './loss-reduction.ts';

/** A loss of each pair of elements, in f32 for 16-bit floats. */
function elementwise(
  op: string,
  x: Tensor,
  target: TensorLike,
  options: LossOptions,
  make: (b: GraphBuilder, x: Node, target: Node) => Node,
): Tensor {
  const reduction = options.reduction ?? 'mean';
  const dtype = operandType(op, [x, target], 'realFloat');
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

/**
 * (x − target)².
 *
 * @example
 * const x = sn.tensor([[1, -2, 3], [0.5, 4, -1]]);
 * const y = sn.tensor([[2, 0, 1], [1, 5, 0]]);
 * sn.mseLoss(x, y);
 */
export function mseLoss(x: Tensor, target: TensorLike, options: LossOptions = {}): Tensor<FloatDType> {
  takesMseLoss('mseLoss', x, target, options);
  return elementwise('mseLoss', x, target, options, (b, p, q) => formula.square(b, sub(b, p, q)));
}

/**
 * |x − target|.
 *
 * @example
 * const x = sn.tensor([[1, -2, 3], [0.5, 4, -1]]);
 * const y = sn.tensor([[2, 0, 1], [1, 5, 0]]);
 * sn.l1Loss(x, y);
 */
export function l1Loss(x: Tensor, target: TensorLike, options: LossOptions = {}): Tensor<FloatDType> {
  takesMseLoss('l1Loss', x, target, options);
  const { reduction = 'mean' } = options;
  if (isComplex(operandType('l1Loss', [x, target], 'float')))
    return combine('l1Loss', [x, target], 'float', (b, p, q) =>
      reduced(b, unary(b, 'abs', sub(b, p, q)), reduction),
    );
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

/** @internal */
export const smoothL1Options: arg.Table<SmoothL1Options> = { ...lossOptions, beta: arg.notNegative };
const takesSmoothL1Loss = arg.takes<typeof smoothL1Loss>(
  ['x', aTensor],
  ['the target', anOperand],
  ['options', arg.options<SmoothL1Options>(smoothL1Options)],
);

/**
 * ½·d²/beta for |d| below beta, else |d| − ½·beta.
 *
 * @example
 * const x = sn.tensor([[1, -2, 3], [0.5, 4, -1]]);
 * const y = sn.tensor([[2, 0, 1], [1, 5, 0]]);
 * sn.smoothL1Loss(x, y);
 */
export function smoothL1Loss(
  x: Tensor,
  target: TensorLike,
  options: SmoothL1Options = {},
): Tensor<FloatDType> {
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

/** @internal */
export const huberOptions: arg.Table<HuberOptions> = { ...lossOptions, delta: arg.positive };
const takesHuberLoss = arg.takes<typeof huberLoss>(
  ['x', aTensor],
  ['the target', anOperand],
  ['options', arg.options<HuberOptions>(huberOptions)],
);

/**
 * ½·d² for |d| below delta, else delta·(|d| − ½·delta).
 *
 * @example
 * const x = sn.tensor([[1, -2, 3], [0.5, 4, -1]]);
 * const y = sn.tensor([[2, 0, 1], [1, 5, 0]]);
 * sn.huberLoss(x, y);
 */
export function huberLoss(x: Tensor, target: TensorLike, options: HuberOptions = {}): Tensor<FloatDType> {
  takesHuberLoss('huberLoss', x, target, options);
  const { delta = 1 } = options;
  return elementwise('huberLoss', x, target, options, (b, p, q) => huberOf(b, sub(b, p, q), delta));
}

export interface BceOptions extends LossOptions {
  /** A factor on each element's loss; 1 by default. */
  readonly weight?: TensorLike;
}

/** @internal */
export const bceOptions: arg.Table<BceOptions> = { ...lossOptions, weight: anOperand };
const takesBce = arg.takes<typeof bceLoss>(
  ['x', aTensor],
  ['the target', anOperand],
  ['options', arg.options<BceOptions>(bceOptions)],
);

/**
 * −target·log x − (1 − target)·log(1 − x) for probabilities x and targets in [0, 1]; logarithms are
 * not below −100.
 *
 * @torch torch.nn.functional.binary_cross_entropy
 * @example
 * const p = sn.tensor([0.25, 0.5]);
 * const t = sn.tensor([0, 1]);
 * sn.bceLoss(p, t);
 */
export function bceLoss(x: Tensor, target: TensorLike, options: BceOptions = {}): Tensor<FloatDType> {
  takesBce('bceLoss', x, target, options);
  checkNotComplex('bceLoss', x, target);
  watchShares('bceLoss', 'x', x);
  if (target instanceof Tensor) watchShares('bceLoss', 'the target', target);
  const { weight } = options;
  if (weight === undefined) return elementwise('bceLoss', x, target, options, binaryEntropy);
  return weighted('bceLoss', [x, target, weight], options, binaryEntropy);
}

/** As `elementwise`, each loss with a factor. */
function weighted(
  op: string,
  [x, target, weight, ...more]: readonly [Tensor, TensorLike, TensorLike, ...TensorLike[]],
  options: LossOptions,
  make: (b: GraphBuilder, x: Node, target: Node, ...more: readonly Node[]) => Node,
): Tensor {
  const dtype = operandType(op, [x, target], 'realFloat');
  return fit(
    op,
    [x, target, weight, ...more],
    () => formula.wideType(dtype),
    (b, p, q, w, ...rest) =>
      cast(b, reduced(b, mul(b, make(b, p!, q!, ...rest), w!), options.reduction ?? 'mean'), dtype),
  );
}

export interface BceWithLogitsOptions extends BceOptions {
  /** Factor on the loss of positive targets; 1 by default. */
  readonly posWeight?: TensorLike;
}

/** @internal */
export const bceWithLogitsOptions: arg.Table<BceWithLogitsOptions> = { ...bceOptions, posWeight: anOperand };
const takesBceWithLogits = arg.takes<typeof bceWithLogits>(
  ['x', aTensor],
  ['the target', anOperand],
  ['options', arg.options<BceWithLogitsOptions>(bceWithLogitsOptions)],
);

/**
 * `bceLoss` of sigmoid(x), from the logits x and stable for all of them.
 *
 * @torch torch.nn.functional.binary_cross_entropy_with_logits
 * @example
 * const x = sn.tensor([[1, -2, 3], [0.5, 4, -1]]);
 * const q = sn.tensor([[0.5, 0.25, 0.25], [0, 1, 0]]);
 * sn.bceWithLogits(x, q);
 */
export function bceWithLogits(
  x: Tensor,
  target: TensorLike,
  options: BceWithLogitsOptions = {},
): Tensor<FloatDType> {
  takesBceWithLogits('bceWithLogits', x, target, options);
  const op = 'bceWithLogits';
  const { posWeight, weight, reduction = 'mean' } = options;
  if (weight !== undefined) {
    const more = posWeight === undefined ? [] : [posWeight];
    return weighted(op, [x, target, weight, ...more], options, logitEntropy);
  }
  if (posWeight === undefined) return elementwise(op, x, target, options, logitEntropy);
  const dtype = operandType(op, [x, target], 'realFloat');
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
/** @internal */
export const klDivOptions: arg.Table<KlDivOptions> = { reduction: klReduction, logTarget: arg.flag };
const takesKlDiv = arg.takes<typeof klDiv>(
  ['x', aTensor],
  ['the target', aTensor],
  ['options', arg.options<KlDivOptions>(klDivOptions)],
);

/**
 * target·(log target − x) for log-probabilities x; 0 where the target is 0.
 *
 * @example
 * const logp = sn.tensor([[-0.5, -1, -3], [-2, -0.25, -4]]);
 * const q = sn.tensor([[0.5, 0.25, 0.25], [0, 1, 0]]);
 * sn.klDiv(logp, q);
 */
export function klDiv(x: Tensor, target: Tensor, options: KlDivOptions = {}): Tensor<FloatDType> {
  takesKlDiv('klDiv', x, target, options);
  const op = 'klDiv';
  const { reduction = 'mean', logTarget = false } = options;
  const dtype = operandType(op, [x, target], 'realFloat');
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
  // What is no probability has no logarithm: below 0 the loss is NaN, not a number that looks right.
  const some = binary(b, 'ne', target, 0);
  const safe = where(b, some, target, fullLike(b, target, 1));
  const entropy = where(b, some, mul(b, target, unary(b, 'log', safe)), fullLike(b, target, 0));
  return sub(b, entropy, mul(b, target, logProbability));
}

export interface HingeEmbeddingOptions extends LossOptions {
  /** 1 by default. */
  readonly margin?: number;
}

/** @internal */
export const hingeEmbeddingOptions: arg.Table<HingeEmbeddingOptions> = { ...lossOptions, margin: arg.number };
const takesHingeEmbeddingLoss = arg.takes<typeof hingeEmbeddingLoss>(
  ['x', aTensor],
  ['the target', anOperand],
  ['options', arg.options<HingeEmbeddingOptions>(hingeEmbeddingOptions)],
);

/**
 * x where the target is 1, max(0, margin − x) where it is −1; their sum for other targets.
 *
 * @example
 * const x = sn.tensor([[1, -2, 3], [0.5, 4, -1]]);
 * const signs = sn.tensor([[1, -1, 1], [1, 1, -1]]);
 * sn.hingeEmbeddingLoss(x, signs);
 */
export function hingeEmbeddingLoss(
  x: Tensor,
  target: TensorLike,
  options: HingeEmbeddingOptions = {},
): Tensor<FloatDType> {
  takesHingeEmbeddingLoss('hingeEmbeddingLoss', x, target, options);
  const { margin = 1 } = options;
  return elementwise('hingeEmbeddingLoss', x, target, options, (b, p, q) => {
    const zero = fullLike(b, p, 0);
    const far = where(b, binary(b, 'eq', q, 1), zero, hinge(b, sub(b, margin, p)));
    return add(b, far, where(b, binary(b, 'eq', q, -1), zero, p));
  });
}
