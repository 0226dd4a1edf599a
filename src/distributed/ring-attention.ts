// Attention over a sequence that the processes of a mesh axis hold in parts (Liu, Zaharia and Abbeel, Ring attention with blockwise
// transformers for near-infinite context, 2023). Queries stay where they are. Keys and values go round the ring, a part at a time, and each
// process combines what it has seen by the running maximum and sum of a softmax.

import { TensorError } from '../errors.ts';
import { isFloat } from '../ir/dtype.ts';
import type { Mesh } from '../ir/mesh/mesh.ts';
import { partsOf } from '../ir/mesh/split.ts';
import { checkpoint } from '../tensor/derivative/checkpoint.ts';
import { stopGradient } from '../tensor/derivative/stop.ts';
import { arange } from '../tensor/ops/creation/creation.ts';
import { add, div, maximum, mul, remainder, sub } from '../tensor/ops/elementwise/arithmetic.ts';
import { cast } from '../tensor/ops/elementwise/cast.ts';
import { ge, where } from '../tensor/ops/elementwise/compare.ts';
import { exp } from '../tensor/ops/elementwise/elementwise.ts';
import { matmul } from '../tensor/ops/product/matmul.ts';
import { amax } from '../tensor/ops/reduce/extremum.ts';
import { sum } from '../tensor/ops/reduce/reduce.ts';
import { transpose, unsqueeze } from '../tensor/ops/shape/view.ts';
import type { Tensor } from '../tensor/tensor.ts';
import { namesOf, type Spec } from './mesh.ts';
import { permuteRanks, rankIndex, shardMap } from './shard-map.ts';

export interface RingAttentionOptions {
  /** Whether a query sees only keys at its own position and before. False by default. */
  readonly isCausal?: boolean;
  /** What scores are multiplied by; 1/√d by default. */
  readonly scale?: number;
}

/** What a process has of its queries' attention so far. */
interface Seen {
  /** [.., queries, 1]: the greatest score. */
  readonly greatest: Tensor;
  /** [.., queries, 1]: Σ e^(score − greatest). */
  readonly total: Tensor;
  /** [.., queries, dv]: Σ e^(score − greatest)·value. */
  readonly sum: Tensor;
}

/**
 * softmax(q·kᵀ·scale)·v for q [.., S, d], k [.., S, d], v [.., S, dv], whose axis S `spec` splits: each process keeps its queries, and keys and
 * values of one part at a time, in as many steps as there are parts. The same spec holds for q, k, v and the result; it may split the axes
 * before S, too, such as those of the batch and of the heads, and not the last one. Gradients go round the ring as well, and scores are computed
 * again for them.
 *
 * With as many heads as processes, `shard(q, mesh, [null, 'sequence', null, null])` and ordinary attention send less.
 *
 * Throws E_SHAPE where q, k and v do not fit each other or the spec, and E_DTYPE where they are no floats.
 */
export function ringAttention(
  q: Tensor,
  k: Tensor,
  v: Tensor,
  mesh: Mesh,
  spec: Spec,
  { isCausal = false, scale = 1 / Math.sqrt(q.shape.at(-1) ?? 1) }: RingAttentionOptions = {},
): Tensor {
  checkShapes(q, k, v);
  const split = namesOf('ringAttention', mesh, spec);
  if (split.at(-1)?.length !== 0)
    throw new TensorError(
      'E_SHAPE',
      'ringAttention',
      'the last axis cannot be split',
      'null as the last entry',
    );
  const ring = split.at(-2) ?? [];
  const count = partsOf(mesh, ring);
  const onPart = (queries: Tensor, keys: Tensor, values: Tensor): Tensor => {
    const step = checkpoint(
      (seen: Seen | undefined, ownKeys: Tensor, ownValues: Tensor, from: Tensor): Seen => {
        const scores = mul(matmul(wide(queries), transpose(wide(ownKeys), -1, -2)), scale);
        const masked = isCausal ? causal(scores, rankIndex(mesh, ring), from) : scores;
        return combined(seen, masked, wide(ownValues));
      },
    );
    const next = Array.from({ length: count }, (_, i) => [i, (i + 1) % count] as const);
    const forward = (x: Tensor): Tensor => permuteRanks(x, mesh, ring, next);
    let [seen, ownKeys, ownValues] = [undefined as Seen | undefined, keys, values];
    for (let i = 0; i < count; i++) {
      // The part that is here now is that of the process i places before. The first is the own one, where each query sees a key.
      const from = remainder(add(rankIndex(mesh, ring), count - i), count);
      seen = step(seen, ownKeys, ownValues, from);
      if (i + 1 < count) [ownKeys, ownValues] = [forward(ownKeys), forward(ownValues)];
    }
    return cast(div(seen!.sum, seen!.total), v.dtype);
  };
  return shardMap(onPart, mesh, [spec, spec, spec], spec)(q, k, v);
}

function checkShapes(q: Tensor, k: Tensor, v: Tensor): void {
  const shown = [q, k, v].map(({ dtype, shape }) => `${dtype}[${shape.join(', ')}]`).join(', ');
  const lead = (x: Tensor): string => x.shape.slice(0, -1).join();
  const fits = q.rank >= 2 && lead(q) === lead(k) && lead(k) === lead(v) && q.shape.at(-1) === k.shape.at(-1);
  if (!fits)
    throw new TensorError('E_SHAPE', 'ringAttention', `expects q and k [.., S, d], v [.., S, dv]: ${shown}`);
  if (![q, k, v].every(({ dtype }) => isFloat(dtype) && dtype === q.dtype))
    throw new TensorError('E_DTYPE', 'ringAttention', `expects floats of one dtype: ${shown}`);
}

const wide = (x: Tensor): Tensor => (x.dtype === 'f64' ? x : cast(x, 'f32'));

/** Scores of the queries of one part and the keys of another, −∞ where a key stands behind a query. */
function causal(scores: Tensor, ofQueries: Tensor, ofKeys: Tensor): Tensor {
  const [queries, keys] = scores.shape.slice(-2) as [number, number];
  const query = add(mul(ofQueries, queries), arange(queries));
  const key = add(mul(ofKeys, keys), arange(keys));
  return where(ge(unsqueeze(query, 1), key), scores, -Infinity);
}

function combined(seen: Seen | undefined, scores: Tensor, values: Tensor): Seen {
  // The result is the same whatever is taken away from all scores of a query.
  const own = stopGradient(amax(scores, -1, { keepdim: true }));
  const greatest = seen === undefined ? own : maximum(seen.greatest, own);
  const weights = exp(sub(scores, greatest));
  const [total, result] = [sum(weights, -1, { keepdim: true }), matmul(weights, values)];
  if (seen === undefined) return { greatest, total, sum: result };
  const shrink = exp(sub(seen.greatest, greatest));
  return { greatest, total: add(mul(seen.total, shrink), total), sum: add(mul(seen.sum, shrink), result) };
}
