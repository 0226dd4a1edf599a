// Losses of classification.

import * as sn from '../../operations/index.ts';
import type { Tensor } from '../../tensor/tensor.ts';
import type { Call, Rows } from '../call.ts';
import { row } from './row.ts';

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
