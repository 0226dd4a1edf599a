// What a distribution is: samples from the generator, and the logarithm of its density. Parameters
// are tensors or numbers that broadcast; samples have their shape behind the shape that is asked
// for.

import { TensorError } from '../../../errors.ts';
import * as arg from '../../../ir/arguments.ts';
import { toShape } from '../../../ir/shape.ts';
import { anOperand } from '../../expect.ts';
import { asTensor } from '../../record.ts';
import type { Tensor, TensorLike } from '../../tensor.ts';
import { checkNotComplex, commonShape, operandType } from '../operand.ts';
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
  /** The logarithm of the density, or of the probability of a whole number. */
  logProb(x: TensorLike): Tensor;
}

/** A distribution by its parts, over parameters of one dtype and shape. @internal */
export interface DistributionParts {
  readonly mean: Tensor;
  readonly variance: Tensor;
  /** Samples of the whole shape, which ends with that of the parameters. */
  readonly draw: (shape: readonly number[]) => Tensor;
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

/** The distribution called `op` of these parts; `event` last axes of a sample belong together. @internal */
export function distribution(op: string, shape: readonly number[], parts: DistributionParts): Distribution {
  const draw = (name: string, leading: readonly number[] = []): Tensor => {
    takesShape(`${op}.${name}`, leading);
    return parts.draw([...toShape(`${op}.${name}`, leading), ...shape]);
  };
  return {
    shape,
    mean: parts.mean,
    variance: parts.variance,
    sample: (leading) => draw('sample', leading).detach(),
    rsample(leading) {
      if (parts.isSmooth) return draw('rsample', leading);
      throw new TensorError('E_GRAD', `${op}.rsample`, 'samples are not differentiable', 'sample');
    },
    logProb(x) {
      takesPoint(`${op}.logProb`, x);
      checkNotComplex(`${op}.logProb`, x);
      return parts.logProb(x);
    },
  };
}
