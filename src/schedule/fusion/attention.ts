// Attention groups: chains matmul → (scale, mask, softmax) → matmul whose middle, the scores, need
// not reach memory. They are found among the plain operations, so every program with this chain
// gets the fused kernel. One group is one kernel: it streams over the *key* axis; for its rows it
// computes the scores by inner dots, folds them into row statistics (stages) and adds them, as
// weights, into outer products. Backward passes have the same form (dV and dK stream over queries,
// dQ over keys), with the statistics of the forward pass read back (Dao et al., FlashAttention,
// 2022).

import { isFloat, type DType } from '../../ir/dtype.ts';
import { dims, type Node, type NodeOf } from '../../ir/graph.ts';
import { atomsOf, delinearize, interval, type IndexExpr } from '../../ir/index-algebra/expr.ts';
import { isElementwise } from '../../ir/ops.ts';
import { sizeOf } from '../../ir/shape.ts';
import { sameIndices } from './align.ts';
import { makeAxis, reducedAxes, reducedIndices } from './domain.ts';
import { viewIndices, type Indices } from '../expression/evaluate.ts';
import type { Axis } from '../kernel.ts';
import type { Target } from '../target.ts';
import { isThroughView, type AttentionGroup } from './place.ts';
import { isWorthwhile, reachOf, type ScoreReach } from './scores.ts';

/** Widest rows of queries, keys and values that an invocation's registers hold. */
const widest = 256;

/** Nodes a chain may have: what is longer would not fit a kernel. */
const longest = 192;

/** Columns of results that one kernel accumulates. */
const accumulated = 512;

/** The same on matrix units, where an invocation has two rows: more sums than that spill. */
const accumulatedOnUnits = 256;

/**
 * The groups of a graph, at most one per outer product. `split` names outer products that must not
 * be merged with others (once) or not be grouped at all (twice), found too large for a kernel
 * before. `matrixUnits` has the dtypes that the target multiplies on matrix units.
 */
export function findAttention(
  order: readonly Node[],
  users: ReadonlyMap<Node, readonly Node[]>,
  outputs: ReadonlySet<Node>,
  split: ReadonlyMap<Node, number>,
  matrixUnits: Target['matrixUnits'] = [],
  traces: Traces = new Traces(split),
): readonly AttentionGroup[] {
  const barred = new Set<Node>([...split].filter(([, times]) => times > 1).map(([node]) => node));
  const reach = reachOf(order);
  const chains = chainLengths(order);
  for (;;) {
    const found = candidates(order, reach, chains, barred, traces);
    if (found.length === 0) return found;
    const groups = withStatistics(found, users);
    const weighed = new Set(groups.flatMap(({ stages, inners }) => (stages.length > 0 ? inners : [])));
    const holders = holdersOf(groups);
    const escaping = groups.filter(
      (group) =>
        !pays(group, weighed) || scoresEscape(group, holders, users, outputs) || multipliesOwnScores(group),
    );
    // A group reads the products of other groups from memory and does not compute them again.
    const ends = new Set<Node>(groups.flatMap(({ outers }) => outers.map(({ node }) => node as Node)));
    const chained = groups.filter(({ inners }) => inners.some((inner) => ends.has(inner as Node)));
    const given = escaping.length > 0 ? escaping : chained;
    if (given.length === 0) return merged(groups, split, matrixUnits);
    for (const group of given) barred.add(group.outers[0]!.node);
  }
}

/** Floats that kernels compute with in f32, as an attention kernel does. */
const isSingle = (dtype: DType): boolean => isFloat(dtype) && dtype !== 'f64';

/**
 * A group for every dot that can be the end of one. A reduction belongs to the first group that
 * computes it.
 */
function candidates(
  order: readonly Node[],
  reach: ScoreReach,
  chains: ReadonlyMap<Node, number>,
  barred: ReadonlySet<Node>,
  traces: Traces,
): AttentionGroup[] {
  const dots = order.filter((node) => node.op === 'dot' && !barred.has(node) && isSingle(node.dtype));
  const attempt = (wanted: (weights: Node, node: NodeOf<'dot'>) => boolean): AttentionGroup[] => {
    const groups: AttentionGroup[] = [];
    const owned = new Set<Node>();
    for (const node of dots) {
      if (node.op !== 'dot') continue;
      const side = (at: 0 | 1): AttentionGroup | undefined => {
        const weights = node.inputs[at]!;
        return chains.get(weights)! <= longest && wanted(weights, node)
          ? traces.of(node, at, owned)
          : undefined;
      };
      const group = side(0) ?? side(1);
      if (group === undefined) continue;
      for (const given of [...group.stages, ...group.rowProducts]) owned.add(given as Node);
      groups.push(group);
    }
    return groups;
  };
  const groups = attempt((weights, node) => isWorthwhile(reach, weights, node));
  const alone = groups.some(({ stages, batch }) => stages.length > 0 && batch.extent === 1);
  return alone ? attempt((weights) => reach.scores.has(weights)) : groups;
}

/**
 * How many nodes at least a walk back from a node visits: those of the longest chain to it of nodes whose
 * every element is made of one element of the node before. The chain along a residual stream of a deep
 * model is longer than a kernel can be, and need not be walked for every product that reads the stream.
 */
function chainLengths(order: readonly Node[]): ReadonlyMap<Node, number> {
  const lengths = new Map<Node, number>();
  for (const node of order) {
    let length = 0;
    if (isElementwise(node.op) || (isThroughView(node) && node.op !== 'broadcast'))
      for (const input of node.inputs) length = Math.max(length, lengths.get(input)!);
    lengths.set(node, length + 1);
  }
  return lengths;
}

/** What a walk from a product found, and which reductions it met, each with whether another group had it. */
interface KnownTrace {
  readonly group: AttentionGroup | undefined;
  readonly met: ReadonlyMap<Node, boolean>;
}

/**
 * The walks of one search. A round differs from the one before by a few groups that were given up, so most
 * walks would find what they found before: one is made again only where reductions that it met have changed
 * hands.
 */
export class Traces {
  readonly #known: readonly [Map<Node, KnownTrace>, Map<Node, KnownTrace>] = [new Map(), new Map()];
  readonly #split: ReadonlyMap<Node, number>;
  #made = 0;

  /** `split` names products of rows that are no part of a group. */
  constructor(split: ReadonlyMap<Node, number> = new Map()) {
    this.#split = split;
  }

  /** Walks that were made. */
  get made(): number {
    return this.#made;
  }

  of(node: NodeOf<'dot'>, side: 0 | 1, owned: ReadonlySet<Node>): AttentionGroup | undefined {
    const known = this.#known[side].get(node);
    if (known !== undefined && [...known.met].every(([each, was]) => owned.has(each) === was))
      return known.group;
    const met = new Map<Node, boolean>();
    const isOwned = (each: Node): boolean => {
      const is = owned.has(each);
      met.set(each, is);
      return is || this.#split.has(each);
    };
    const group = trace(node, side, isOwned);
    this.#made += 1;
    this.#known[side].set(node, { group, met });
    return group;
  }
}

/** Follows the weights of an outer product back to the dots they come from; `isOwned`: another group has the reduction. */
function trace(
  node: NodeOf<'dot'>,
  side: 0 | 1,
  isOwned: (reduction: Node) => boolean,
): AttentionGroup | undefined {
  const { lhsBatch, rhsBatch, lhsContract, rhsContract } = node.attrs;
  const weights = node.inputs[side]!;
  const other = node.inputs[1 - side]!;
  const [batchAxes, contract] = side === 0 ? [lhsBatch, lhsContract] : [rhsBatch, rhsContract];
  const [otherBatch, otherContract] = side === 0 ? [rhsBatch, rhsContract] : [lhsBatch, lhsContract];
  const shape = dims(weights);
  const free = shape.flatMap((_, axis) =>
    batchAxes.includes(axis) || contract.includes(axis) ? [] : [axis],
  );
  const of = (axes: readonly number[]): number[] => axes.map((axis) => shape[axis]!);
  const columns = dims(other).filter(
    (_, axis) => !otherBatch.includes(axis) && !otherContract.includes(axis),
  );
  const batch = makeAxis('batch', sizeOf(of(batchAxes)));
  const row = makeAxis('row', sizeOf(of(free)));
  const key = makeAxis('key', sizeOf(of(contract)));
  const column = makeAxis('column', sizeOf(columns));
  if (key.extent < 2 || column.extent > widest || sizeOf(dims(node)) === 0) return undefined;
  const batchAt = delinearize(batch.atom, of(batchAxes));
  const rowAt = delinearize(row.atom, of(free));
  const keyAt = delinearize(key.atom, of(contract));
  const at = shape.map((_, axis) => {
    const b = batchAxes.indexOf(axis);
    if (b >= 0) return batchAt[b]!;
    const c = contract.indexOf(axis);
    return c >= 0 ? keyAt[c]! : rowAt[free.indexOf(axis)]!;
  });
  const walk = new Trace(batch, row, key, isOwned);
  if (!walk.touches(weights, at) || walk.failed || walk.inners.length === 0) return undefined;
  const columnAt = delinearize(column.atom, columns);
  const own = [...batchAt, ...(side === 0 ? [...rowAt, ...columnAt] : [...columnAt, ...rowAt])];
  walk.members.set(node, own);
  return {
    batch,
    row,
    key,
    outers: [{ node, side, column }],
    inners: walk.inners.sort(byAge),
    stages: walk.stages.sort(byAge),
    rowProducts: walk.rowProducts.sort(byAge),
    members: walk.members,
  };
}

/**
 * Whether the other side of an outer product is made of the scores as well (the square of a product),
 * which then are needed in memory. A walk along a whole residual stream: asked last, of groups that
 * nothing else speaks against.
 */
function multipliesOwnScores({ outers, inners }: AttentionGroup): boolean {
  const scores = new Set<Node>(inners as readonly Node[]);
  return outers.some(({ node, side }) => isMadeOf(node.inputs[1 - side]!, scores));
}

/**
 * Whether a node is one of these, or made of one element by element. What a sum or a product makes of
 * scores is looked at as their other users are.
 */
function isMadeOf(node: Node, sources: ReadonlySet<Node>): boolean {
  const oldest = Math.min(...[...sources].map(({ id }) => id));
  const seen = new Set<Node>([node]);
  for (const each of seen) {
    if (sources.has(each)) return true;
    if (!isElementwise(each.op) && !isThroughView(each)) continue;
    for (const input of each.inputs) if (input.id >= oldest) seen.add(input);
  }
  return false;
}

function byAge(a: { readonly id: number }, b: { readonly id: number }): number {
  return a.id - b.id;
}

/** Walks from weights at (batch, row, key) to the inner dots and stages they are made of. */
class Trace {
  readonly members = new Map<Node, Indices>();
  readonly inners: NodeOf<'dot'>[] = [];
  readonly stages: NodeOf<'reduce'>[] = [];
  readonly rowProducts: NodeOf<'dot'>[] = [];
  /** Some node would be needed at two points. */
  failed = false;
  readonly #known = new Map<Node, { readonly at: Indices; readonly touches: boolean }>();
  #visits = 0;
  readonly #batch: Axis;
  readonly #row: Axis;
  readonly #key: Axis;
  readonly #isOwned: (reduction: Node) => boolean;

  constructor(batch: Axis, row: Axis, key: Axis, isOwned: (reduction: Node) => boolean) {
    this.#batch = batch;
    this.#row = row;
    this.#key = key;
    this.#isOwned = isOwned;
  }

  /** Whether the node's value at `at` depends on a score; if so it becomes a member. */
  touches(node: Node, at: Indices): boolean {
    const known = this.#known.get(node);
    if (known !== undefined) {
      const same = sameIndices(known.at, at);
      if (!same && known.touches) this.failed = true;
      if (same) return known.touches;
    }
    this.#visits += 1;
    if (this.#visits > longest) this.failed = true;
    const touches = !this.failed && this.#visit(node, at);
    this.#known.set(node, { at, touches });
    if (touches) this.members.set(node, at);
    return touches;
  }

  #visit(node: Node, at: Indices): boolean {
    // Without the row, this is no score and no statistic of this kernel's rows.
    if (this.#row.extent > 1 && !at.some((index) => usesAtom(index, this.#row))) return false;
    if (isElementwise(node.op)) {
      // Every input is visited: each may be a member.
      return node.inputs.map((input) => this.touches(input, at)).includes(true);
    }
    if (isThroughView(node)) return this.touches(node.inputs[0]!, viewIndices(node, at));
    if (node.op === 'dot') return this.#inner(node, at) || this.#rowProduct(node, at);
    if (node.op === 'reduce') return this.#stage(node, at);
    return false;
  }

  #inner(node: NodeOf<'dot'>, at: Indices): boolean {
    const { lhsBatch, lhsContract } = node.attrs;
    const left = dims(node.inputs[0]!);
    const depth = sizeOf(lhsContract.map((axis) => left[axis]!));
    const whole = this.#batch.extent * this.#row.extent * this.#key.extent;
    if (sizeOf(dims(node)) !== whole || depth > widest || !isSingle(node.dtype)) return false;
    const rank = left.length - lhsContract.length;
    const batch = at.slice(0, lhsBatch.length);
    const m = at.slice(lhsBatch.length, rank);
    const n = at.slice(rank);
    const over = (part: Indices, axis: Axis): boolean =>
      part.every((index) => atomsOf(index).every((atom) => atom === axis.atom));
    const fits =
      over(batch, this.#batch) &&
      ((over(m, this.#row) && over(n, this.#key)) || (over(m, this.#key) && over(n, this.#row)));
    const full = at.every((index, axis) => {
      const { lo, hi } = interval(index);
      return lo === 0 && hi === dims(node)[axis]! - 1;
    });
    if (!fits || !full) return false;
    this.inners.push(node);
    return true;
  }

  /** A product of two rows, one number for each row. */
  #rowProduct(node: NodeOf<'dot'>, at: Indices): boolean {
    const { lhsBatch, lhsContract } = node.attrs;
    const left = dims(node.inputs[0]!);
    const isOfRows = at.length === lhsBatch.length && left.length === at.length + lhsContract.length;
    const depth = sizeOf(lhsContract.map((axis) => left[axis]!));
    if (!isOfRows || depth > widest || node.dtype !== 'f32' || this.#isOwned(node as Node)) return false;
    if (sizeOf(dims(node)) !== this.#batch.extent * this.#row.extent) return false;
    if (at.some((index) => usesAtom(index, this.#key))) return false;
    this.rowProducts.push(node);
    return true;
  }

  /** A reduction over exactly the keys, of something made of scores. */
  #stage(node: NodeOf<'reduce'>, at: Indices): boolean {
    if (this.#isOwned(node as Node) || !isSingle(node.dtype)) return false;
    if (!foldsKeys(node, at, this.#key)) return false;
    if (!this.touches(node.inputs[0]!, reducedIndices(node as Node, at, this.#key.atom))) return false;
    this.stages.push(node);
    return true;
  }
}

function usesAtom(index: IndexExpr, axis: Axis): boolean {
  return axis.extent > 1 && atomsOf(index).some((atom) => atom === axis.atom);
}

/**
 * Streaming pays for scores that are large next to the work they take: with row statistics between
 * the products, in a kernel that shares scores with such a one, or in batches of small products.
 * Two plain matrix products are faster as separate kernels. `weighed` has the scores of all groups with
 * row statistics.
 */
function pays(group: AttentionGroup, weighed: ReadonlySet<NodeOf<'dot'>>): boolean {
  const hasStages = group.inners.some((inner) => weighed.has(inner));
  const depth = (inner: NodeOf<'dot'>): number =>
    sizeOf(inner.attrs.lhsContract.map((axis) => dims(inner.inputs[0]!)[axis]!));
  const work = Math.max(...group.inners.map(depth)) + Math.max(...group.outers.map((o) => o.column.extent));
  return hasStages || (group.batch.extent > 1 && work <= widest);
}

/**
 * The groups with the reductions of their scores over the keys that no group needs for its products: the
 * kernel has the scores.
 */
function withStatistics(
  groups: readonly AttentionGroup[],
  users: ReadonlyMap<Node, readonly Node[]>,
): AttentionGroup[] {
  const taken = new Set<Node>(groups.flatMap(({ members }) => [...members.keys()]));
  return groups.map((group) => {
    if (group.stages.length === 0) return group;
    const members = new Map(group.members);
    const stages = [...group.stages];
    const adopt = (node: Node, at: Indices): void => {
      for (const user of users.get(node) ?? []) {
        if (taken.has(user) || !isSingle(user.dtype)) continue;
        if (user.op === 'reduce') {
          const row = rowOfFold(user as NodeOf<'reduce'>, at, group.key);
          if (row === undefined) continue;
          members.set(user, row);
          stages.push(user as NodeOf<'reduce'>);
        } else if (user.op === 'cast') {
          const known = stages.length;
          adopt(user, at);
          if (stages.length === known) continue;
          members.set(user, at);
        } else continue;
        taken.add(user);
      }
    };
    for (const [node, at] of group.members) adopt(node, at);
    return stages.length === group.stages.length ? group : { ...group, members, stages: stages.sort(byAge) };
  });
}

/** The row that a reduction of scores at `at` gives a number of; undefined where it is not over exactly the keys. */
function rowOfFold(node: NodeOf<'reduce'>, at: Indices, key: Axis): Indices | undefined {
  const row = at.filter((_, axis) => !reducedAxes(node as Node).includes(axis));
  const isOverKeys =
    foldsKeys(node, row, key) && sameIndices(at, reducedIndices(node as Node, row, key.atom));
  return isOverKeys ? row : undefined;
}

/** Whether a reduction is over so many elements as there are keys, for a row that is the same for all of them. */
function foldsKeys(node: NodeOf<'reduce'>, row: Indices, key: Axis): boolean {
  const shape = dims(node.inputs[0]!);
  const count = sizeOf(reducedAxes(node as Node).map((axis) => shape[axis]!));
  return count === key.extent && row.every((index) => !usesAtom(index, key));
}

/**
 * Whether something other than groups needs a score in memory: then fusing would compute scores
 * that are stored anyway.
 */
function scoresEscape(
  group: AttentionGroup,
  holders: ReadonlyMap<Node, readonly AttentionGroup[]>,
  users: ReadonlyMap<Node, readonly Node[]>,
  outputs: ReadonlySet<Node>,
): boolean {
  const ends = endsOf(group);
  for (const [node, at] of group.members) {
    const perKey = at.some((index) => usesAtom(index, group.key));
    if (!perKey || ends.has(node) || !isScore(node, group)) continue;
    if (outputs.has(node)) return true;
    for (const user of users.get(node) ?? []) {
      if (!holders.get(node)!.some(({ members }) => members.has(user))) return true;
    }
  }
  return false;
}

/** The groups that each node is a member of. */
function holdersOf(groups: readonly AttentionGroup[]): ReadonlyMap<Node, readonly AttentionGroup[]> {
  const holders = new Map<Node, AttentionGroup[]>();
  for (const group of groups) {
    for (const node of group.members.keys()) {
      const known = holders.get(node);
      if (known === undefined) holders.set(node, [group]);
      else known.push(group);
    }
  }
  return holders;
}

/**
 * Not a statistic of the row that is merely broadcast over the keys: its readers read the
 * statistic.
 */
function isScore(node: Node, group: AttentionGroup): boolean {
  let base = node;
  while (isThroughView(base)) base = base.inputs[0]!;
  return group.members.get(base)?.some((index) => usesAtom(index, group.key)) ?? false;
}

/**
 * Groups that stream over the same keys for the same rows, from shared scores, become one when
 * neither needs the other.
 */
function merged(
  groups: readonly AttentionGroup[],
  split: ReadonlyMap<Node, number>,
  matrixUnits: NonNullable<Target['matrixUnits']>,
): AttentionGroup[] {
  const result: AttentionGroup[] = [];
  for (const group of groups) {
    const into = result.findIndex((other) => mergeable(other, group, split, matrixUnits));
    const other = result[into];
    if (other === undefined) result.push(group);
    else result[into] = union(other, group);
  }
  return result;
}

function mergeable(
  a: AttentionGroup,
  b: AttentionGroup,
  split: ReadonlyMap<Node, number>,
  matrixUnits: NonNullable<Target['matrixUnits']>,
): boolean {
  const sameAxes =
    a.batch.extent === b.batch.extent && a.row.extent === b.row.extent && a.key.extent === b.key.extent;
  const columns = [...a.outers, ...b.outers].map(({ column }) => column.extent);
  if (!sameAxes || columns.some((extent) => extent !== columns[0]!)) return false;
  const { dtype } = a.outers[0]!.node.inputs[0]!;
  const isOnUnits = matrixUnits.some((unit) => unit === dtype || (unit === 'tf32' && dtype === 'f32'));
  const most = isOnUnits ? accumulatedOnUnits : accumulated;
  if (columns.reduce((sum, extent) => sum + extent, 0) > most) return false;
  if ([...a.outers, ...b.outers].some(({ node }) => split.has(node as Node))) return false;
  if (!b.inners.some((inner) => a.inners.includes(inner))) return false;
  const agree = [...b.members].every(([node, at]) => {
    const known = a.members.get(node);
    return known === undefined || sameIndices(known, at);
  });
  return agree && !dependsOn(b, a) && !dependsOn(a, b);
}

/** Results that leave a group: statistics of its rows and products. */
function endsOf({ stages, rowProducts, outers }: AttentionGroup): ReadonlySet<Node> {
  return new Set([...stages, ...rowProducts, ...outers.map(({ node }) => node)] as Node[]);
}

/** Whether computing `group` takes a result of `other` that leaves it: a statistic or a product. */
function dependsOn(group: AttentionGroup, other: AttentionGroup): boolean {
  const ends = endsOf(other);
  const oldest = Math.min(...[...ends].map(({ id }) => id));
  const seen = new Set<Node>();
  const stack: Node[] = [...group.members.keys()];
  for (let node = stack.pop(); node !== undefined; node = stack.pop()) {
    if (ends.has(node)) return true;
    if (seen.has(node) || node.id < oldest) continue;
    seen.add(node);
    stack.push(...node.inputs);
  }
  return false;
}

function union(a: AttentionGroup, b: AttentionGroup): AttentionGroup {
  const together = <T>(x: readonly T[], y: readonly T[]): T[] => [...new Set([...x, ...y])];
  return {
    ...a,
    outers: [...a.outers, ...b.outers],
    inners: together(a.inners, b.inners),
    stages: together(a.stages, b.stages),
    rowProducts: together(a.rowProducts, b.rowProducts),
    members: new Map([...a.members, ...b.members]),
  };
}
