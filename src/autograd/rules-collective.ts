// Derivatives of collectives. The values of all processes, one stacked on the other, are one value, and a
// collective is a function of it: a linear one, whose transpose is a collective again, but for extrema and products. These have
// the derivatives of the fold of the stack along the group.

import { allGather, allReduce, reduceScatter } from '../ir/collectives.ts';
import { binary, broadcast, cast, div, fullLike, reshape, unary, where } from '../ir/build.ts';
import { dims, type CollectiveNode, type GraphBuilder, type Node, type NodeOf } from '../ir/graph.ts';
import { parseMesh, type Mesh } from '../ir/mesh/mesh.ts';
import { partsOf, splitOfKey } from '../ir/mesh/split.ts';
import { dropWhere, keepWhere, times, type VjpRule } from './cotangent.ts';
import { productOfOthers } from './rules-root.ts';

type Fold = NodeOf<'allReduce'> | NodeOf<'reduceScatter'>;

/** The group of a collective, as constructors take it. */
function groupOf({ attrs: { mesh, over } }: CollectiveNode): readonly [Mesh, readonly string[]] {
  return [parseMesh(mesh)!, over.split(',')];
}

/** What each element of a part of a fold is at all places: the result itself, or all parts of it. */
function whole(b: GraphBuilder, node: Fold, part: Node): Node {
  return node.op === 'allReduce' ? part : allGather(b, part, ...groupOf(node));
}

/** Whether this process's elements are not the extremum, and at how many places, at least 1, they are. */
function holdersOf(b: GraphBuilder, node: Fold): { readonly loses: Node; readonly holders: Node } {
  const x = node.inputs[0]!;
  const extreme = whole(b, node, node as Node);
  const loses = node.attrs.monoid === 'max' ? binary(b, 'lt', x, extreme) : binary(b, 'lt', extreme, x);
  const held = cast(b, unary(b, 'not', loses), x.dtype);
  const count = allReduce(b, held, ...groupOf(node), 'sum');
  return { loses, holders: binary(b, 'max', count, 1) };
}

/** For each element of this process the product of those at the other places. */
function othersOf(b: GraphBuilder, node: Fold): Node {
  const x = node.inputs[0]!;
  const shape = dims(x);
  const stack = allGather(b, reshape(b, x, [1, ...shape]), ...groupOf(node));
  const others = productOfOthers(b, stack, [0]);
  const { mesh, over } = node.attrs;
  const place = b.add('rankIndex', [], { mesh, over }) as Node;
  const indices = broadcast(b, place, [1, ...shape]);
  return reshape(b, b.add('gather', [others, indices], { axis: 0 }) as Node, shape);
}

/** From the cotangents of the whole result that this process's elements went into, summed over all places. */
function foldRule(b: GraphBuilder, node: Fold, total: Node): Node | undefined {
  switch (node.attrs.monoid) {
    // d Σx = Σdx
    case 'sum':
      return total;
    // d Πx = Σᵢ (Π_{j≠i} xⱼ)·dxᵢ
    case 'prod':
      return times(b, total, othersOf(b, node));
    // Every element equal to the extremum gets an equal share; where the extremum is NaN, all get NaN.
    case 'min':
    case 'max': {
      const { loses, holders } = holdersOf(b, node);
      const isNan = unary(b, 'isNan', whole(b, node, node as Node));
      return dropWhere(b, loses, where(b, isNan, fullLike(b, total, NaN), div(b, total, holders)));
    }
    case 'and':
    case 'or':
      return undefined;
  }
}

/** The tangent of a fold over places. */
function foldTangent(b: GraphBuilder, node: Fold, t: Node): Node | undefined {
  const sum = (x: Node): Node => b.add(node.op, [x], { ...node.attrs, monoid: 'sum' }) as Node;
  switch (node.attrs.monoid) {
    case 'sum':
      return sum(t);
    case 'prod':
      return sum(times(b, t, othersOf(b, node)));
    // The mean over all elements that are the extremum, and NaN where that is NaN, as backwards.
    case 'min':
    case 'max': {
      const { loses, holders } = holdersOf(b, node);
      const mean = sum(div(b, dropWhere(b, loses, t), holders));
      return where(b, unary(b, 'isNan', node as Node), fullLike(b, mean, NaN), mean);
    }
    case 'and':
    case 'or':
      return undefined;
  }
}

/** The mesh of the edge of what is written for one process, the axes of it that split the value, and those that do not. */
function edgeOf({ attrs, shape }: NodeOf<'toPart'> | NodeOf<'toWhole'>): {
  readonly mesh: Mesh;
  readonly others: readonly string[];
} {
  const mesh = parseMesh(attrs.mesh)!;
  const used = new Set(splitOfKey(attrs.split, shape.length).flat());
  return { mesh, others: mesh.axes.flatMap(({ name }) => (used.has(name) ? [] : [name])) };
}

const collectiveRules: { readonly [K in OfProcesses['op']]: VjpRule<K> } = {
  allReduce: (b, node, g) => [foldRule(b, node, allReduce(b, g, ...groupOf(node), 'sum'))],
  reduceScatter: (b, node, g) => [foldRule(b, node, allGather(b, g, ...groupOf(node)))],
  // Every process has all values: what each of them makes of one is added up where it is from.
  allGather: (b, node, g) => [reduceScatter(b, g, ...groupOf(node), 'sum')],
  allToAll: (b, { attrs }, g) => [b.add('allToAll', [g], attrs) as Node],
  permuteRanks: (b, { attrs }, g) => [
    b.add('permuteRanks', [g], { ...attrs, from: attrs.to, to: attrs.from }) as Node,
  ],
  // Only the root's value is read, by all.
  broadcastRank: (b, node, g) => {
    const { mesh, over, root } = node.attrs;
    const isRoot = binary(b, 'eq', b.add('rankIndex', [], { mesh, over }) as Node, root);
    return [keepWhere(b, broadcast(b, isRoot, dims(g)), allReduce(b, g, ...groupOf(node), 'sum'))];
  },
  // Processes that have the same part each make something of it.
  toPart: (b, node, g) => {
    const { mesh, others } = edgeOf(node);
    return [b.add('toWhole', [allReduce(b, g, mesh, others, 'sum')], node.attrs) as Node];
  },
  // The value is the mean of the equal parts that processes have, so that each brings a share of it.
  toWhole: (b, node, g) => {
    const { mesh, others } = edgeOf(node);
    const part = b.add('toPart', [g], node.attrs) as Node;
    const count = partsOf(mesh, others);
    return [count === 1 ? part : div(b, part, fullLike(b, part, count))];
  },
};

/** Ops that only programs over several processes have, and that have derivatives of their own. */
export type OfProcesses = CollectiveNode | NodeOf<'toPart'> | NodeOf<'toWhole'>;

/** What fills the slot. */
export interface CollectiveDerivatives {
  /** The cotangents of what a collective, or an edge of what is written for one process, reads. */
  cotangents(b: GraphBuilder, node: OfProcesses, g: Node): readonly (Node | undefined)[];
  /** The tangent of a fold over places; other collectives are linear. */
  tangent(b: GraphBuilder, node: Fold, t: Node): Node | undefined;
}

export const collectiveDerivatives: CollectiveDerivatives = {
  cotangents: (b, node, g) => (collectiveRules[node.op] as unknown as VjpRule)(b, node as Node, g, [true]),
  tangent: foldTangent,
};
