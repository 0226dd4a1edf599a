// to: a model in another dtype. Its tensors stay what they are, in the optimizers and functions that
// hold them, and take the dtype with their values; slots of optimizers are of f32 for every dtype of
// 16 or 32 bits, and follow at their next step where they are not.

import { showValue, TensorError } from '../../errors.ts';
import * as arg from '../../ir/arguments.ts';
import { isFloat, type DType } from '../../ir/dtype.ts';
import { Tensor } from '../../tensor/tensor.ts';
import { convert } from '../../tensor/values.ts';
import { aModel, membersOf } from '../module.ts';

const devices = new Set(['cpu', 'cuda', 'gpu', 'interpreter', 'wasm', 'webgpu']);

/** A dtype of floats; devices are not a model's. */
const target: arg.Kind<DType> = {
  accepts: (value) => arg.floatDType.accepts(value),
  refuse(op, what, value): never {
    const isDevice = typeof value === 'string' && devices.has(value.split(':')[0]!);
    if (!isDevice) return arg.floatDType.refuse(op, what, value);
    const problem = `tensors are on no device of their own, got ${showValue(value)}`;
    throw new TensorError(
      'E_VALUE',
      op,
      problem,
      `setDevice(${showValue(value)}), for everything computed from then on`,
    );
  },
};

const takesTo = arg.takes<(model: unknown, dtype: DType) => unknown>(
  ['the model', aModel],
  ['the dtype', target],
);

/**
 * Gives every tensor of floats in a model, state and gradients included, another dtype; gives the
 * model. Integers, booleans and complex numbers stay.
 */
export function to<M>(model: M, dtype: DType): M {
  takesTo('to', model, dtype);
  const tensors = new Set<Tensor>();
  for (const { tensor } of membersOf(model)) if (isFloat(tensor.dtype)) tensors.add(tensor);
  for (const tensor of tensors) convert(tensor, dtype, 'to');
  return model;
}
