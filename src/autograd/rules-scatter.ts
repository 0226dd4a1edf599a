// Derivatives of scatters and of what replaces them. An update that is added gets the cotangent of its
// index. Of updates that are set, the last one gets it. Updates that hold an extremum share it evenly.
// Products never divide, so the derivatives at zeros are exact.

import {
  binary,
  broadcast,
  cast,
  div,
  full,
  fullLike,
  mul,
  permute,
  slice,
  sub,
  unary,
  where,
} from '../ir/build.ts';
import { dims, type GraphBuilder, type Node, type NodeOf } from '../ir/graph.ts';
import type { ScatterMode } from '../ir/ops.ts';
import { sizeOf } from '../ir/shape.ts';
import { dropWhere, keepWhere, times } from './cotangent.ts';
import { shift } from './rules-view.ts';

/** What is read at indices along an axis. */
export const gather = (b: GraphBuilder, x: Node, indices: Node, axis: number): Node =>
  b.add('gather', [x, indices], { axis }) as Node;
/** What is written at indices along an axis. */
export const scatter = (
  b: GraphBuilder,
  into: Node,
  indices: Node,
  updates: Node,
  axis: number,
  mode: ScatterMode,
): Node => b.add('scatter', [into, indices, updates], { axis, mode }) as Node;

/** Cotangents of the operand and of the updates. */
export function scatterRule(
  b: GraphBuilder,
  node: NodeOf<'scatter'>,
  g: Node,
  wanted: readonly boolean[],
): readonly (Node | undefined)[] {
  const { axis, mode } = node.attrs;
  const [x, indices, updates] = [node.inputs[0]!, node.inputs[1]!, node.inputs[2]!];
  const when = (index: number, make: () => Node): Node | undefined =>
    wanted[index] === true ? make() : undefined;
  const atUpdates = (values: Node): Node => gather(b, values, indices, axis);
  switch (mode) {
    // Overwritten elements get nothing. Of several updates to one place the last is kept, and gets
    // the cotangent of the place; the others get nothing.
    case 'set':
      return [
        when(0, () => scatter(b, g, indices, fullLike(b, updates, 0), axis, 'set')),
        undefined,
        when(2, () => keepLast(b, node, atUpdates(g))),
      ];
    case 'add':
      return [g, undefined, when(2, () => atUpdates(g))];
    case 'mul':
      return [
        when(0, () => times(b, g, scatter(b, fullLike(b, x, 1), indices, updates, axis, 'mul'))),
        undefined,
        when(2, () => scatterFactorRule(b, node, g)),
      ];
    // As for reductions: the operand's element and all updates of a place share evenly among those
    // that hold its value, and where that is NaN all of them get NaN.
    case 'min':
    case 'max': {
      const less = (p: Node, q: Node): Node =>
        binary(b, 'lt', mode === 'max' ? p : q, mode === 'max' ? q : p);
      const left = less(x, node as Node);
      const misses = less(updates, atUpdates(node as Node));
      const counted = (not: Node): Node => cast(b, unary(b, 'not', not), x.dtype);
      const holders = scatter(b, counted(left), indices, counted(misses), axis, 'add');
      const part = where(b, unary(b, 'isNan', node as Node), fullLike(b, g, NaN), div(b, g, holders));
      return [
        when(0, () => dropWhere(b, left, part)),
        undefined,
        when(2, () => dropWhere(b, misses, atUpdates(part))),
      ];
    }
  }
}

/**
 * `g` for the last of the updates that go to one place, 0 for the others: a scatter of the updates'
 * own positions says which of them is kept. What is read of a place outside is 0 already.
 */
function keepLast(b: GraphBuilder, node: NodeOf<'scatter'>, g: Node): Node {
  const { axis } = node.attrs;
  const indices = node.inputs[1]!;
  if (areDistinct(indices, axis)) return g;
  const shape = dims(indices);
  const position = b.add('iota', [], { shape, axis, dtype: 'i32' }) as Node;
  const none = full(b, dims(node), -1, 'i32');
  const last = gather(b, scatter(b, none, indices, position, axis, 'set'), indices, axis);
  return keepWhere(b, binary(b, 'eq', last, position), g);
}

/** Whether it is plain that no two indices along an axis are equal: a run, a permutation, a part. */
function areDistinct(indices: Node, axis: number): boolean {
  let [source, along] = [indices, axis];
  while (dims(source)[along]! > 1) {
    const [first, second] = source.inputs;
    if (source.op === 'iota' || source.op === 'argSort') return source.attrs.axis === along;
    if (source.op === 'add' && isSpread(second!, along)) source = first!;
    else if (source.op === 'add' && isSpread(first!, along)) source = second!;
    else if (source.op === 'slice') source = first!;
    else if (source.op === 'broadcast' && !isSpread(source, along))
      [source, along] = [first!, along - (source.shape.length - first!.shape.length)];
    else if (source.op === 'reshape' && first!.shape.length === 1 && first!.shape[0] === source.shape[along])
      [source, along] = [first!, 0];
    else return false;
  }
  return true;
}

/**
 * An update multiplied into a place gets g·x·(product of the other updates there). Updates of one
 * place are brought together by sorting; among them, products of what comes before and of what
 * comes after need no division, so zeros are exact, and for every derivative.
 */
function scatterFactorRule(b: GraphBuilder, node: NodeOf<'scatter'>, g: Node): Node {
  const { axis } = node.attrs;
  const [x, indices, updates] = [node.inputs[0]!, node.inputs[1]!, node.inputs[2]!];
  const order = b.add('argSort', [indices], { axis, descending: false }) as Node;
  const [places, sorted] = [gather(b, indices, order, axis), gather(b, updates, order, axis)];
  const [before, after] = [-1, 1].map((ahead) => neighbourProduct(b, places, sorted, axis, ahead));
  const ranks = b.add('argSort', [order], { axis, descending: false }) as Node;
  const others = gather(b, mul(b, before!, after!), ranks, axis);
  return mul(b, gather(b, times(b, g, x), indices, axis), others);
}

/**
 * For each factor the product of those on one side of it (`ahead` is the step to the next) that
 * have its place, by recursive doubling as in `scanProductRule`: after each round a product reaches
 * twice as far, unless another place begins first.
 */
function neighbourProduct(b: GraphBuilder, places: Node, factors: Node, axis: number, ahead: number): Node {
  const shape = dims(factors);
  const last = shape[axis]! - 1;
  const position = b.add('iota', [], { shape, axis, dtype: 'i32' }) as Node;
  const one = fullLike(b, factors, 1);
  const beyond = (x: Node, reach: number): Node => {
    const there = shift(b, x, axis, ahead * reach);
    const [low, high] = ahead < 0 ? [reach, position] : [position, last - reach];
    const inside = binary(b, 'le', low, high);
    const same = binary(b, 'eq', places, shift(b, places, axis, ahead * reach));
    return where(b, binary(b, 'and', inside, same), there, one);
  };
  let product = beyond(factors, 1);
  for (let reach = 1; reach <= last; reach *= 2) product = mul(b, product, beyond(product, reach));
  return product;
}

/**
 * The rule of the scatter that it stands for: an update goes to the last slot that starts at or
 * before the update's rank.
 */
export function segmentReduceRule(
  b: GraphBuilder,
  node: NodeOf<'segmentReduce'>,
  g: Node,
  [operandWanted, , , updatesWanted]: readonly boolean[],
): readonly (Node | undefined)[] {
  const { axis, mode } = node.attrs;
  const [operand, starts, order, updates] = node.inputs as readonly [Node, Node, Node, Node];
  const shape = dims(order);
  // Columns that share their segments are looked up once.
  const isShared = (i: number): boolean => i !== axis && isSpread(starts, i) && isSpread(order, i);
  const own = shape.map((dim, i) => (isShared(i) ? Math.min(1, dim) : dim));
  const last = [...shape.keys()].filter((other) => other !== axis).concat(axis);
  const none = shape.map(() => 0);
  const covered = slice(b, starts, none, own.with(axis, dims(starts)[axis]!));
  const core = slice(b, order, none, own);
  // Updates that lie in order are ranked by where they stand.
  const ranks = countsAlong(order, axis)
    ? core
    : (b.add('argSort', [core], { axis, descending: false }) as Node);
  const found = b.add('searchSorted', [permute(b, covered, last), permute(b, ranks, last)], { right: true });
  const looked = permute(
    b,
    sub(b, found as Node, 1),
    shape.map((_, i) => last.indexOf(i)),
  );
  const slots = broadcast(b, looked, shape);
  const scattered = scatter(b, operand, slots, updates, axis, mode) as NodeOf<'scatter'>;
  const wanted = [operandWanted === true, false, updatesWanted === true];
  const [intoOperand, , intoUpdates] = scatterRule(b, scattered, g, wanted);
  return [intoOperand, undefined, undefined, intoUpdates];
}

/** Whether a node is one line spread along an axis. */
function isSpread(node: Node, axis: number): boolean {
  if (node.shape[axis] === 1) return true;
  if (node.op !== 'broadcast') return false;
  const from = node.inputs[0]!.shape;
  return (from[axis - (node.shape.length - from.length)] ?? 1) === 1;
}

/** Whether a node is 0, 1, 2… along an axis, spread over the others. */
function countsAlong(node: Node, axis: number): boolean {
  const row = node.op === 'broadcast' ? node.inputs[0]! : node;
  const line = row.op === 'reshape' ? row.inputs[0]! : row;
  const isLine = sizeOf(dims(row)) === dims(row)[axis] && dims(row).length === dims(node).length;
  return isLine && line.op === 'iota' && line.shape.length === 1;
}
