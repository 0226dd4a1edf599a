// Support vector machines: kernels of features and support vectors, then sums, votes of pairs of
// classes, and probabilities that fit those of the pairs.

import { SinterError } from '../../../errors.ts';
import { foriLoop } from '../../../tensor/ops/control/scan.ts';
import * as sn from '../../../operations/index.ts';
import type { Tensor } from '../../../tensor/tensor.ts';
import type { Call, Rows } from '../../call.ts';
import { row } from '../row.ts';
import { Value } from '../../value.ts';
import { classLabels, labelled } from './labels.ts';
import { featuresOf, matrix } from './linear.ts';
import { bothScores, postTransform, transformed } from './scores.ts';

/** Each row of x with each vector: [N, vectors]. */
function kernel(call: Call, x: Tensor, vectors: Tensor): Tensor {
  const [gamma = 0, coef = 0, degree = 0] = call.attributes.floats('kernel_params') ?? [];
  const name = call.attributes.string('kernel_type', 'LINEAR');
  const product = (): Tensor => sn.matmul(x, sn.transpose(vectors));
  switch (name) {
    case 'LINEAR':
      return product();
    case 'POLY':
      return sn.pow(sn.add(sn.mul(product(), gamma), coef), degree);
    case 'SIGMOID':
      return sn.tanh(sn.add(sn.mul(product(), gamma), coef));
    case 'RBF': {
      const apart = sn.sub(sn.unsqueeze(x, 1), sn.unsqueeze(vectors, 0));
      return sn.exp(sn.mul(sn.sum(sn.mul(apart, apart), -1), -gamma));
    }
    default:
      return call.fail(`no kernel_type ${name}`);
  }
}

function floatsOf(call: Call, name: string): readonly number[] {
  return call.attributes.floats(name) ?? [];
}

function regressor(call: Call): Tensor {
  const x = featuresOf(call);
  const [coefficients, [rho = 0]] = [floatsOf(call, 'coefficients'), floatsOf(call, 'rho')];
  const width = x.shape[1] ?? 1;
  const supports = call.attributes.int('n_supports', 0);
  const against =
    supports > 0 ? kernel(call, x, matrix('support_vectors', floatsOf(call, 'support_vectors'), width)) : x;
  const weights = matrix('coefficients', coefficients, against.shape[1] ?? 1);
  if (weights.shape[0] !== 1)
    throw new SinterError('E_SHAPE', `${coefficients.length} coefficients for ${against.shape[1]} numbers`);
  const sum = sn.add(sn.matmul(against, sn.transpose(weights)), rho);
  if (call.attributes.int('one_class', 0) === 1) return sn.where(sn.gt(sum, 0), sn.onesLike(sum), -1);
  return transformed(sum, postTransform(call.attributes.string('post_transform', 'NONE')));
}

/** Pairs of classes in the order of their sums. */
function pairsOf(classes: number): (readonly [number, number])[] {
  return Array.from({ length: classes }, (_, i) =>
    Array.from({ length: classes - 1 - i }, (_unused, k) => [i, i + 1 + k] as const),
  ).flat();
}

/** The sums of pairs of classes: [N, pairs]. */
function pairSums(call: Call, x: Tensor, perClass: readonly number[]): Tensor {
  const total = perClass.reduce((sum, count) => sum + count, 0);
  const width = x.shape[1] ?? 1;
  const vectors = matrix('support_vectors', floatsOf(call, 'support_vectors'), width);
  const coefficients = floatsOf(call, 'coefficients');
  const rho = floatsOf(call, 'rho');
  const pairs = pairsOf(perClass.length);
  if (vectors.shape[0] !== total || coefficients.length < (perClass.length - 1) * total)
    throw new SinterError(
      'E_SHAPE',
      `${total} vectors of ${perClass.length} classes: ${vectors.shape[0]} are there, with ${coefficients.length} coefficients`,
    );
  const starts = perClass.map((_, i) => perClass.slice(0, i).reduce((sum, count) => sum + count, 0));
  const table = new Float32Array(total * pairs.length);
  pairs.forEach(([i, j], pair) => {
    for (const [own, other] of [
      [i, j - 1],
      [j, i],
    ] as const) {
      const start = starts[own] ?? 0;
      for (let v = start; v < start + (perClass[own] ?? 0); v++)
        table[v * pairs.length + pair] = coefficients[other * total + v] ?? 0;
    }
  });
  const products = sn.matmul(kernel(call, x, vectors), sn.tensor(table, { shape: [total, pairs.length] }));
  return sn.add(products, sn.tensor(Float32Array.from(pairs, (_, i) => rho[i] ?? 0)));
}

/** How many pairs each class wins: [N, classes]. */
function votesOf(sums: Tensor, classes: number): Tensor {
  const pairs = pairsOf(classes);
  const winners = (side: 0 | 1): Tensor => {
    const table = new Float32Array(pairs.length * classes);
    pairs.forEach((pair, i) => (table[i * classes + pair[side]] = 1));
    return sn.tensor(table, { shape: [pairs.length, classes] });
  };
  const isFirst = sn.cast(sn.gt(sums, 0), 'f32');
  return sn.add(sn.matmul(isFirst, winners(0)), sn.matmul(sn.sub(1, isFirst), winners(1)));
}

/**
 * Probabilities of classes that fit those of their pairs, by the iteration of Wu, Lin and Weng; rows
 * that fit stay as they are while others go on.
 */
function coupled(call: Call, sums: Tensor, classes: number): Tensor {
  const [a, b] = [floatsOf(call, 'prob_a'), floatsOf(call, 'prob_b')];
  const pairs = pairsOf(classes);
  const scaled = sn.add(
    sn.mul(sums, sn.tensor(Float32Array.from(pairs, (_, i) => a[i] ?? 0))),
    sn.tensor(Float32Array.from(pairs, (_, i) => b[i] ?? 0)),
  );
  const wins = sn.clamp(sn.sigmoid(sn.neg(scaled)), 1e-7, 1 - 1e-7);
  const column = (pair: number): Tensor => sn.select(wins, 1, pair);
  const r = (i: number, j: number): Tensor => {
    const pair = pairs.findIndex(([p, q]) => p === Math.min(i, j) && q === Math.max(i, j));
    return i < j ? column(pair) : sn.sub(1, column(pair));
  };
  const range = Array.from({ length: classes }, (_, i) => i);
  const q = range.map((t) =>
    range.map((s) => {
      if (s !== t) return sn.neg(sn.mul(r(s, t), r(t, s)));
      return range
        .filter((i) => i !== t)
        .map((i) => sn.mul(r(i, t), r(i, t)))
        .reduce((sum, next) => sn.add(sum, next));
    }),
  );
  const matrixQ = sn.stack(
    q.map((line) => sn.stack(line, 1)),
    1,
  );
  const start = sn.full([sums.shape[0] ?? 0, classes], 1 / classes, { dtype: 'f32' });
  const turn = (p: Tensor): Tensor => {
    let [now, qp] = [p, sn.squeeze(sn.matmul(matrixQ, sn.unsqueeze(p, 2)), 2)];
    let pqp = sn.sum(sn.mul(now, qp), 1, { keepdim: true });
    const error = sn.amax(sn.abs(sn.sub(qp, pqp)), 1, { keepdim: true });
    for (const t of range) {
      const own = sn.narrow(qp, 1, t, 1);
      const diagonal = sn.unsqueeze(q[t]![t]!, 1);
      const step = sn.div(sn.sub(pqp, own), diagonal);
      const unit = sn.add(step, 1);
      const raised = sn.add(
        now,
        sn.mul(
          step,
          sn.tensor(
            range.map((i) => (i === t ? 1 : 0)),
            { dtype: 'f32' },
          ),
        ),
      );
      pqp = sn.div(
        sn.add(pqp, sn.mul(step, sn.add(sn.mul(step, diagonal), sn.mul(own, 2)))),
        sn.mul(unit, unit),
      );
      now = sn.div(raised, unit);
      qp = sn.div(sn.add(qp, sn.mul(step, sn.select(matrixQ, 1, t))), unit);
    }
    return sn.where(sn.lt(error, 0.005 / classes), p, now);
  };
  const most = Math.max(100, classes);
  return foriLoop(0, most, (_, [p]: [Tensor]) => [turn(p)], [start] as [Tensor])[0];
}

function classifier(call: Call): (Value | Tensor)[] {
  const x = featuresOf(call);
  const labels = classLabels(call, 'classlabels_strings', 'classlabels_ints');
  const classes = Math.max(1, labels?.list.length ?? 0);
  const coefficients = floatsOf(call, 'coefficients');
  const perClass = call.attributes.ints('vectors_per_class') ?? [];
  const hasVectors = perClass.some((count) => count > 0);
  const name = postTransform(call.attributes.string('post_transform', 'NONE'));
  const rho = floatsOf(call, 'rho');
  if (!hasVectors) {
    const weights = matrix('coefficients', coefficients, x.shape[1] ?? 1);
    if (weights.shape[0] !== classes)
      throw new SinterError('E_SHAPE', `${classes} classes have ${weights.shape[0]} rows of coefficients`);
    const scores = sn.add(sn.matmul(x, sn.transpose(weights)), rho[0] ?? 0);
    return finished(labelOf(scores), scores);
  }
  if (classes < 2 || perClass.length !== classes)
    throw new SinterError('E_FORMAT', `${perClass.length} numbers of vectors for ${classes} classes`);
  const sums = pairSums(call, x, perClass);
  const best = labelOf(votesOf(sums, classes));
  const isLikely = floatsOf(call, 'prob_a').length > 0;
  const scores = isLikely ? coupled(call, sums, classes) : sums;
  if (scores.shape[1] !== 1) return finished(best, scores);
  // One pair: with coefficients that are all positive each vote counts for the second class.
  const isPositive = coefficients.every((value) => value >= 0);
  return [labelOrPlace(isPositive ? sn.onesLike(best) : best), bothScores(scores, name, false)];

  function labelOf(of: Tensor): Tensor {
    return sn.cast(sn.argmax(of, 1), 'i32');
  }
  function labelOrPlace(place: Tensor): Value {
    return labelled(labels ?? { type: 'int64', list: Array.from({ length: classes }, (_, i) => i) }, place);
  }
  function finished(place: Tensor, all: Tensor): (Value | Tensor)[] {
    return [labelOrPlace(place), transformed(all, name)];
  }
}

export const svm: Rows = {
  SVMClassifier: row([1], classifier),
  SVMRegressor: row([1], regressor),
};
