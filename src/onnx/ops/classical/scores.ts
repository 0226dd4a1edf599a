// What classifiers and regressors make of their sums in the end.

import { SinterError } from '../../../errors.ts';
import * as sn from '../../../operations/index.ts';
import type { Tensor } from '../../../tensor/tensor.ts';

export type PostTransform = 'NONE' | 'LOGISTIC' | 'SOFTMAX' | 'SOFTMAX_ZERO' | 'PROBIT';

const names = new Set<string>(['NONE', 'LOGISTIC', 'SOFTMAX', 'SOFTMAX_ZERO', 'PROBIT']);

/** The name of an attribute. Throws E_VALUE at one that there is not. */
export function postTransform(name: string): PostTransform {
  if (!names.has(name)) throw new SinterError('E_VALUE', `no post_transform ${name}`);
  return name as PostTransform;
}

/** Scores [N, C] under the transform. */
export function transformed(scores: Tensor, name: PostTransform): Tensor {
  switch (name) {
    case 'NONE':
      return scores;
    case 'LOGISTIC':
      return sn.sigmoid(scores);
    case 'SOFTMAX':
      return sn.softmax(scores, -1);
    case 'SOFTMAX_ZERO':
      return softmaxZero(scores);
    case 'PROBIT':
      return probit(scores);
    default:
      return name satisfies never;
  }
}

/** A softmax in which scores of 0 stay 0. */
function softmaxZero(x: Tensor): Tensor {
  const most = sn.amax(x, -1, { keepdim: true });
  const isZero = sn.le(sn.abs(x), 1e-7);
  const parts = sn.where(isZero, sn.mul(x, sn.exp(sn.neg(most))), sn.exp(sn.sub(x, most)));
  const sum = sn.sum(parts, -1, { keepdim: true });
  return sn.where(sn.eq(sum, 0), 0.5, sn.div(parts, sum));
}

/** The quantile of the normal distribution, by the approximation that the format's engines share. */
function probit(x: Tensor): Tensor {
  const centred = sn.sub(sn.mul(x, 2), 1);
  const product = sn.mul(sn.sub(1, centred), sn.add(1, centred));
  const log = sn.log(product);
  const first = sn.add(2 / (Math.PI * 0.147), sn.mul(log, 0.5));
  const root = sn.sqrt(sn.sub(sn.mul(first, first), sn.div(log, 0.147)));
  const size = sn.sqrt(sn.sub(root, first));
  const signed = sn.where(sn.lt(centred, 0), sn.neg(size), size);
  return sn.mul(sn.where(sn.eq(product, 0), 0, signed), Math.SQRT2);
}

/** One score of the second of two classes as the scores of both, which is their share of 1 or not. */
export function bothScores(score: Tensor, name: PostTransform, isShare: boolean): Tensor {
  if (name === 'PROBIT') return transformed(score, name);
  const both = sn.cat([sn.neg(score), score], 1);
  if (name === 'LOGISTIC') return sn.sigmoid(both);
  return isShare ? sn.cat([sn.sub(1, score), score], 1) : both;
}
