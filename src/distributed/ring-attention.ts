// Attention over a sequence that the processes of a mesh axis hold in parts (Liu, Zaharia and Abbeel, Ring attention with blockwise
// transformers for near-infinite context, 2023). Queries stay where they are. Keys and values go round the ring, a part at a time, and each
// process combines what it has seen by the running maximum and sum of a softmax.
//
// With a causal mask, a process skips blocks of which its queries see no key. Where parts are runs of the sequence, the last process then has
// all parts to multiply, and the first one only its own. In zigzag order (Llama Team, The Llama 3 herd of models, 2024; compare Brandon et al.,
// Striped attention, 2023) the sequence is cut into 2n slices, and process i of n has the slices i and 2n − 1 − i: all processes have equal work.

import { TensorError } from '../errors.ts';
import * as arg from '../ir/arguments.ts';
import { isFloat, type DType } from '../ir/dtype.ts';
import { axesNamed, groupSize, type Mesh } from '../ir/mesh/mesh.ts';
import { partsOf } from '../ir/mesh/split.ts';
import { checkpoint } from '../tensor/derivative/checkpoint.ts';
import { stopGradient } from '../tensor/derivative/stop.ts';
import { cond } from '../tensor/ops/control/branch.ts';
import { arange } from '../tensor/ops/creation/creation.ts';
import { add, div, maximum, mul, remainder, sub } from '../tensor/ops/elementwise/arithmetic.ts';
import { cast } from '../tensor/ops/elementwise/cast.ts';
import { eq, ge, lt, where } from '../tensor/ops/elementwise/compare.ts';
import { exp } from '../tensor/ops/elementwise/elementwise.ts';
import { matmul } from '../tensor/ops/product/matmul.ts';
import { amax } from '../tensor/ops/reduce/extremum.ts';
import { sum } from '../tensor/ops/reduce/reduce.ts';
import { narrow } from '../tensor/ops/shape/indexing.ts';
import { cat } from '../tensor/ops/shape/join.ts';
import { flatten, transpose, unflatten, unsqueeze } from '../tensor/ops/shape/view.ts';
import type { Tensor } from '../tensor/tensor.ts';
import { splitOf, type Spec } from './mesh.ts';
import { permuteRanks, rankIndex, shardMap, type MeshAxes } from './shard-map.ts';

export interface RingAttentionOptions {
  /** Whether a query sees only keys at its own position and before. False by default. */
  readonly isCausal?: boolean;
  /** What scores are multiplied by; 1/√d by default. */
  readonly scale?: number;
  /**
   * The order of the positions along the sequence: as they are (`sequence`, the default), or as `zigzag` lays them out. It matters to causal
   * attention alone, whose processes have equal work in zigzag order.
   */
  readonly order?: 'sequence' | 'zigzag';
  /** Whether k and v have fewer heads than q, each of which serves a group of q's. False by default. */
  readonly enableGqa?: boolean;
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

/** Which keys of a slice the queries of another see: all, none, those up to their own places, or all where a process finds it true. */
type Sight = 'all' | 'none' | 'diagonal' | Tensor;

const op = 'ringAttention';
const takesRing = arg.takes<(options?: RingAttentionOptions) => unknown>([
  'options',
  arg.options<RingAttentionOptions>({
    isCausal: arg.flag,
    scale: arg.finite,
    order: arg.oneOf('sequence', 'zigzag'),
    enableGqa: arg.flag,
  }),
]);

/**
 * softmax(q·kᵀ·scale)·v for q [.., S, d], k [.., S, d], v [.., S, dv], whose axis S `spec` splits: each process keeps its queries, and keys and
 * values of one part at a time, in as many steps as there are parts. The same spec holds for q, k, v and the result; it may split the axes
 * before S, too, such as those of the batch and of the heads, and not the last one. Gradients go round the ring as well, and scores are computed
 * again for them. There are no masks but the causal one.
 *
 * With `isCausal`, blocks of which no key is seen are skipped, whatever they hold. With `enableGqa`, q is [.., H, S, d], and k and v have a
 * number of heads that divides H: heads are split alike, and the mesh has to divide them both.
 *
 * With as many heads as processes, `shard(q, mesh, [null, 'sequence', null, null])` and ordinary attention send less.
 *
 * Throws E_SHAPE where q, k and v do not fit each other, the spec or the order, E_DTYPE where they are no floats, and E_VALUE at options that
 * it does not have.
 */
export function ringAttention(
  q: Tensor,
  k: Tensor,
  v: Tensor,
  mesh: Mesh,
  spec: Spec,
  options: RingAttentionOptions = {},
): Tensor {
  takesRing(op, options);
  const { isCausal = false, order = 'sequence', enableGqa = false } = options;
  const { scale = 1 / Math.sqrt(q.shape.at(-1) ?? 1) } = options;
  checkShapes(q, k, v, enableGqa);
  const split = splitOf(op, mesh, q.shape, spec);
  if (split.at(-1)?.length !== 0)
    throw new TensorError('E_SHAPE', op, 'the last axis cannot be split', 'null as the last entry');
  const ring = split.at(-2) ?? [];
  const count = partsOf(mesh, ring);
  const isZigzag = order === 'zigzag';
  if (isZigzag) checkSlices(op, q.shape.at(-2)!, count);
  const slices = isCausal && isZigzag ? 2 : 1;
  const onPart = (queries: Tensor, keys: Tensor, values: Tensor): Tensor => {
    const own = cut(enableGqa ? grouped(queries, keys.shape.at(-3)!) : queries, slices);
    const next = Array.from({ length: count }, (_, i) => [i, (i + 1) % count] as const);
    const forward = (x: Tensor): Tensor => permuteRanks(x, mesh, ring, next);
    let [ownKeys, ownValues] = [keys, values];
    const seen: (Seen | undefined)[] = own.map(() => undefined);
    for (let i = 0; i < count; i++) {
      // The part that is here now is that of the process i places before. The first is the own one, where each query sees a key.
      const place = rankIndex(mesh, ring);
      const from = remainder(add(place, count - i), count);
      const [keySlices, valueSlices] = [ownKeys, ownValues].map((x) =>
        cut(enableGqa ? unsqueeze(x, -3) : x, slices),
      ) as [Tensor[], Tensor[]];
      for (const [a, query] of own.entries())
        for (const [b, key] of keySlices.entries()) {
          const sight = isCausal ? sightOf(a, b, i === 0, place, from) : 'all';
          seen[a] = withBlock(seen[a], query, key, valueSlices[b]!, sight, scale);
        }
      if (i + 1 < count) [ownKeys, ownValues] = [forward(ownKeys), forward(ownValues)];
    }
    const results = seen.map((one) => cast(div(one!.sum, one!.total), v.dtype));
    const result = results.length === 1 ? results[0]! : cat(results, -2);
    return enableGqa ? flatten(result, -4, -3) : result;
  };
  return shardMap(onPart, mesh, [spec, spec, spec], spec)(q, k, v);
}

/**
 * The tensor with the slices of an axis in the order in which causal `ringAttention` gives the processes along these axes of the mesh equal work:
 * of 2n slices, process i of n gets the i-th and the (2n − 1 − i)-th. What belongs to tokens goes along: targets, and positions as
 * `zigzag(arange(S), mesh, 'sequence')`. The axis is the first one by default. Throws E_SHAPE where 2n does not divide its size,
 * and E_AXIS where the tensor or the mesh lacks an axis.
 */
export function zigzag<D extends DType>(x: Tensor<D>, mesh: Mesh, over: MeshAxes, axis = 0): Tensor<D> {
  return ordered('zigzag', x, mesh, over, axis, (places) => places);
}

/** The tensor whose `zigzag` this is: its axis in the order of the sequence. Throws as `zigzag` does. */
export function unzigzag<D extends DType>(x: Tensor<D>, mesh: Mesh, over: MeshAxes, axis = 0): Tensor<D> {
  return ordered('unzigzag', x, mesh, over, axis, (places) => places.map((_, i) => places.indexOf(i)));
}

function ordered<D extends DType>(
  name: string,
  x: Tensor<D>,
  mesh: Mesh,
  over: MeshAxes,
  axis: number,
  orderOf: (places: readonly number[]) => readonly number[],
): Tensor<D> {
  const names = typeof over === 'string' ? over : over.join(',');
  const axes = axesNamed(mesh, names);
  if (axes === undefined) throw new TensorError('E_AXIS', name, `the mesh ${mesh.text} has no axes ${names}`);
  const count = groupSize(axes);
  const at = axis < 0 ? axis + x.rank : axis;
  if (!(Number.isInteger(at) && at >= 0 && at < x.rank))
    throw new TensorError('E_AXIS', name, `axis ${axis} of a tensor of ${x.rank} axes`);
  const size = x.shape[at]!;
  checkSlices(name, size, count);
  const length = size / (2 * count);
  const places = Array.from({ length: count }, (_, i) => [i, 2 * count - 1 - i]).flat();
  return cat(
    orderOf(places).map((place) => narrow(x, at, place * length, length)),
    at,
  ) as Tensor<D>;
}

function checkSlices(name: string, size: number, count: number): void {
  if (size % (2 * count) === 0) return;
  const problem = `${size} positions are not ${2 * count} equal slices, two for each of ${count} processes`;
  throw new TensorError('E_SHAPE', name, problem, 'pad the sequence');
}

function checkShapes(q: Tensor, k: Tensor, v: Tensor, enableGqa: boolean): void {
  const shown = [q, k, v].map(({ dtype, shape }) => `${dtype}[${shape.join(', ')}]`).join(', ');
  const lead = (x: Tensor): string => (enableGqa ? x.shape.toSpliced(-3, 1) : x.shape).slice(0, -1).join();
  const axes = enableGqa ? 3 : 2;
  const fits =
    [q, k, v].every(({ rank }) => rank >= axes) &&
    lead(q) === lead(k) &&
    lead(k) === lead(v) &&
    q.shape.at(-1) === k.shape.at(-1);
  if (!fits) throw new TensorError('E_SHAPE', op, `expects q and k [.., S, d], v [.., S, dv]: ${shown}`);
  const [heads, shared, values] = [q, k, v].map(({ shape }) => shape.at(-3)!) as [number, number, number];
  if (enableGqa && (shared !== values || heads % shared !== 0))
    throw new TensorError('E_SHAPE', op, `q's heads must be a multiple of k's and v's: ${shown}`);
  if (![q, k, v].every(({ dtype }) => isFloat(dtype) && dtype === q.dtype))
    throw new TensorError('E_DTYPE', op, `expects floats of one dtype: ${shown}`);
}

const wide = (x: Tensor): Tensor => (x.dtype === 'f64' ? x : cast(x, 'f32'));

/** [.., H, S, d] with an axis of groups, which keys and values lack: [.., shared, groups, S, d]. */
function grouped(queries: Tensor, shared: number): Tensor {
  return unflatten(queries, -3, [shared, queries.shape.at(-3)! / shared]);
}

/** The part of a process along the axis of positions, in so many slices. */
function cut(x: Tensor, slices: number): Tensor[] {
  const length = x.shape.at(-2)! / slices;
  return slices === 1 ? [x] : Array.from({ length: slices }, (_, i) => narrow(x, -2, i * length, length));
}

/**
 * What the queries of the own slice `a` see of slice `b` of the process `from`. The second slice of each process comes behind the first slices of
 * all, and second slices come in the opposite order of their processes.
 */
function sightOf(a: number, b: number, isOwn: boolean, place: Tensor, from: Tensor): Sight {
  if (a !== b) return a > b ? 'all' : 'none';
  if (isOwn) return 'diagonal';
  return a === 0 ? lt(from, place) : lt(place, from);
}

/** `seen`, and the keys and values of one more block. The derivative computes the block's scores again. */
function withBlock(
  seen: Seen | undefined,
  queries: Tensor,
  keys: Tensor,
  values: Tensor,
  sight: Sight,
  scale: number,
): Seen | undefined {
  if (sight === 'none') return seen;
  const block = (before: Seen | undefined, own: Tensor, key: Tensor, value: Tensor): Seen => {
    const scores = mul(matmul(wide(own), transpose(wide(key), -1, -2)), scale);
    return combined(before, sight === 'diagonal' ? causal(scores) : scores, wide(value));
  };
  if (typeof sight === 'string') return checkpoint(block)(seen, queries, keys, values);
  // The own block came first: there is something that stays as it is.
  const step = checkpoint((isSeen: Tensor, before: Seen, own: Tensor, key: Tensor, value: Tensor): Seen =>
    branch(
      isSeen,
      () => block(before, own, key, value),
      () => before,
    ),
  );
  return step(sight, seen!, queries, keys, values);
}

/** What one of two functions gives, as its own type says. */
const branch = cond as <T>(predicate: Tensor, onTrue: () => T, onFalse: () => T) => T;

/** Scores of queries and keys at the same positions, −∞ where a key stands behind a query. */
function causal(scores: Tensor): Tensor {
  const places = arange(scores.shape.at(-1)!);
  return where(ge(unsqueeze(places, 1), places), scores, -Infinity);
}

function combined(seen: Seen | undefined, scores: Tensor, values: Tensor): Seen {
  // The result is the same whatever is taken away from all scores of a query.
  const own = stopGradient(amax(scores, -1, { keepdim: true }));
  const greatest = seen === undefined ? own : maximum(seen.greatest, own);
  // Of scores that are all −∞ nothing is taken away: they weigh nothing, unless no block has others.
  const shift = where(eq(greatest, -Infinity), 0, greatest);
  const weights = exp(sub(scores, shift));
  const [total, result] = [sum(weights, -1, { keepdim: true }), matmul(weights, values)];
  if (seen === undefined) return { greatest, total, sum: result };
  const shrink = exp(sub(seen.greatest, shift));
  return { greatest, total: add(mul(seen.total, shrink), total), sum: add(mul(seen.sum, shrink), result) };
}
