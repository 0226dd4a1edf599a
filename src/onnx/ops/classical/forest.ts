// Decision trees as tables: a row a node, in which leaves lead to themselves, so that all rows of a
// batch go down all trees at once, by gathers, as often as the deepest tree is deep.

import { SinterError } from '../../../errors.ts';
import type { DType } from '../../../ir/dtype.ts';
import { fromHost } from '../../../tensor/record.ts';
import { foriLoop } from '../../../tensor/ops/control/scan.ts';
import * as sn from '../../../operations/index.ts';
import type { Tensor } from '../../../tensor/tensor.ts';

export const modes = ['LEQ', 'LT', 'GTE', 'GT', 'EQ', 'NEQ'] as const;
export type Mode = (typeof modes)[number];

/** A node that asks about a feature; ids are places in the list of nodes. */
export interface Branch {
  readonly feature: number;
  readonly value: number;
  readonly mode: Mode;
  /** Where a feature that is NaN goes. */
  readonly nanIsTrue: boolean;
  yes: number;
  no: number;
}

/** What a leaf gives to targets; several may go to one. */
export interface ForestLeaf {
  readonly votes: (readonly [target: number, weight: number])[];
}

export type ForestNode = Branch | ForestLeaf;

export interface Forest {
  readonly nodes: readonly ForestNode[];
  readonly roots: readonly number[];
}

export function isLeaf(node: ForestNode): node is ForestLeaf {
  return 'votes' in node;
}

/** Branches on the longest way down. Throws E_FORMAT at nodes that are not there, and at circles. */
export function depthOf({ nodes, roots }: Forest): number {
  const depths = new Map<number, number>();
  const open = new Set<number>();
  const stack = [...roots];
  while (stack.length > 0) {
    const at = stack.at(-1) as number;
    const node = nodes[at];
    if (node === undefined) throw new SinterError('E_FORMAT', `a tree has no node ${at}`);
    const next = isLeaf(node) ? [] : [node.yes, node.no];
    const waiting = next.filter((id) => !depths.has(id));
    if (waiting.length > 0) {
      if (open.has(at) && waiting.some((id) => open.has(id)))
        throw new SinterError('E_FORMAT', `the nodes of a tree go round at ${at}`);
      open.add(at);
      stack.push(...waiting);
      continue;
    }
    depths.set(at, next.length === 0 ? 0 : 1 + Math.max(...next.map((id) => depths.get(id) ?? 0)));
    stack.pop();
  }
  return Math.max(0, ...roots.map((id) => depths.get(id) ?? 0));
}

const comparisons: Readonly<Record<Mode, (x: Tensor, y: Tensor) => Tensor>> = {
  LEQ: sn.le,
  LT: sn.lt,
  GTE: sn.ge,
  GT: sn.gt,
  EQ: sn.eq,
  NEQ: sn.ne,
};

/** The node at which each row of x [N, F] ends in each tree: [N, trees]. */
export function leavesOf(forest: Forest, x: Tensor): Tensor {
  const { nodes, roots } = forest;
  const [rows, width] = x.shape as readonly [number, number];
  const depth = depthOf(forest);
  const ints = (of: (node: Branch, at: number) => number): Tensor =>
    fromHost(
      Int32Array.from(nodes, (node, at) => (isLeaf(node) ? 0 : of(node, at))),
      [nodes.length],
      'i32',
    );
  const own = (of: (node: Branch) => number): Tensor =>
    fromHost(
      Int32Array.from(nodes, (node, at) => (isLeaf(node) ? at : of(node))),
      [nodes.length],
      'i32',
    );
  const branches = nodes.filter((node): node is Branch => !isLeaf(node));
  const wild = branches.find(({ feature }) => feature < 0 || feature >= width);
  if (wild !== undefined)
    throw new SinterError('E_SHAPE', `a tree asks for feature ${wild.feature} of ${width}`);
  const used = modes.filter((mode) => branches.some((node) => node.mode === mode));
  const feature = ints((node) => node.feature);
  const values = valuesOf(nodes, x.dtype);
  const [yes, no] = [own((node) => node.yes), own((node) => node.no)];
  const mode = used.length < 2 ? undefined : ints((node) => used.indexOf(node.mode));
  const nan = branches.some(({ nanIsTrue }) => nanIsTrue)
    ? ints((node) => Number(node.nanIsTrue))
    : undefined;
  const at = (table: Tensor, place: Tensor): Tensor =>
    sn.reshape(sn.indexSelect(table, 0, sn.reshape(place, [place.size])), place.shape);
  const down = (place: Tensor): Tensor => {
    const seen = sn.gather(x, 1, at(feature, place));
    const split = at(values, place);
    const compared = used.map((name) => comparisons[name](seen, split));
    const chosen = compared.reduce((sum, next, i) =>
      mode === undefined ? sum : sn.where(sn.eq(at(mode, place), i), next, sum),
    );
    const isTrue =
      nan === undefined
        ? chosen
        : sn.logicalOr(chosen, sn.logicalAnd(sn.isNan(seen), sn.eq(at(nan, place), 1)));
    return sn.where(isTrue, at(yes, place), at(no, place));
  };
  const start = sn.expand(fromHost(Int32Array.from(roots), [1, roots.length], 'i32'), [rows, roots.length]);
  if (depth === 0 || rows === 0) return start;
  if (depth === 1) return down(start);
  return foriLoop(0, depth, (_, [place]: [Tensor]) => [down(place)], [start] as [Tensor])[0];
}

function valuesOf(nodes: readonly ForestNode[], dtype: DType): Tensor {
  const list = nodes.map((node) => (isLeaf(node) ? 0 : node.value));
  return dtype === 'f64'
    ? fromHost(Float64Array.from(list), [list.length], 'f64')
    : fromHost(Float32Array.from(list), [list.length], 'f32');
}

export type Aggregate = 'SUM' | 'AVERAGE' | 'MIN' | 'MAX';

/** What the leaves give to each target, over all trees: [N, targets]. */
export function gathered(forest: Forest, x: Tensor, targets: number, aggregate: Aggregate): Tensor {
  const { nodes, roots } = forest;
  const places = leavesOf(forest, x);
  const isSum = aggregate === 'SUM' || aggregate === 'AVERAGE';
  const nothing = aggregate === 'MIN' ? Infinity : aggregate === 'MAX' ? -Infinity : 0;
  const leaves = new Map<number, number>();
  nodes.forEach((node, at) => isLeaf(node) && leaves.set(at, leaves.size));
  const count = leaves.size * targets;
  const data = x.dtype === 'f64' ? new Float64Array(count) : new Float32Array(count);
  data.fill(nothing);
  for (const [at, row] of leaves) {
    for (const [target, weight] of (nodes[at] as ForestLeaf).votes) {
      if (!(target >= 0 && target < targets))
        throw new SinterError('E_FORMAT', `a leaf votes for ${target} of ${targets} targets`);
      const place = row * targets + target;
      const before = data[place] as number;
      data[place] = isSum
        ? before + weight
        : aggregate === 'MIN'
          ? Math.min(before, weight)
          : Math.max(before, weight);
    }
  }
  const table = fromHost(data, [leaves.size, targets], x.dtype);
  const rowOf = fromHost(
    Int32Array.from(nodes, (_, at) => leaves.get(at) ?? 0),
    [nodes.length],
    'i32',
  );
  const flat = sn.indexSelect(rowOf, 0, sn.reshape(places, [places.size]));
  const votes = sn.reshape(sn.indexSelect(table, 0, flat), [places.shape[0] ?? 0, roots.length, targets]);
  switch (aggregate) {
    case 'SUM':
      return sn.sum(votes, 1);
    case 'AVERAGE':
      return sn.div(sn.sum(votes, 1), roots.length);
    case 'MIN':
    case 'MAX': {
      const end = aggregate === 'MIN' ? sn.amin(votes, 1) : sn.amax(votes, 1);
      // Targets that no leaf voted for.
      return sn.where(sn.eq(end, nothing), 0, end);
    }
    default:
      return aggregate satisfies never;
  }
}
