// The choice of the next token, on the device: penalties, temperature, then top-k, top-p and min-p on
// the tokens in order of their probability, then a draw by a key that the seed and the position make.

import {
  add,
  arange,
  argmax,
  cumsum,
  div,
  ge,
  gt,
  le,
  log,
  logicalAnd,
  logicalOr,
  lt,
  maximum,
  minimum,
  mul,
  narrow,
  neg,
  rand,
  reshape,
  softmax,
  sort,
  sub,
  sum,
  take,
  toFloat,
  toInt,
  where,
} from '../../operations/index.ts';
import { foldIn } from '../../tensor/ops/creation/keys.ts';
import type { Tensor } from '../../tensor/tensor.ts';
import type { SamplingNumbers } from './options.ts';

/** The numbers of a run, as a traced function has them. */
export type SamplingTensors = SamplingNumbers<Tensor>;

/** What sampling looks at beside the scores. */
export interface SamplingContext {
  /** The key of the seed: u32 [2]. */
  readonly key: Tensor;
  /** Of the token whose scores these are: i32, []. */
  readonly position: Tensor;
  /** How often each token stands in the prompt, and how often it was written: f32 [vocabulary]. */
  readonly counts?: { readonly given: Tensor; readonly written: Tensor } | undefined;
  /** bool [vocabulary]: which tokens may come; all where there is none. */
  readonly allowed?: Tensor | undefined;
}

/** The next token, i32 [1], by its scores [vocabulary]. */
export function chooseToken(scores: Tensor, numbers: SamplingTensors, context: SamplingContext): Tensor {
  const { allowed, counts } = context;
  const { draw, filter, penalty } = numbers;
  const isPenalised = counts !== undefined && penalty !== undefined;
  const penalised = isPenalised ? withPenalties(scores, penalty, counts) : scores;
  const possible = allowed === undefined ? penalised : where(allowed, penalised, -Infinity);
  if (draw === undefined) return reshape(argmax(possible, -1), [1]);
  const heated = div(possible, draw.temperature);
  const key = foldIn(context.key, context.position);
  if (filter !== undefined) return filtered(heated, filter, key);
  // The maximum of scores with Gumbel noise is a draw by softmax (Gumbel, 1954).
  const uniform = rand([heated.size], { key });
  // Above 0 and below 1: noise is finite, and what may not come stays at −∞.
  const noise = neg(log(neg(log(maximum(uniform, 2 ** -25)))));
  return reshape(argmax(add(heated, noise), -1), [1]);
}

function withPenalties(
  scores: Tensor,
  { repetition, presence, frequency }: NonNullable<SamplingTensors['penalty']>,
  { given, written }: NonNullable<SamplingContext['counts']>,
): Tensor {
  const wasWritten = gt(written, 0);
  const stands = logicalOr(gt(given, 0), wasWritten);
  const weaker = where(gt(scores, 0), div(scores, repetition), mul(scores, repetition));
  const repeated = where(stands, weaker, scores);
  return sub(repeated, add(mul(toFloat(wasWritten), presence), mul(written, frequency)));
}

function filtered(
  heated: Tensor,
  { topK, topP, minP }: NonNullable<SamplingTensors['filter']>,
  key: Tensor,
): Tensor {
  const [sorted, order] = sort(heated, -1, { descending: true });
  const likely = softmax(sorted, -1);
  const before = sub(cumsum(likely, -1), likely);
  const places = toFloat(arange(likely.size));
  const first = logicalOr(le(topK, 0), lt(places, topK));
  const together = logicalOr(ge(topP, 1), lt(before, topP));
  const near = ge(likely, mul(narrow(likely, 0, 0, 1), minP));
  // The likeliest stays, whatever the numbers are. What may not come has no probability.
  const asked = logicalAnd(logicalAnd(first, together), logicalAnd(near, gt(likely, 0)));
  const keeps = logicalOr(le(places, 0), asked);
  const kept = where(keeps, likely, 0);
  const target = mul(rand([1], { key }), sum(kept));
  const passed = sum(toInt(le(cumsum(kept, -1), target)));
  const last = sub(sum(toInt(keeps)), 1);
  return reshape(take(order, minimum(passed, last)), [1]);
}
