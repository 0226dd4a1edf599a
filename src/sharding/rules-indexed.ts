// Sharding rules of ops that read or write at indices. The axis that indices point along can be split: a process
// treats indices into other parts as indices outside of the axis, which read 0 and drop what they write.

import { binary, bounded, broadcast, fullLike, isZero, sub, where } from '../ir/build.ts';
import { dims, type Node, type NodeOf } from '../ir/graph.ts';
import { identityOf } from '../ir/interpret/identity.ts';
import { isComplex } from '../ir/dtype.ts';
import type { Monoid, Op, ScatterMode } from '../ir/ops.ts';
import type { FixedShape } from '../ir/shape.ts';
import type { AxisFactors, ShardLinear, ShardPlace, ShardingRow, ShardingRule } from './rule.ts';
import {
  alikeRule,
  FactorList,
  firstStep,
  indicesWithin,
  one,
  placesFrom,
  together,
  unsplit,
} from './row.ts';

/** The axis along which indices point is the first factor. */
const pointed = 0;
/** Of scatters that can add up what the processes give, the axis of updates is the second. */
const given = 1;

/**
 * A factor for each axis but `axis` that is as long in all these shapes; the first elements only of another axis are
 * read or written, which parts of it do not have each.
 */
function otherAxes(list: FactorList, axis: number, shapes: readonly FixedShape[]): readonly AxisFactors[] {
  return shapes[0]!.map((size, i) =>
    i !== axis && shapes.every((shape) => shape[i] === size) ? list.axis(size) : unsplit,
  );
}

/** The axis that is looked up in is split as the rows of an embedding are: one process finds a row, the others give 0. */
function gatherRule(node: NodeOf<'gather'>): ShardingRule {
  const { axis } = node.attrs;
  const [operand, indices] = node.inputs.map(dims) as [FixedShape, FixedShape];
  const list = new FactorList();
  const from = list.axis(operand[axis]!, node.dtype === 'bool' ? 'or' : 'sum');
  const others = otherAxes(list, axis, [operand, indices]);
  const result = others.with(axis, list.axis(indices[axis]!));
  return { factors: list.all, operands: [others.with(axis, from), result], result };
}

const monoids: { readonly [M in ScatterMode]: Monoid | undefined } = {
  // Which of the updates is the last is known to nobody who has some of them only.
  set: undefined,
  add: 'sum',
  mul: 'prod',
  min: 'min',
  max: 'max',
};

function scatterRule(node: NodeOf<'scatter'>): ShardingRule {
  const { axis, mode } = node.attrs;
  const [operand, indices] = node.inputs.map(dims) as [FixedShape, FixedShape];
  const list = new FactorList();
  const to = list.axis(operand[axis]!);
  const fold = monoids[mode];
  const updates = fold === undefined ? unsplit : list.axis(indices[axis]!, fold);
  const others = otherAxes(list, axis, [operand, indices]);
  const result = others.with(axis, to);
  const from = others.with(axis, updates);
  return { factors: list.all, operands: [result, from, from], result };
}

function scatterLocal(node: NodeOf<'scatter'>, operands: readonly Node[], place: ShardPlace): Node {
  const { axis, mode } = node.attrs;
  const [operand, indices, updates] = operands as [Node, Node, Node];
  const at = indicesWithin(place, indices, pointed, dims(node as Node)[axis]!);
  // Where updates are split, one process of all folds them into the operand.
  const isFolded = mode === 'set' || place.parts(given) === 1 || mode === 'min' || mode === 'max';
  const onto =
    isFolded || (mode === 'add' && isZero(node.inputs[0]!))
      ? operand
      : onFirst(place, operand, monoids[mode]!);
  return place.b.add('scatter', [onto, at, updates], node.attrs) as Node;
}

/** The value on processes that have the first part of the updates, and what changes nothing on the others. */
function onFirst(place: ShardPlace, value: Node, monoid: Monoid): Node {
  const { b } = place;
  const nothing = isComplex(value.dtype) ? 0 : identityOf(monoid, value.dtype);
  const isFirst = broadcast(b, binary(b, 'eq', place.part(given), 0), dims(value));
  return where(b, isFirst, value, fullLike(b, value, nothing));
}

function atomicRule(node: NodeOf<'scatterAddAtomic'>): ShardingRule {
  const { axis, size } = node.attrs;
  const indices = dims(node.inputs[0]!);
  const list = new FactorList();
  const to = list.axis(size);
  const updates = list.axis(indices[axis]!, 'sum');
  const others = otherAxes(list, axis, [indices]);
  const from = others.with(axis, updates);
  return { factors: list.all, operands: [from, from], result: others.with(axis, to) };
}

/** Slots can be split, with the updates of all slots on every process. */
function segmentRule(node: NodeOf<'segmentReduce'>): ShardingRule {
  const { axis } = node.attrs;
  const [operand, , order] = node.inputs.map(dims) as [FixedShape, FixedShape, FixedShape];
  const list = new FactorList();
  const slots = list.axis(operand[axis]!);
  const others = otherAxes(list, axis, [operand, order]);
  const result = others.with(axis, slots);
  return { factors: list.all, operands: [result, others, others, others], result };
}

function segmentLocal(node: NodeOf<'segmentReduce'>, operands: readonly Node[], place: ShardPlace): Node {
  const { b } = place;
  const [operand, starts, order, updates] = operands as [Node, Node, Node, Node];
  if (place.parts(pointed) === 1) return b.copy(node as Node, operands);
  const { axis } = node.attrs;
  const first = firstStep(place, pointed, dims(node as Node)[axis]!, 'i32');
  const shape = dims(starts).with(axis, dims(operand)[axis]! + 1);
  const own = b.add('gather', [starts, placesFrom(place, shape, axis, first)], { axis }) as Node;
  return b.add('segmentReduce', [operand, own, order, updates], node.attrs) as Node;
}

/** What is folded in adds up, or takes the place of what was there: linear in both at once. A product is in one. */
function scatterLinear(mode: ScatterMode, updates: number): ShardLinear | undefined {
  if (mode === 'add' || mode === 'set') return together(0, updates);
  return mode === 'mul' ? one(0) : undefined;
}

/** Lines of both; each value is searched for in all boundaries of its line, which may be in no order. */
function searchRule(node: NodeOf<'searchSorted'>): ShardingRule {
  const { factors, result } = alikeRule(node as Node);
  return { factors, operands: [[...result.slice(0, -1), unsplit], result], result };
}

type IndexedOp =
  | 'gather'
  | 'dequantize'
  | 'scatter'
  | 'permuteScatter'
  | 'scatterAddAtomic'
  | 'segmentReduce'
  | 'searchSorted'
  | 'bounded';

export const indexedRules: { readonly [K in IndexedOp & Op]: ShardingRow<K> } = {
  gather: {
    rule: gatherRule,
    local: (node, [operand, indices], place) => {
      const { axis } = node.attrs;
      const at = indicesWithin(place, indices!, pointed, dims(node.inputs[0]!)[axis]!);
      return place.b.add('gather', [operand!, at], { axis }) as Node;
    },
    linear: () => one(0),
  },
  // The words of a row hold the codes of all its blocks, then their scales.
  dequantize: {
    rule: (node) => {
      const { factors, result } = alikeRule(node as Node, [node.shape.length - 1]);
      return { factors, operands: [result], result };
    },
  },
  scatter: {
    rule: scatterRule,
    local: scatterLocal,
    linear: ({ attrs }) => scatterLinear(attrs.mode, 2),
  },
  permuteScatter: {
    rule: (node) => alikeRule(node as Node, [node.attrs.axis]),
    linear: () => one(0),
  },
  scatterAddAtomic: {
    rule: atomicRule,
    local: (node, [indices, updates], place) => {
      const { axis, size } = node.attrs;
      const at = indicesWithin(place, indices!, pointed, size);
      const own = { axis, size: size / place.parts(pointed) };
      return place.b.add('scatterAddAtomic', [at, updates!], own) as Node;
    },
    linear: () => one(1),
  },
  segmentReduce: {
    rule: segmentRule,
    local: segmentLocal,
    linear: ({ attrs }) => scatterLinear(attrs.mode, 3),
  },
  searchSorted: { rule: searchRule },
  bounded: {
    rule: (node) => alikeRule(node as Node),
    local: (node, [value, n], place) => {
      const { axis } = node.attrs;
      if (place.parts(axis) === 1) return bounded(place.b, value!, axis, n!);
      const first = firstStep(place, axis, dims(node as Node)[axis]!, 'i32');
      return bounded(place.b, value!, axis, sub(place.b, binary(place.b, 'max', n!, 0), first));
    },
    linear: () => one(0),
  },
};
