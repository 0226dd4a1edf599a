// Activations of com.microsoft, and sums with them: what optimisers make of a few nodes each.

import * as sn from '../../../operations/index.ts';
import type { Tensor } from '../../../tensor/tensor.ts';
import type { Call, Rows } from '../../call.ts';
import { selu } from '../activation.ts';
import { row } from '../row.ts';

/** Input 0 with the bias of an input, where there is one. */
function biased(call: Call, place = 1): Tensor {
  const bias = call.optional(place);
  return bias === undefined ? call.tensor(0) : sn.add(call.tensor(0), bias);
}

export function fastGelu(x: Tensor): Tensor {
  return sn.gelu(x, { approximate: 'tanh' });
}

/** The numbers of a fused activation, by their place or by their Greek letter. */
export interface ActivationNumbers {
  readonly alpha?: number | undefined;
  readonly beta?: number | undefined;
  readonly gamma?: number | undefined;
}

/** The activation that an operator names and applies to its result. Throws E_VALUE at other names. */
export function activated(call: Call, x: Tensor, { alpha, beta, gamma }: ActivationNumbers): Tensor {
  const name = call.attributes.string('activation', '');
  switch (name) {
    case '':
      return x;
    case 'Relu':
      return sn.relu(x);
    case 'Tanh':
      return sn.tanh(x);
    case 'Sigmoid':
      return sn.sigmoid(x);
    case 'LeakyRelu':
      return sn.leakyRelu(x, alpha ?? 0.01);
    case 'Clip':
      return sn.clamp(x, alpha ?? -Infinity, beta ?? Infinity);
    case 'HardSigmoid':
      return sn.clamp(sn.add(sn.mul(x, alpha ?? 0.2), beta ?? 0.5), 0, 1);
    case 'HardSwish':
      return sn.hardswish(x);
    case 'Softplus':
      return sn.softplus(x);
    case 'Softsign':
      return sn.softsign(x);
    case 'Elu':
      return sn.elu(x, alpha ?? 1);
    case 'Celu':
      return sn.celu(x, alpha ?? 1);
    case 'Selu':
      return selu(x, alpha, gamma);
    case 'ThresholdedRelu':
      return sn.where(sn.gt(x, alpha ?? 1), x, sn.zerosLike(x));
    case 'Gelu':
      return sn.gelu(x);
    case 'QuickGelu':
      return sn.mul(x, sn.sigmoid(sn.mul(x, alpha ?? 1.702)));
    default:
      return call.fail(`attribute 'activation': '${name}' is not supported`);
  }
}

/** The left half times the activation of the right one. */
function splitGelu(call: Call): Tensor {
  const x = biased(call);
  const half = x.shape.at(-1)! / 2;
  return sn.mul(sn.narrow(x, -1, 0, half), sn.gelu(sn.narrow(x, -1, half, half)));
}

function biasSoftmax(call: Call): Tensor {
  const x = call.tensor(0);
  const bias = call.tensor(1);
  const axis = call.axis(call.attributes.int('axis', 1), x.rank);
  // A bias of fewer rows belongs to runs of rows, or to every so manieth one.
  const isInner = call.attributes.int('is_inner_broadcast', 1) === 1;
  const missing = x.rank - bias.rank;
  const shape = isInner
    ? [
        ...bias.shape.slice(0, axis - missing),
        ...new Array<number>(missing).fill(1),
        ...bias.shape.slice(axis - missing),
      ]
    : bias.shape;
  const sum = sn.add(x, sn.reshape(bias, shape));
  const columns = x.shape.slice(axis).reduce((size, dim) => size * dim, 1);
  return sn.reshape(sn.softmax(sn.reshape(sum, [x.size / columns, columns]), 1), x.shape);
}

export const activations: Rows = {
  BiasAdd: row([1], (call) => sn.add(biased(call), call.tensor(2))),
  BiasGelu: row([1], (call) => sn.gelu(biased(call))),
  BiasSoftmax: row([1], biasSoftmax),
  BiasSplitGelu: row([1], splitGelu),
  FastGelu: row([1], (call) => fastGelu(biased(call))),
  Gelu: row([1], (call) => sn.gelu(call.tensor(0))),
  QuickGelu: row([1], (call) => {
    const x = call.tensor(0);
    return sn.mul(x, sn.sigmoid(sn.mul(x, call.attributes.float('alpha', 1.702))));
  }),
};
