// Normalisations: statistics over some axes in two passes (f32 for 16-bit floats), then scale and
// shift. Each is one row reduction with its elementwise ends, so it fuses into one kernel.

import { TensorError } from '../../../errors.ts';
import {
  add,
  binary,
  broadcast,
  cast,
  div,
  full,
  fullLike,
  mul,
  reduceKeep,
  reshape,
  sub,
  unary,
  where,
} from '../../../ir/build.ts';
import { isComplex, isFloat, type DType } from '../../../ir/dtype.ts';
import { dims, type GraphBuilder, type Node } from '../../../ir/graph.ts';
import * as arg from '../../../ir/arguments.ts';
import { checkList, sameShape } from '../../../ir/shape.ts';
import { aTensor } from '../../expect.ts';
import { recordMany } from '../../record.ts';
import type { Tensor } from '../../tensor.ts';
import * as formula from '../../formula/elementwise.ts';
import { apply, casted, checkFloat, checkInexact, show, spread } from '../operand.ts';
import { axesOf, type Axes } from './axes.ts';
import { normOf } from '../../formula/elementwise.ts';
import { padConstant } from '../../formula/layout.ts';

export interface NormOptions {
  /** Added to the variance under the root; 1e-5 by default. */
  readonly eps?: number;
}

const normOptions = arg.options<NormOptions>({ eps: arg.number });

/** x · scale + shift, each spread to x's shape; absent ones change nothing. */
function affine(
  b: GraphBuilder,
  x: Node,
  weight: Node | undefined,
  bias: Node | undefined,
  shape: readonly number[],
): Node {
  const fit = (node: Node): Node => broadcast(b, reshape(b, cast(b, node, x.dtype), shape), dims(x));
  const scaled = weight === undefined ? x : mul(b, x, fit(weight));
  return bias === undefined ? scaled : add(b, scaled, fit(bias));
}

/** (x − mean) / √(variance + eps) over the axes. */
function standardised(b: GraphBuilder, x: Node, axes: readonly number[], eps: number): Node {
  const { centred, variance } = formula.moments(b, x, axes);
  return mul(b, centred, formula.spreadTo(b, unary(b, 'rsqrt', add(b, variance, eps)), x));
}

/**
 * The trailing axes that `normalizedShape` names. Throws E_SHAPE when x or a parameter does not
 * have them.
 */
function trailing(
  op: string,
  x: Tensor,
  normalizedShape: number | readonly number[],
  ...parameters: (Tensor | undefined)[]
): number[] {
  if (typeof normalizedShape !== 'number') checkList(op, 'the normalized shape', normalizedShape);
  const shape = typeof normalizedShape === 'number' ? [normalizedShape] : normalizedShape;
  const lead = x.rank - shape.length;
  if (shape.length === 0 || lead < 0 || !sameShape(x.shape.slice(lead), shape)) {
    throw new TensorError('E_SHAPE', op, `x must end in [${shape.join(',')}]: ${show(x)}`);
  }
  for (const parameter of parameters) {
    if (parameter !== undefined && !sameShape(parameter.shape, shape)) {
      throw new TensorError(
        'E_SHAPE',
        op,
        `weight and bias must be [${shape.join(',')}]: ${show(parameter)}`,
      );
    }
  }
  return shape.map((_, i) => lead + i);
}

const takesLayerNorm = arg.takes<typeof layerNorm>(
  ['x', aTensor],
  ['the normalized shape', arg.inside()],
  ['the weight', arg.optional(aTensor)],
  ['the bias', arg.optional(aTensor)],
  ['options', normOptions],
);

/**
 * Standardises over the trailing axes `normalizedShape` (Ba et al., 2016), then scales and shifts.
 *
 * @example
 * const x = sn.tensor([[1, -2, 3], [0.5, 4, -1]]);
 * const scale = sn.tensor([1, 2, 3]);
 * sn.layerNorm(x, 3, scale);
 */
export function layerNorm(
  x: Tensor,
  normalizedShape: number | readonly number[],
  weight?: Tensor,
  bias?: Tensor,
  options: NormOptions = {},
): Tensor {
  takesLayerNorm('layerNorm', x, normalizedShape, weight, bias, options);
  checkFloat('layerNorm', x, weight, bias);
  const axes = trailing('layerNorm', x, normalizedShape, weight, bias);
  const shape = axes.map((axis) => x.shape[axis]!);
  return apply([casted('layerNorm', x), weight, bias], (b, node, w, c) =>
    formula.widened(b, node, (wide) =>
      affine(b, standardised(b, wide, axes, options.eps ?? 1e-5), w, c, shape),
    ),
  );
}

/**
 * The distance from 1 to the next larger value of what x is computed in, PyTorch's default for `eps`
 * here. That of f16 or bf16 would outweigh the mean square of small values.
 */
const epsilonOf = (dtype: DType): number => (formula.wideType(dtype) === 'f64' ? 2 ** -52 : 2 ** -23);

const takesRmsNorm = arg.takes<typeof rmsNorm>(
  ['x', aTensor],
  ['the normalized shape', arg.inside()],
  ['the weight', arg.optional(aTensor)],
  ['options', normOptions],
);

/**
 * x / √(mean(x²) + eps) over the trailing axes (Zhang and Sennrich, 2019), then scaled.
 *
 * @example
 * const x = sn.tensor([[1, -2, 3], [0.5, 4, -1]]);
 * const scale = sn.tensor([1, 2, 3]);
 * sn.rmsNorm(x, 3, scale);
 */
export function rmsNorm(
  x: Tensor,
  normalizedShape: number | readonly number[],
  weight?: Tensor,
  options: NormOptions = {},
): Tensor {
  takesRmsNorm('rmsNorm', x, normalizedShape, weight, options);
  checkFloat('rmsNorm', x, weight);
  const axes = trailing('rmsNorm', x, normalizedShape, weight);
  const shape = axes.map((axis) => x.shape[axis]!);
  return apply([x, weight], (b, node, w) =>
    formula.widened(b, node, (wide) => {
      const power = formula.mean(b, formula.square(b, wide), axes);
      const scale = unary(b, 'rsqrt', add(b, power, options.eps ?? epsilonOf(x.dtype)));
      return affine(b, mul(b, wide, formula.spreadTo(b, scale, wide)), w, undefined, shape);
    }),
  );
}

/** One value per channel, spread over all other axes. */
function perChannel(rank: number, channels: number): number[] {
  return Array.from({ length: rank }, (_, axis) => (axis === 1 ? channels : 1));
}

function checkChannels(op: string, x: Tensor, least: number, ...parameters: (Tensor | undefined)[]): number {
  if (x.rank < least)
    throw new TensorError('E_SHAPE', op, `expects [N,C,…] with at least ${least} axes: ${show(x)}`);
  const channels = x.shape[1]!;
  for (const parameter of parameters) {
    if (parameter !== undefined && !sameShape(parameter.shape, [channels])) {
      throw new TensorError(
        'E_SHAPE',
        op,
        `expects one value per channel, [${channels}]: ${show(parameter)}`,
      );
    }
  }
  return channels;
}

const takesGroupNorm = arg.takes<typeof groupNorm>(
  ['x', aTensor],
  ['the number of groups', arg.count(1)],
  ['the weight', arg.optional(aTensor)],
  ['the bias', arg.optional(aTensor)],
  ['options', normOptions],
);

/**
 * Standardises each of `groups` runs of channels of each sample (Wu and He, 2018); scale and shift
 * per channel.
 *
 * @example
 * const image = sn.linspace(0, 1.75, 8).reshape([1, 4, 1, 2]);
 * const w = sn.tensor([1, 2, 3, 4]);
 * const b = sn.tensor([0.5, 0, 0, 1]);
 * sn.groupNorm(image, 2, w, b);
 */
export function groupNorm(
  x: Tensor,
  groups: number,
  weight?: Tensor,
  bias?: Tensor,
  options: NormOptions = {},
): Tensor {
  takesGroupNorm('groupNorm', x, groups, weight, bias, options);
  checkFloat('groupNorm', x, weight, bias);
  const channels = checkChannels('groupNorm', x, 2, weight, bias);
  if (channels % groups !== 0) {
    throw new TensorError(
      'E_SHAPE',
      'groupNorm',
      `${channels} channels do not split into ${groups} groups: ${show(x)}`,
    );
  }
  const grouped = [x.shape[0]!, groups, channels / groups, ...x.shape.slice(2)];
  const axes = grouped.map((_, axis) => axis).slice(2);
  return apply([casted('groupNorm', x), weight, bias], (b, node, w, c) =>
    formula.widened(b, node, (wide) => {
      const standard = standardised(b, reshape(b, wide, grouped), axes, options.eps ?? 1e-5);
      return affine(b, reshape(b, standard, x.shape), w, c, perChannel(x.rank, channels));
    }),
  );
}

const takesInstanceNorm = arg.takes<typeof instanceNorm>(
  ['x', aTensor],
  ['the weight', arg.optional(aTensor)],
  ['the bias', arg.optional(aTensor)],
  ['options', normOptions],
);

/**
 * Standardises each channel of each sample over its spatial axes (Ulyanov et al., 2016).
 *
 * @example
 * const image = sn.linspace(0, 1.75, 8).reshape([1, 4, 1, 2]);
 * const w = sn.tensor([1, 2, 3, 4]);
 * const b = sn.tensor([0.5, 0, 0, 1]);
 * sn.instanceNorm(image, w, b);
 */
export function instanceNorm(x: Tensor, weight?: Tensor, bias?: Tensor, options: NormOptions = {}): Tensor {
  takesInstanceNorm('instanceNorm', x, weight, bias, options);
  checkFloat('instanceNorm', x, weight, bias);
  const channels = checkChannels('instanceNorm', x, 3, weight, bias);
  const axes = x.shape.map((_, axis) => axis).slice(2);
  return apply([x, weight, bias], (b, node, w, c) =>
    formula.widened(b, node, (wide) =>
      affine(b, standardised(b, wide, axes, options.eps ?? 1e-5), w, c, perChannel(x.rank, channels)),
    ),
  );
}

export interface BatchNormOptions extends NormOptions {
  /** Uses and returns the batch's own statistics instead of the given ones; false by default. */
  readonly training?: boolean;
}

const takesBatchNorm = arg.takes<typeof batchNorm>(
  ['x', aTensor],
  ['the running mean', arg.optional(aTensor)],
  ['the running variance', arg.optional(aTensor)],
  ['the weight', arg.optional(aTensor)],
  ['the bias', arg.optional(aTensor)],
  ['options', arg.options<BatchNormOptions>({ eps: arg.number, training: arg.flag })],
);

/**
 * Standardises each channel over the batch (Ioffe and Szegedy, 2015). Gives the result and the
 * statistics it used, without gradient: the batch's mean and biased variance in training, else the
 * given ones. `batchNormUpdate` keeps running ones.
 *
 * @example
 * const image = sn.linspace(0, 1.75, 8).reshape([1, 4, 1, 2]);
 * const w = sn.tensor([1, 2, 3, 4]);
 * const b = sn.tensor([0.5, 0, 0, 1]);
 * const mean = sn.tensor([0.5, 1, 1, 2]);
 * const variance = sn.tensor([1, 2, 1, 4]);
 * sn.batchNorm(image, mean, variance, w, b);
 * @example <caption>training</caption>
 * const image = sn.linspace(0, 1.75, 8).reshape([1, 4, 1, 2]);
 * const w = sn.tensor([1, 2, 3, 4]);
 * const b = sn.tensor([0.5, 0, 0, 1]);
 * sn.batchNorm(image, undefined, undefined, w, b, { training: true });
 */
export function batchNorm(
  x: Tensor,
  runningMean?: Tensor,
  runningVar?: Tensor,
  weight?: Tensor,
  bias?: Tensor,
  options: BatchNormOptions = {},
): [output: Tensor, mean: Tensor, variance: Tensor] {
  takesBatchNorm('batchNorm', x, runningMean, runningVar, weight, bias, options);
  const { training = false, eps = 1e-5 } = options;
  checkFloat('batchNorm', x, runningMean, runningVar, weight, bias);
  // Nothing has no channels, and stays as it is.
  if (x.rank === 1 && x.size === 0) return [x, x.detach(), x.detach()];
  const channels = checkChannels('batchNorm', x, 2, runningMean, runningVar, weight, bias);
  if (!training && (runningMean === undefined || runningVar === undefined)) {
    throw new TensorError(
      'E_VALUE',
      'batchNorm',
      `needs running statistics unless training: ${show(x)}`,
      '{ training: true }',
    );
  }
  const shape = perChannel(x.rank, channels);
  const axes = x.shape.map((_, axis) => axis).filter((axis) => axis !== 1);
  const operands = [x, runningMean, runningVar, weight, bias] as const;
  const [output, mean, variance] = recordMany(
    operands.filter((operand) => operand !== undefined),
    (b, nodes) => {
      const [input, m, v, w, c] = spread(operands, nodes);
      const wide = cast(b, input, formula.wideType(x.dtype));
      const kept = (node: Node): Node => reshape(b, cast(b, node, wide.dtype), shape);
      const stats = training ? formula.moments(b, wide, axes) : given(b, wide, kept(m!), kept(v!));
      const scale = unary(b, 'rsqrt', add(b, stats.variance, eps));
      const standard = mul(b, stats.centred, formula.spreadTo(b, scale, wide));
      const flat = (node: Node): Node => formula.stopGradient(b, reshape(b, node, [channels]));
      return [cast(b, affine(b, standard, w, c, shape), x.dtype), flat(stats.mean), flat(stats.variance)];
    },
  );
  return [output!, mean!, variance!];
}

function given(b: GraphBuilder, x: Node, mean: Node, variance: Node): formula.Moments {
  return { mean, variance, centred: sub(b, x, formula.spreadTo(b, mean, x)) };
}

/** A mean and a variance. */
const pairOfTensors = arg.tupleOf(aTensor, aTensor);
const takesBatchNormUpdate = arg.takes<typeof batchNormUpdate>(
  ['running statistics', pairOfTensors],
  ["the batch's statistics", pairOfTensors],
  ['the count', arg.count(2)],
  ['momentum', arg.optional(arg.number)],
);

/**
 * Running statistics after a training batch: (1 − momentum)·old + momentum·new, the variance made
 * unbiased for `count` values per channel. Momentum is 0.1 by default.
 *
 * @example
 * const w = sn.tensor([1, 2, 3, 4]);
 * const b = sn.tensor([0.5, 0, 0, 1]);
 * const mean = sn.tensor([0.5, 1, 1, 2]);
 * const variance = sn.tensor([1, 2, 1, 4]);
 * sn.batchNormUpdate([mean, variance], [w, b], 2);
 */
export function batchNormUpdate(
  running: readonly [mean: Tensor, variance: Tensor],
  batch: readonly [mean: Tensor, variance: Tensor],
  count: number,
  momentum = 0.1,
): [mean: Tensor, variance: Tensor] {
  takesBatchNormUpdate('batchNormUpdate', running, batch, count, momentum);
  checkFloat('batchNormUpdate', ...running, ...batch);
  const [mean, variance] = recordMany([...running, ...batch], (b, [oldMean, oldVar, newMean, newVar]) => {
    const blend = (old: Node, fresh: Node, scale: number): Node =>
      add(b, mul(b, old, 1 - momentum), mul(b, cast(b, fresh, old.dtype), momentum * scale));
    return [blend(oldMean!, newMean!, 1), blend(oldVar!, newVar!, count / (count - 1))];
  });
  return [mean!, variance!];
}

export interface LocalResponseOptions {
  /** The factor of the squares; 1e-4 by default. */
  readonly alpha?: number;
  /** The exponent; 0.75 by default. */
  readonly beta?: number;
  /** What the squares are added to; 1 by default. */
  readonly k?: number;
}

const takesLocalResponseNorm = arg.takes<typeof localResponseNorm>(
  ['x', aTensor],
  ['size', arg.count(1)],
  ['options', arg.options<LocalResponseOptions>({ alpha: arg.number, beta: arg.number, k: arg.number })],
);

/**
 * x / (k + alpha·mean of squares over `size` neighbouring channels)^beta (Krizhevsky et al., 2012).
 *
 * @example
 * const image = sn.linspace(0, 1.75, 8).reshape([1, 4, 1, 2]);
 * sn.localResponseNorm(image, 3);
 */
export function localResponseNorm(x: Tensor, size: number, options: LocalResponseOptions = {}): Tensor {
  takesLocalResponseNorm('localResponseNorm', x, size, options);
  const { alpha = 1e-4, beta = 0.75, k = 1 } = options;
  if (x.dtype === 'bool' || isComplex(x.dtype)) checkFloat('localResponseNorm', x);
  checkChannels('localResponseNorm', x, 2);
  const ends = (n: number): number[] => x.shape.map((_, axis) => (axis === 1 ? n : 0));
  const power = (b: GraphBuilder, mean: Node): Node => {
    const denominator = add(b, mean, k);
    return binary(b, 'pow', denominator, fullLike(b, denominator, beta));
  };
  return apply([x], (b, node) => {
    const normed = (wide: Node): Node => {
      const squares = padConstant(
        b,
        formula.square(b, wide),
        ends(Math.floor(size / 2)),
        ends(Math.floor((size - 1) / 2)),
        0,
      );
      const windows = b.add('window', [squares], { axis: 1, size, stride: 1, dilation: 1 });
      const total = reshape(b, reduceKeep(b, 'sum', windows, [x.rank]), x.shape);
      if (isFloat(x.dtype)) return div(b, wide, power(b, mul(b, total, alpha / size)));
      // Means of integers have no fractions.
      return div(b, wide, power(b, mul(b, unary(b, 'floor', div(b, total, size)), alpha)));
    };
    return isFloat(x.dtype) ? formula.widened(b, node, normed) : normed(cast(b, node, 'f32'));
  });
}

export interface NormalizeOptions {
  /** Which norm, 2 by default. */
  readonly p?: number;
  /** Norms below it count as it; 1e-12 by default. */
  readonly eps?: number;
}

const takesNormalize = arg.takes<typeof normalize>(
  ['x', aTensor],
  ['axes', arg.inside()],
  ['options', arg.options<NormalizeOptions>({ p: arg.number, eps: arg.number })],
);

/**
 * x divided by its p-norm along axes (1 by default).
 *
 * @example
 * const x = sn.tensor([[1, -2, 3], [0.5, 4, -1]]);
 * sn.normalize(x);
 */
export function normalize<D extends DType>(
  x: Tensor<D>,
  axes: Axes = 1,
  options: NormalizeOptions = {},
): Tensor<D> {
  takesNormalize('normalize', x, axes, options);
  const { p = 2, eps = 1e-12 } = options;
  checkInexact('normalize', x);
  const list = axesOf('normalize', axes, x);
  return apply([casted('normalize', x)], (b, node) =>
    formula.widened(b, node, (wide) => {
      const size = normOf(b, wide, p, list);
      const least = full(b, dims(size), eps, size.dtype);
      const divisor = where(b, binary(b, 'lt', size, least), least, size);
      return div(b, wide, formula.spreadTo(b, cast(b, divisor, wide.dtype), wide));
    }),
  );
}
