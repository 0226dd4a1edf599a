// Activation functions and softmaxes.

import * as sn from '../../operations/index.ts';
import type { Tensor } from '../../tensor/tensor.ts';
import type { Call, Row, Rows } from '../call.ts';
import { row, unary } from './row.ts';

/** A function of one tensor and of numbers that are attributes. */
function tuned(
  since: readonly number[],
  names: Readonly<Record<string, number>>,
  run: (x: Tensor, ...numbers: number[]) => Tensor,
): Row {
  return row(since, (call) => {
    const numbers = Object.entries(names).map(([name, otherwise]) => call.attributes.float(name, otherwise));
    return run(call.tensor(0), ...numbers);
  });
}

/** Scaled by gamma on both sides, by alpha below 0 as well. */
export function selu(
  x: Tensor,
  alpha: number = 1.6732632423543772,
  gamma: number = 1.0507009873554805,
): Tensor {
  return sn.mul(sn.elu(x, alpha), gamma);
}

/** x shifted towards 0 by the bias, and 0 between −lambd and lambd. */
function shrink(x: Tensor, lambd: number, bias: number): Tensor {
  const above = sn.where(sn.gt(x, lambd), sn.sub(x, bias), sn.zerosLike(x));
  return sn.where(sn.lt(x, -lambd), sn.add(x, bias), above);
}

function prelu(call: Call): Tensor {
  const x = call.tensor(0);
  let slope = call.tensor(1);
  // Opset 1 and 6 give one slope a channel.
  if (call.opset < 7 && slope.rank === 1 && slope.size > 1) {
    slope = sn.reshape(slope, [slope.size, ...new Array<number>(Math.max(0, x.rank - 2)).fill(1)]);
  }
  return sn.where(sn.lt(x, 0), sn.mul(x, slope), x);
}

/** Softmax along an axis; before opset 13 over everything from the axis on. */
function overRows(call: Call, run: (x: Tensor, axis: number) => Tensor): Tensor {
  const x = call.tensor(0);
  if (x.size === 0) return x;
  if (call.opset >= 13) return run(x, call.axis(call.attributes.int('axis', -1), x.rank));
  const axis = call.axis(call.attributes.int('axis', 1), x.rank);
  const rows = x.shape.slice(0, axis).reduce((size, dim) => size * dim, 1);
  const columns = x.shape.slice(axis).reduce((size, dim) => size * dim, 1);
  return sn.reshape(run(sn.reshape(x, [rows, columns]), 1), x.shape);
}

/** 1 at the first maximum. */
function hardmax(x: Tensor, axis: number): Tensor {
  const place = sn.argmax(x, axis, { keepdim: true });
  const count = sn.arange(x.shape[axis]!);
  const along = sn.reshape(
    count,
    x.shape.map((dim, i) => (i === axis ? dim : 1)),
  );
  return sn.cast(sn.eq(along, place), x.dtype);
}

export const activation: Rows = {
  Celu: tuned([12, 28], { alpha: 1 }, (x, alpha) => sn.celu(x, alpha)),
  Elu: tuned([1, 6, 22], { alpha: 1 }, (x, alpha) => sn.elu(x, alpha)),
  Gelu: row([20], (call) => {
    const isTanh = call.attributes.string('approximate', 'none') === 'tanh';
    return sn.gelu(call.tensor(0), { approximate: isTanh ? 'tanh' : 'none' });
  }),
  HardSigmoid: tuned([1, 6, 22], { alpha: 0.2, beta: 0.5 }, (x, alpha, beta) =>
    sn.clamp(sn.add(sn.mul(x, alpha!), beta!), 0, 1),
  ),
  HardSwish: unary([14, 22], sn.hardswish),
  Hardmax: row([1, 11, 13], (call) => overRows(call, hardmax)),
  LeakyRelu: tuned([1, 6, 16], { alpha: 0.01 }, (x, alpha) => sn.leakyRelu(x, alpha)),
  LogSoftmax: row([1, 11, 13], (call) => overRows(call, (x, axis) => sn.logSoftmax(x, axis))),
  Mish: unary([18, 22], sn.mish),
  PRelu: row([1, 6, 7, 9, 16], prelu),
  Relu: unary([1, 6, 13, 14], sn.relu),
  Selu: row([1, 6, 22], (call) =>
    selu(call.tensor(0), call.attributes.float('alpha'), call.attributes.float('gamma')),
  ),
  Shrink: tuned([9], { lambd: 0.5, bias: 0 }, (x, lambd, bias) => shrink(x, lambd!, bias!)),
  Sigmoid: unary([1, 6, 13], sn.sigmoid),
  Softmax: row([1, 11, 13], (call) => overRows(call, (x, axis) => sn.softmax(x, axis))),
  Softplus: unary([1, 22], (x) => sn.softplus(x)),
  Softsign: unary([1, 22], sn.softsign),
  Swish: tuned([24], { alpha: 1 }, (x, alpha) => sn.mul(x, sn.sigmoid(sn.mul(x, alpha!)))),
  Tanh: unary([1, 6, 13], sn.tanh),
  ThresholdedRelu: tuned([10, 22], { alpha: 1 }, (x, alpha) =>
    sn.where(sn.gt(x, alpha!), x, sn.zerosLike(x)),
  ),
};
