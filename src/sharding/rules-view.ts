// Sharding rules of the views. The factors of an axis may leave out the minor steps: no process splits those, so that
// an axis of 6 can have the one factor 2, of which each step is 3 elements.

import { broadcast, reshape } from '../ir/build.ts';
import { dims, type Node, type NodeOf } from '../ir/graph.ts';
import type { ViewOp } from '../ir/ops.ts';
import { sizeOf, type FixedShape } from '../ir/shape.ts';
import type { AxisFactors, ShardingRow, ShardingRule } from './rule.ts';
import { alikeRule, FactorList, localShape, one, together, unsplit, wholeRule } from './row.ts';

/**
 * The factors that two shapes of as many elements have in common. Both are walked from the major end: what the rest of
 * an axis of one and the rest of an axis of the other can both be divided by is a factor of both.
 */
function reshapeRule(node: NodeOf<'reshape'>): ShardingRule {
  const from = dims(node.inputs[0]!);
  const to = node.shape as FixedShape;
  if (sizeOf(to) === 0) return wholeRule(node as Node);
  const list = new FactorList();
  const operand: AxisFactors[] = from.map(() => unsplit);
  const result: AxisFactors[] = to.map(() => unsplit);
  let [i, j] = [0, 0];
  let [left, right] = [from[0] ?? 1, to[0] ?? 1];
  while (i < from.length && j < to.length) {
    if (left === 1) left = from[++i] ?? 1;
    else if (right === 1) right = to[++j] ?? 1;
    else {
      const size = greatestDivisor(left, right);
      if (size > 1) {
        const [factor] = list.axis(size);
        operand[i] = [...operand[i]!, factor!];
        result[j] = [...result[j]!, factor!];
        [left, right] = [left / size, right / size];
      } else {
        // Neither axis goes on in steps of the other: on to where both shapes have an end of an axis again.
        while (left !== right) {
          if (left < right) left *= from[++i]!;
          else right *= to[++j]!;
        }
        [left, right] = [1, 1];
      }
    }
  }
  return { factors: list.all, operands: [operand], result };
}

function greatestDivisor(a: number, b: number): number {
  return b === 0 ? a : greatestDivisor(b, a % b);
}

function permuteRule(node: NodeOf<'permute'>): ShardingRule {
  const { factors, result } = alikeRule(node as Node);
  const { order } = node.attrs;
  return { factors, operands: [[...order.keys()].map((axis) => result[order.indexOf(axis)]!)], result };
}

/** What an axis is stretched to is a factor of the result alone: each process repeats the operand for its part. */
function broadcastRule(node: NodeOf<'broadcast'>): ShardingRule {
  const { factors, result } = alikeRule(node as Node);
  const from = dims(node.inputs[0]!);
  const more = node.shape.length - from.length;
  const operand = from.map((size, axis) =>
    size === node.shape[axis + more] ? result[axis + more]! : unsplit,
  );
  return { factors, operands: [operand], result };
}

/** An axis of which every step-th element is taken, all in all: each step is a step of the factor. */
function sliceRule(node: NodeOf<'slice'>): ShardingRule {
  const { start, size, step } = node.attrs;
  const apart = dims(node.inputs[0]!).flatMap((dim, axis) =>
    dim === size[axis]! * step[axis]! && start[axis]! < step[axis]! ? [] : [axis],
  );
  const { factors, result } = alikeRule(node as Node, apart);
  return { factors, operands: [result], result };
}

/** An axis whose elements all get the same paddings, so that those of a part are those of its elements. */
function padRule(node: NodeOf<'pad'>): ShardingRule {
  const { low, high, interior } = node.attrs;
  const list = new FactorList();
  const axes = dims(node.inputs[0]!).map((dim, axis) => {
    const around = low[axis]! + high[axis]!;
    const isEven = around === interior[axis] && (dim > 0 || around === 0);
    return isEven ? list.axis(dim) : unsplit;
  });
  return { factors: list.all, operands: [axes], result: axes };
}

function concatRule(node: NodeOf<'concat'>): ShardingRule {
  const { factors, result } = alikeRule(node as Node, [node.attrs.axis]);
  return { factors, operands: node.inputs.map(() => result), result };
}

/** Windows that do not overlap and leave nothing out at the end can be split. */
function windowRule(node: NodeOf<'window'>): ShardingRule {
  const { axis, size, stride, dilation } = node.attrs;
  const from = dims(node.inputs[0]!);
  const isApart = areApart(from[axis]!, dims(node as Node)[axis]!, size, stride, dilation);
  const { factors, result } = alikeRule(node as Node, [from.length, ...(isApart ? [] : [axis])]);
  return { factors, operands: [result.slice(0, from.length)], result };
}

/** Whether `count` windows of an axis each lie in a part of their own, all of which make the axis. */
export function areApart(
  dim: number,
  count: number,
  size: number,
  stride: number,
  dilation: number,
): boolean {
  return dim === count * stride && (size - 1) * dilation + 1 <= stride;
}

const sumsPass = () => one(0);

export const viewRules: { readonly [K in ViewOp]: ShardingRow<K> } = {
  reshape: {
    rule: reshapeRule,
    local: (node, [x], place) =>
      reshape(place.b, x!, localShape(dims(node as Node), reshapeRule(node).result, place)),
    linear: sumsPass,
  },
  permute: { rule: permuteRule, linear: sumsPass },
  broadcast: {
    rule: broadcastRule,
    local: (node, [x], place) =>
      broadcast(place.b, x!, localShape(dims(node as Node), broadcastRule(node).result, place)),
    linear: sumsPass,
  },
  slice: {
    rule: sliceRule,
    local: (node, [x], place) => {
      const size = localShape(node.attrs.size, sliceRule(node).result, place);
      return place.b.add('slice', [x!], { ...node.attrs, size }) as Node;
    },
    linear: sumsPass,
  },
  pad: { rule: padRule, linear: ({ attrs }) => (attrs.value === 0 ? one(0) : undefined) },
  concat: { rule: concatRule, linear: ({ inputs }) => together(...inputs.keys()) },
  window: { rule: windowRule, linear: sumsPass },
};
