// What a distribution is: samples from the generator, and the logarithm of its density. Parameters
// are tensors or numbers that broadcast; samples have their shape behind the shape that is asked
// for.

import { TensorError } from '../../../errors.ts';
import * as arg from '../../../ir/arguments.ts';
import type { DType } from '../../../ir/dtype.ts';
import { toShape } from '../../../ir/shape.ts';
import { anOperand } from '../../expect.ts';
import { asTensor } from '../../record.ts';
import type { Tensor, TensorLike } from '../../tensor.ts';
import { wideType } from '../../formula/elementwise.ts';
import { checkNotComplex, commonShape, operandType } from '../operand.ts';
import { eq, isNan, le, logicalAnd, logicalOr, lt, where } from '../elementwise/compare.ts';
import { floor } from '../elementwise/elementwise.ts';
import { broadcastTo } from '../shape/view.ts';

/** A distribution, or several of them: one for each element of its parameters. */
export interface Distribution {
  /** The shape of the parameters together: that of one sample of each. */
  readonly shape: readonly number[];
  readonly mean: Tensor;
  readonly variance: Tensor;
  /** Samples in `[...shape, ...this.shape]`, without a gradient. */
  sample(shape?: readonly number[]): Tensor;
  /**
   * Samples that are differentiable functions of the parameters and of noise. Throws E_GRAD where
   * there is no such function.
   */
  rsample(shape?: readonly number[]): Tensor;
  /**
   * The logarithm of the density, or of the probability of a whole number. −∞ where x is no value that a
   * sample may have, also between the whole numbers; NaN where x is NaN.
   */
  logProb(x: TensorLike): Tensor;
}

/**
 * A distribution by its parts, over parameters of one dtype and shape. The parts may be of a wider dtype
 * than the distribution, which rounds what they give. @internal
 */
export interface DistributionParts {
  readonly mean: Tensor;
  readonly variance: Tensor;
  /** Samples of the whole shape, which ends with that of the parameters. */
  readonly draw: (shape: readonly number[]) => Tensor;
  /** The dtype of samples; that of the parameters by default. */
  readonly drawn?: DType;
  /** Samples are functions of the parameters. */
  readonly isSmooth: boolean;
  readonly logProb: (x: TensorLike) => Tensor;
}

const takesShape = arg.takes<(shape?: readonly number[]) => Tensor>([
  'the shape',
  arg.optional(arg.inside<readonly number[]>()),
]);
const takesPoint = arg.takes<(x: TensorLike) => Tensor>(['the operand', anOperand]);

/** The parameters as float tensors of one dtype and shape. @internal */
export function parameters(op: string, values: readonly TensorLike[]): Tensor[] {
  const dtype = operandType(op, values, 'realFloat');
  const shape = commonShape(op, values);
  return values.map((value) => broadcastTo(asTensor(value, dtype, op).cast(dtype), shape));
}

/**
 * A tensor in the dtype that densities are computed in. Their terms are large and cancel, so that 16 bits
 * would hold nothing of the result, or overflow. @internal
 */
export function widened(x: Tensor): Tensor {
  return x.cast(wideType(x.dtype));
}

/** A point in the dtype in which its density is computed beside these parameters. @internal */
export function pointOf(x: TensorLike, like: Tensor): Tensor {
  const dtype = wideType(operandType('logProb', [x, like], 'realFloat'));
  return asTensor(x, dtype, 'logProb').cast(dtype);
}

/** Where a density is above 0. @internal */
export interface DistributionSupport {
  readonly holds: (x: Tensor) => Tensor;
  /** A point inside. */
  readonly inner: number;
}

/** Finite numbers above 0, or from 0 on. @internal */
export const positive: DistributionSupport = {
  holds: (x) => logicalAnd(lt(0, x), lt(x, Infinity)),
  inner: 1,
};
/** @internal */
export const notNegative: DistributionSupport = {
  holds: (x) => logicalAnd(le(0, x), lt(x, Infinity)),
  inner: 1,
};
/** @internal */
export const share: DistributionSupport = { holds: (x) => logicalAnd(le(0, x), le(x, 1)), inner: 0.5 };
/** 0 or 1. @internal */
export const truth: DistributionSupport = { holds: (x) => logicalOr(eq(x, 0), eq(x, 1)), inner: 1 };
/** 0, 1, 2 and so on. @internal */
export const count: DistributionSupport = {
  holds: (x) => logicalAnd(notNegative.holds(x), eq(x, floor(x))),
  inner: 1,
};

/**
 * A log-density inside its support; −∞ outside, with gradients of 0, and NaN at NaN. Formulas never see a
 * point outside: there they might be numbers that look like an answer. @internal
 */
export function within(
  support: DistributionSupport,
  x: TensorLike,
  like: Tensor,
  logProb: (x: Tensor) => Tensor,
): Tensor {
  const point = pointOf(x, like);
  const holds = support.holds(point);
  const outside = where(isNan(point), point.detach(), -Infinity);
  return where(holds, logProb(where(holds, point, support.inner)), outside);
}

/**
 * The distribution called `op` of these parts, of the dtype of the parameter `given` and, unless the
 * parameter has axes of its own, of its shape. @internal
 */
export function distribution(
  op: string,
  given: Tensor,
  parts: DistributionParts,
  shape: readonly number[] = given.shape,
): Distribution {
  const { dtype } = given;
  const draw = (name: string, leading: readonly number[] = []): Tensor => {
    takesShape(`${op}.${name}`, leading);
    return parts.draw([...toShape(`${op}.${name}`, leading), ...shape]).cast(parts.drawn ?? dtype);
  };
  return {
    shape,
    mean: parts.mean.cast(dtype),
    variance: parts.variance.cast(dtype),
    sample: (leading) => draw('sample', leading).detach(),
    rsample(leading) {
      if (parts.isSmooth) return draw('rsample', leading);
      throw new TensorError('E_GRAD', `${op}.rsample`, 'samples are not differentiable', 'sample');
    },
    logProb(x) {
      takesPoint(`${op}.logProb`, x);
      checkNotComplex(`${op}.logProb`, x);
      return parts.logProb(x).cast(operandType('logProb', [x, given], 'realFloat'));
    },
  };
}
