// The cross-entropy of a binary target t, from the probability x or from its logit. Takes f32 or
// f64 nodes.

import { times } from '../../autograd/cotangent.ts';
import type { CustomRule } from '../../autograd/custom.ts';
import { add, binary, div, fullLike, mul, neg, sub, unary, where } from '../../ir/build.ts';
import type { GraphBuilder, Node } from '../../ir/graph.ts';
import { negativeAbs, withRule } from './elementwise.ts';

/** −t·log x − (1 − t)·log(1 − x), with logarithms not below −100. */
export function binaryEntropy(b: GraphBuilder, x: Node, target: Node): Node {
  const [yes, no] = flooredLogs(b, x);
  const value = neg(b, add(b, mul(b, target, yes), mul(b, sub(b, 1, target), no)));
  return withRule(b, value, [x, target], rule);
}

/** log x and log(1 − x), not below −100. */
function flooredLogs(b: GraphBuilder, x: Node): readonly [Node, Node] {
  const floored = (log: Node): Node => where(b, binary(b, 'lt', log, -100), fullLike(b, log, -100), log);
  return [floored(unary(b, 'log', x)), floored(unary(b, 'log1p', neg(b, x)))];
}

/** dx·(x − t)/(x·(1 − x)), where the divisor is at least 1e-12, and dt·(log(1 − x) − log x). */
const rule: CustomRule = (b, [x, target], _value, g) => {
  const spread = mul(b, x!, sub(b, 1, x!));
  const minDivisor = fullLike(b, spread, 1e-12);
  const divisor = where(b, binary(b, 'lt', spread, minDivisor), minDivisor, spread);
  const [yes, no] = flooredLogs(b, x!);
  return [times(b, g, div(b, sub(b, x!, target!), divisor)), times(b, g, sub(b, no, yes))];
};

/**
 * The same from the logit x, stable for all of them: (1 − t)·x for x ≥ 0, −w·t·x below, and (1 + (w
 * − 1)·t)·log1p(e^−|x|) beyond that, so that no two large terms cancel. The weight w of positive
 * targets is 1 where there is none.
 */
export function logitEntropy(b: GraphBuilder, x: Node, target: Node, weight?: Node): Node {
  const positive = weight === undefined ? target : mul(b, weight, target);
  const slope = where(b, binary(b, 'lt', x, 0), neg(b, positive), sub(b, 1, target));
  const tail = unary(b, 'log1p', unary(b, 'exp', negativeAbs(b, x)));
  const weighted = weight === undefined ? tail : mul(b, add(b, sub(b, positive, target), 1), tail);
  return add(b, mul(b, slope, x), weighted);
}
