// Linear models: products of features and coefficients.

import { SinterError } from '../../../errors.ts';
import * as sn from '../../../operations/index.ts';
import type { Tensor } from '../../../tensor/tensor.ts';
import type { Call, Rows } from '../../call.ts';
import { row } from '../row.ts';
import { Value } from '../../value.ts';
import { classLabels, labelled } from './labels.ts';
import { bothScores, postTransform, transformed } from './scores.ts';

/** Features as f32 [N, F]. */
export function featuresOf(call: Call): Tensor {
  const x = sn.cast(call.tensor(0), 'f32');
  if (x.rank === 2) return x;
  if (x.rank === 1) return sn.reshape(x, [1, x.size]);
  throw new SinterError('E_SHAPE', `takes [N,F], got [${x.shape.join(',')}]`);
}

/** A list of numbers as a matrix of so many columns. Throws E_SHAPE where they do not fill it. */
export function matrix(what: string, list: readonly number[], columns: number): Tensor {
  const rows = list.length / columns;
  if (!Number.isInteger(rows) || rows === 0)
    throw new SinterError('E_SHAPE', `${what} has ${list.length} numbers, for rows of ${columns}`);
  return sn.tensor(Float32Array.from(list), { shape: [rows, columns] });
}

function sums(call: Call): Tensor {
  const x = featuresOf(call);
  const weights = matrix('coefficients', call.attributes.floats('coefficients') ?? [], x.shape[1] ?? 1);
  const product = sn.matmul(x, sn.transpose(weights));
  const intercepts = call.attributes.floats('intercepts');
  if (intercepts === undefined || intercepts.length === 0) return product;
  if (intercepts.length !== weights.shape[0])
    throw new SinterError('E_SHAPE', `${weights.shape[0]} sums have ${intercepts.length} intercepts`);
  return sn.add(product, sn.tensor(Float32Array.from(intercepts)));
}

function regressor(call: Call): Tensor {
  const out = sums(call);
  const targets = call.attributes.int('targets', 1);
  if (out.shape[1] !== targets)
    throw new SinterError('E_SHAPE', `${targets} targets have coefficients for ${out.shape[1]}`);
  return transformed(out, postTransform(call.attributes.string('post_transform', 'NONE')));
}

function classifier(call: Call): (Value | Tensor)[] {
  const scores = sums(call);
  const name = postTransform(call.attributes.string('post_transform', 'NONE'));
  const labels = classLabels(call, 'classlabels_strings', 'classlabels_ints');
  if (scores.shape[1] !== 1) {
    const best = sn.cast(sn.argmax(scores, 1), 'i32');
    const list = labels ?? { type: 'int64', list: Array.from({ length: scores.shape[1] ?? 0 }, (_, i) => i) };
    if (list.list.length < (scores.shape[1] ?? 0))
      throw new SinterError('E_SHAPE', `${scores.shape[1]} scores have ${list.list.length} labels`);
    return [labelled(list, best), transformed(scores, name)];
  }
  const isPositive = sn.cast(sn.reshape(sn.gt(scores, 0), [scores.shape[0] ?? 0]), 'i32');
  const isPair = labels?.list.length === 2;
  const list = isPair
    ? labels
    : ({ type: labels?.type ?? 'int64', list: labels?.type === 'string' ? ['0', '1'] : [0, 1] } as const);
  return [labelled(list, isPositive), isPair ? bothScores(scores, name, true) : transformed(scores, name)];
}

export const linear: Rows = {
  LinearClassifier: row([1], classifier),
  LinearRegressor: row([1], regressor),
};
