// Quantised operators of com.microsoft, element by element and over windows: what comes in is widened,
// computed in f32, and quantised again with the scale and zero of the result.

import * as sn from '../../../operations/index.ts';
import type { Tensor } from '../../../tensor/tensor.ts';
import type { Call, Row, Rows } from '../../call.ts';
import { Value } from '../../value.ts';
import { pooledMean } from '../conv.ts';
import { dequantize, qLinearConv, quantised, quantize } from '../quantise.ts';
import { row } from '../row.ts';
import { channelsFirst } from './fused.ts';

/** An input as f32, with its scale and zero at these places. */
function widened(call: Call, place: number, scale: number, zero: number): Tensor {
  const x = sn.cast(call.tensor(place), 'i32');
  const own = call.optional(zero);
  const centred = own === undefined ? x : sn.sub(x, sn.cast(sn.reshape(own, []), 'i32'));
  return sn.mul(sn.cast(centred, 'f32'), sn.reshape(call.tensor(scale), []));
}

/** A result with its scale and zero at these places, of the type of input `like`. */
function narrowed(call: Call, x: Tensor, scale: number, zero: number, like = 0): Value {
  const own = call.optional(zero);
  const zeros = own === undefined ? undefined : sn.reshape(own, []);
  return quantised(x, sn.reshape(call.tensor(scale), []), zeros, call.type(like));
}

/** A function of one tensor, which has scale and zero, as the result has. */
function unaryOf(run: (call: Call, x: Tensor) => Tensor): Row {
  return row([1], (call) => narrowed(call, run(call, widened(call, 0, 1, 2)), 3, 4));
}

function binaryOf(run: (x: Tensor, y: Tensor) => Tensor): Row {
  return row([1], (call) => narrowed(call, run(widened(call, 0, 1, 2), widened(call, 3, 4, 5)), 6, 7));
}

function mean(call: Call, x: Tensor): Tensor {
  const isLast = call.attributes.int('channels_last', 0) === 1;
  return isLast ? channelsFirst(x, (t) => pooledMean(call, t)) : pooledMean(call, x);
}

function globalMean(call: Call, x: Tensor): Tensor {
  const first = call.attributes.int('channels_last', 0) === 1 ? 1 : 2;
  const axes = Array.from({ length: x.rank - 2 }, (_, i) => first + i);
  return sn.mean(x, axes, { keepdim: true });
}

function reducedMean(call: Call, x: Tensor): Tensor {
  const axes = call.axes(call.attributes.ints('axes') ?? x.shape.map((_, axis) => axis), x.rank);
  return sn.mean(x, axes, { keepdim: call.attributes.int('keepdims', 1) === 1 });
}

/** Along an axis; in the form of opset 12 and before along all from the axis on. */
function softmax(call: Call, x: Tensor): Tensor {
  const { attributes } = call;
  const isOne = attributes.int('opset', 13) >= 13;
  // Softmax itself begins at axis 1 there.
  const axis = call.axis(attributes.int('axis', -1), x.rank);
  if (isOne) return sn.softmax(x, axis);
  const columns = x.shape.slice(axis).reduce((size, dim) => size * dim, 1);
  return sn.reshape(sn.softmax(sn.reshape(x, [x.size / columns, columns]), 1), x.shape);
}

/** Tensors in threes, each with its scale and zero, behind those of the result. */
function concat(call: Call): Value {
  const parts = Array.from({ length: Math.floor((call.inputs.length - 2) / 3) }, (_, i) =>
    widened(call, 3 * i + 2, 3 * i + 3, 3 * i + 4),
  );
  return narrowed(call, sn.cat(parts, call.attributes.int('axis', 1)), 0, 1, 1);
}

function where(call: Call): Value {
  const chosen = sn.where(call.tensor(0), widened(call, 1, 2, 3), widened(call, 4, 5, 6));
  return narrowed(call, chosen, 7, 8, 1);
}

function conv(call: Call): Value {
  if (call.attributes.int('channels_last', 0) === 0) return qLinearConv(call);
  const out = qLinearConv(call, sn.moveaxis(call.tensor(0), -1, 1));
  return Value.of(sn.moveaxis(out.tensor, 1, -1), out.type);
}

export const quantisedRows: Rows = {
  DequantizeLinear: row([1], dequantize),
  QLinearAdd: binaryOf(sn.add),
  QLinearAveragePool: unaryOf(mean),
  QLinearConcat: row([1], concat),
  QLinearConv: row([1], conv),
  QLinearGlobalAveragePool: unaryOf(globalMean),
  QLinearLeakyRelu: unaryOf((call, x) => sn.leakyRelu(x, call.attributes.float('alpha', 0.01))),
  QLinearMul: binaryOf(sn.mul),
  QLinearReduceMean: unaryOf(reducedMean),
  QLinearSigmoid: unaryOf((_, x) => sn.sigmoid(x)),
  QLinearSoftmax: unaryOf(softmax),
  QLinearWhere: row([1], where),
  QuantizeLinear: row([1], quantize),
};
