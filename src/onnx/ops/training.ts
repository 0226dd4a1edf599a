// Steps of optimizers (ai.onnx.preview.training): inputs are the rate, the count of steps, then the
// tensors, their derivatives, and the state, in groups.

import * as sn from '../../operations/index.ts';
import { SinterError } from '../../errors.ts';
import type { Tensor } from '../../tensor/tensor.ts';
import type { Call, Rows } from '../call.ts';
import { row } from './row.ts';

// Losses of classification.

/** −log p of the target's class, weighted; classes on axis 1. */
function negativeLogLikelihood(call: Call, logs: Tensor): Tensor {
  const { attributes } = call;
  const target = sn.cast(call.tensor(1), 'i32');
  const ignored = attributes.int('ignore_index');
  const counted = ignored === undefined ? undefined : sn.ne(target, ignored);
  const safe = counted === undefined ? target : sn.where(counted, target, sn.zerosLike(target));
  const chosen = sn.squeeze(sn.gather(logs, 1, sn.unsqueeze(safe, 1)), 1);
  const given = call.optional(2);
  const own = given === undefined ? sn.onesLike(chosen) : sn.reshape(sn.take(given, safe), chosen.shape);
  const weight = counted === undefined ? own : sn.where(counted, own, sn.zerosLike(own));
  const losses = sn.mul(sn.neg(chosen), weight);
  switch (attributes.string('reduction', 'mean')) {
    case 'none':
      return losses;
    case 'sum':
      return sn.sum(losses);
    default:
      return sn.div(sn.sum(losses), sn.sum(weight));
  }
}

function crossEntropy(call: Call): Tensor[] {
  const logs = sn.logSoftmax(call.tensor(0), 1);
  return [negativeLogLikelihood(call, logs), logs];
}

export const loss: Rows = {
  NegativeLogLikelihoodLoss: row([12, 13, 22], (call) => negativeLogLikelihood(call, call.tensor(0))),
  SoftmaxCrossEntropyLoss: row([12, 13], crossEntropy),
};

/** A number as a tensor of one element, for arithmetic with tensors of any shape. */
const scalar = (x: Tensor): Tensor => sn.reshape(x, []);

/** What a step makes of a tensor: its new value and its new state. */
type Step = (x: Tensor, derivative: Tensor, state: readonly Tensor[]) => readonly Tensor[];

/** Applies a step to each tensor; results are the tensors, then the first states, and so on. */
function each(call: Call, states: number, step: Step): Tensor[] {
  const given = call.tensors(2);
  const groups = 2 + states;
  const count = given.length / groups;
  if (!Number.isInteger(count))
    throw new SinterError('E_FORMAT', `${given.length} inputs are not ${groups} for each tensor`);
  const results = Array.from({ length: count }, (_, i) => {
    const [x, derivative, ...state] = Array.from({ length: groups }, (_, k) => given[k * count + i]);
    return step(x as Tensor, derivative as Tensor, state as Tensor[]);
  });
  return Array.from({ length: 1 + states }, (_, k) => results.map((own) => own[k] as Tensor)).flat();
}

/** The derivative with that of half the squared norm added. */
function regularised(call: Call, x: Tensor, derivative: Tensor): Tensor {
  const norm = call.attributes.float('norm_coefficient', 0);
  return norm === 0 ? derivative : sn.add(sn.mul(x, norm), derivative);
}

function adagrad(call: Call): Tensor[] {
  const { attributes } = call;
  const count = sn.cast(scalar(call.tensor(1)), call.tensor(0).dtype);
  const rate = sn.div(scalar(call.tensor(0)), sn.add(sn.mul(count, attributes.float('decay_factor', 0)), 1));
  return each(call, 1, (x, derivative, [squares]) => {
    const g = regularised(call, x, derivative);
    const sum = sn.add(squares as Tensor, sn.mul(g, g));
    const scale = sn.add(sn.sqrt(sum), attributes.float('epsilon', 1e-6));
    return [sn.sub(x, sn.div(sn.mul(rate, g), scale)), sum];
  });
}

function adam(call: Call): Tensor[] {
  const { attributes } = call;
  const [alpha, beta] = [attributes.float('alpha', 0.9), attributes.float('beta', 0.999)];
  const given = scalar(call.tensor(0));
  const count = sn.cast(scalar(call.tensor(1)), given.dtype);
  const power = (base: number): Tensor => sn.pow(sn.full([], base, { dtype: given.dtype }), count);
  const unbiased = sn.div(sn.mul(given, sn.sqrt(sn.sub(1, power(beta)))), sn.sub(1, power(alpha)));
  const rate = sn.where(sn.gt(count, 0), unbiased, given);
  return each(call, 2, (x, derivative, [mean, squares]) => {
    const g = regularised(call, x, derivative);
    const v = sn.add(sn.mul(mean as Tensor, alpha), sn.mul(g, 1 - alpha));
    const h = sn.add(sn.mul(squares as Tensor, beta), sn.mul(sn.mul(g, g), 1 - beta));
    const scale = sn.add(sn.sqrt(h), attributes.float('epsilon', 1e-6));
    const moved = sn.sub(x, sn.div(sn.mul(rate, v), scale));
    return [sn.mul(moved, 1 - attributes.float('norm_coefficient_post', 0)), v, h];
  });
}

function momentum(call: Call): Tensor[] {
  const { attributes } = call;
  const rate = scalar(call.tensor(0));
  const [alpha, beta] = [attributes.float('alpha', 0), attributes.float('beta', 0)];
  const mode = attributes.string('mode', 'standard');
  if (mode !== 'standard' && mode !== 'nesterov') call.fail(`no mode ${mode}`);
  // In the first step what is there is all there is.
  const share = sn.where(sn.gt(scalar(call.tensor(1)), 0), sn.full([], beta, { dtype: rate.dtype }), 1);
  return each(call, 1, (x, derivative, [speed]) => {
    const g = regularised(call, x, derivative);
    const v = sn.add(sn.mul(speed as Tensor, alpha), sn.mul(share, g));
    const way = mode === 'standard' ? v : sn.add(g, sn.mul(v, alpha));
    return [sn.sub(x, sn.mul(rate, way)), v];
  });
}

export const training: Rows = {
  Adagrad: row([1], adagrad),
  Adam: row([1], adam),
  Momentum: row([1], momentum),
};
