// The weights of attention as graph nodes: a softmax of scores from which masked keys are excluded.

import {
  add,
  binary,
  broadcast,
  cast,
  div,
  fullLike,
  reduceKeep,
  sub,
  unary,
  where,
} from '../../../ir/build.ts';
import { largestOf } from '../../../ir/dtype.ts';
import { dims, type GraphBuilder, type Node } from '../../../ir/graph.ts';
import * as formula from '../../formula/elementwise.ts';

/**
 * Softmax over the visible keys: e^(x − m) / Σ e^(x − m), where only those count. The maximum takes
 * the least finite score for others, so that no row is −∞ − −∞, and a sum of nothing counts as 1: a
 * row whose keys are all masked gives zeros.
 *
 * @internal
 */
export function attentionWeights(
  b: GraphBuilder,
  scores: Node,
  mask: Node | undefined,
  isCausal: boolean,
): Node {
  const shape = dims(scores);
  const last = shape.length - 1;
  const seen = visible(b, scores, mask, isCausal);
  if (seen === undefined) return formula.softmax(b, scores, [last]);
  const biased =
    mask === undefined || mask.dtype === 'bool'
      ? scores
      : add(b, scores, broadcast(b, cast(b, mask, scores.dtype), shape));
  const lowestScore = fullLike(b, scores, -largestOf(scores.dtype));
  const shift = formula.shiftOf(b, where(b, seen, biased, lowestScore), [last]);
  const terms = unary(b, 'exp', sub(b, biased, broadcast(b, shift, shape)));
  const seenTerms = where(b, seen, terms, fullLike(b, terms, 0));
  const total = reduceKeep(b, 'sum', seenTerms, [last]);
  // Added, so that the derivative is that of the sum alone: the backward pass then keeps one number
  // a row for both.
  const nothing = formula.stopGradient(b, cast(b, binary(b, 'eq', total, 0), total.dtype));
  return div(b, seenTerms, broadcast(b, add(b, total, nothing), shape));
}

/** Which keys each query may see, or undefined for all. */
function visible(b: GraphBuilder, scores: Node, mask: Node | undefined, isCausal: boolean): Node | undefined {
  const shape = dims(scores);
  let seen: Node | undefined;
  if (mask !== undefined) {
    const allowed = mask.dtype === 'bool' ? mask : binary(b, 'ne', mask, -Infinity);
    seen = broadcast(b, allowed, shape);
  }
  if (!isCausal) return seen;
  const past = binary(
    b,
    'le',
    formula.iota(b, shape, shape.length - 1),
    formula.iota(b, shape, shape.length - 2),
  );
  return seen === undefined ? past : binary(b, 'and', seen, past);
}
