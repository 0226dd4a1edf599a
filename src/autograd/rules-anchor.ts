// Derivatives of reductions, scans and indexed access. Ties share a cotangent evenly in reductions
// and scatters; a running extremum gives it to the element that is the extremum so far. Products
// never divide, so zeros are exact.

import { TensorError } from '../errors.ts';
import {
  add,
  binary,
  broadcast,
  cast,
  div,
  expandAxes,
  full,
  fullLike,
  mul,
  permute,
  reduce,
  reshape,
  slice,
  sub,
  unary,
  where,
} from '../ir/build.ts';
import { dims, type GraphBuilder, type Node, type NodeOf } from '../ir/graph.ts';
import type { Attrs, ScatterMode } from '../ir/ops.ts';
import { sameShape, sizeOf } from '../ir/shape.ts';
import { dropWhere, keepWhere, times, type Rule } from './cotangent.ts';
import { shift } from './rules-view.ts';

const scan = (b: GraphBuilder, x: Node, attrs: Attrs<'scan'>): Node => b.add('scan', [x], attrs) as Node;
const gather = (b: GraphBuilder, x: Node, indices: Node, axis: number): Node =>
  b.add('gather', [x, indices], { axis }) as Node;
const scatter = (
  b: GraphBuilder,
  into: Node,
  indices: Node,
  updates: Node,
  axis: number,
  mode: ScatterMode,
): Node => b.add('scatter', [into, indices, updates], { axis, mode }) as Node;

function reduceRule(b: GraphBuilder, node: NodeOf<'reduce'>, g: Node): Node | undefined {
  const { monoid, axes } = node.attrs;
  const x = node.inputs[0]!;
  const shape = dims(x);
  switch (monoid) {
    // d Σx = Σdx
    case 'sum':
      return expandAxes(b, g, shape, axes);
    // d Πx = Σᵢ (Π_{j≠i} xⱼ)·dxᵢ
    case 'prod':
      return times(b, expandAxes(b, g, shape, axes), productOfOthers(b, x, axes));
    // Every element equal to the extremum gets an equal share; where the extremum is NaN, all of
    // them get NaN (as PyTorch).
    case 'min':
    case 'max': {
      const extreme = expandAxes(b, node as Node, shape, axes);
      const loses = monoid === 'max' ? binary(b, 'lt', x, extreme) : binary(b, 'lt', extreme, x);
      // At least 1, for the derivative of this one over nothing: masks do not reach across the sum
      // that it takes over the axes.
      const holders = binary(b, 'max', reduce(b, 'sum', cast(b, unary(b, 'not', loses), x.dtype), axes), 1);
      const share = where(b, unary(b, 'isNan', node as Node), fullLike(b, g, NaN), div(b, g, holders));
      return dropWhere(b, loses, expandAxes(b, share, shape, axes));
    }
    case 'and':
    case 'or':
      return undefined;
  }
}

/**
 * For each element the product of the others over `axes`: what comes before it times what comes
 * after.
 */
export function productOfOthers(b: GraphBuilder, x: Node, axes: readonly number[]): Node {
  const shape = dims(x);
  const outer = [...shape.keys()].filter((axis) => !axes.includes(axis));
  const order = [...outer, ...axes];
  const moved = permute(b, x, order);
  const count = sizeOf(axes.map((axis) => shape[axis]!));
  const rows = reshape(b, moved, [...outer.map((axis) => shape[axis]!), count]);
  const attrs = { monoid: 'prod', axis: outer.length, exclusive: true } as const;
  const before = scan(b, rows, { ...attrs, reverse: false });
  const after = scan(b, rows, { ...attrs, reverse: true });
  const others = reshape(b, mul(b, before, after), dims(moved));
  return permute(
    b,
    others,
    order.map((_, axis) => order.indexOf(axis)),
  );
}

function scanRule(b: GraphBuilder, node: NodeOf<'scan'>, g: Node): Node | undefined {
  switch (node.attrs.monoid) {
    // yₖ = Σ_{j≤k} xⱼ, so xᵢ gets Σ_{k≥i} gₖ: the same scan from the other end.
    case 'sum':
      return scan(b, g, { ...node.attrs, reverse: !node.attrs.reverse });
    case 'prod':
      return scanProductRule(b, node, g);
    case 'min':
    case 'max':
      return scanExtremumRule(b, node, g);
    case 'and':
    case 'or':
      return undefined;
  }
}

/**
 * yₖ = Π_{j≤k} xⱼ, so xᵢ gets (Π_{j<i} xⱼ)·Sᵢ with Sᵢ = Σ_{k≥i} gₖ·Π_{i<j≤k} xⱼ = gᵢ + xᵢ₊₁·Sᵢ₊₁.
 * That recurrence is solved by recursive doubling (Kogge and Stone, 1973): log₂ n rounds, no
 * division, exact with zeros and for every derivative.
 */
function scanProductRule(b: GraphBuilder, node: NodeOf<'scan'>, g: Node): Node {
  const { axis, reverse, exclusive } = node.attrs;
  const x = node.inputs[0]!;
  const ahead = reverse ? -1 : 1;
  const before = exclusive ? (node as Node) : scan(b, x, { ...node.attrs, exclusive: true });
  let factor = shift(b, x, axis, ahead);
  let sum = exclusive ? shift(b, g, axis, ahead) : g;
  const length = dims(x)[axis]!;
  for (let reach = 1; reach < length; reach *= 2) {
    sum = add(b, sum, mul(b, factor, shift(b, sum, axis, ahead * reach)));
    factor = mul(b, factor, shift(b, factor, axis, ahead * reach));
  }
  return mul(b, sum, before);
}

/**
 * The record at k was set by the last j ≤ k with xⱼ = yⱼ, or the last NaN: cotangents are scattered
 * back to it.
 */
function scanExtremumRule(b: GraphBuilder, node: NodeOf<'scan'>, g: Node): Node {
  const { axis, reverse, exclusive } = node.attrs;
  const x = node.inputs[0]!;
  const shape = dims(x);
  const records = exclusive ? scan(b, x, { ...node.attrs, exclusive: false }) : (node as Node);
  const sets = binary(b, 'or', binary(b, 'eq', x, records), unary(b, 'isNan', x));
  const position = b.add('iota', [], { shape, axis, dtype: 'i32' }) as Node;
  // The first element always sets a record, so its own position can stand for "none".
  const first = fullLike(b, position, reverse ? Math.max(0, shape[axis]! - 1) : 0);
  const holder = scan(b, where(b, sets, position, first), {
    monoid: reverse ? 'min' : 'max',
    axis,
    reverse,
    exclusive: false,
  });
  const arriving = exclusive ? shift(b, g, axis, reverse ? -1 : 1) : g;
  return scatter(b, fullLike(b, x, 0), holder, arriving, axis, 'add');
}

/**
 * Every read adds its cotangent to the place it read; reads beyond the axis gave 0 and add nothing.
 * What a sort put in order was read once at most: element i gets the cotangent at its rank, which
 * is where the inverse of the permutation says; ranks beyond a shortened result (the first k) read
 * 0.
 */
function gatherRule(b: GraphBuilder, node: NodeOf<'gather'>, g: Node): Node {
  const { axis } = node.attrs;
  const [x, indices] = [node.inputs[0]!, node.inputs[1]!];
  const order = orderBehind(indices, axis);
  if (order === undefined || !sameShape(order.shape, x.shape))
    return scatter(b, fullLike(b, x, 0), indices, g, axis, 'add');
  const ranks = b.add('argSort', [order as Node], { axis, descending: false });
  return gather(b, g, ranks as Node, axis);
}

/** The sort that the indices, or the first of them along the axis, are the result of. */
function orderBehind(indices: Node, axis: number): NodeOf<'argSort'> | undefined {
  let order = indices;
  if (order.op === 'slice') {
    const { start, step } = order.attrs;
    const from = dims(order.inputs[0]!);
    const whole = dims(order).every((size, i) => i === axis || size === from[i]);
    if (!whole || start.some((first) => first !== 0) || step[axis] !== 1) return undefined;
    order = order.inputs[0]!;
  }
  return order.op === 'argSort' && order.attrs.axis === axis ? order : undefined;
}

function scatterRule(
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
function segmentReduceRule(
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

/** What is made of rotated rows (singular values, eigenvectors) has rules of its own; the rotations have none. */
const rotationRule = (_: GraphBuilder, { op }: { readonly op: string }): never => {
  throw new TensorError('E_UNSUPPORTED', op, 'has no derivative', 'linalg.svd, linalg.eigh');
};

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

type AnchorTable = {
  readonly [
    K in
      | 'reduce'
      | 'argReduce'
      | 'argSort'
      | 'radixRank'
      | 'scan'
      | 'fft'
      | 'fftPart'
      | 'gather'
      | 'dequantize'
      | 'scatter'
      | 'permuteScatter'
      | 'searchSorted'
      | 'segmentReduce'
      | 'scatterAddAtomic'
      | 'jacobiRows'
      | 'completeRows'
  ]: Rule<K> | 'flat';
};

/** Rules of reductions, scans, gather and scatter. */
export const anchorRules: AnchorTable = {
  reduce: (b, node, g) => [reduceRule(b, node, g)],
  argReduce: 'flat',
  argSort: 'flat',
  radixRank: 'flat',
  scan: (b, node, g) => [scanRule(b, node, g)],
  // y = Fx is linear, and the adjoint of F is the transform with the other sign.
  fft: (b, { inputs: [, table], attrs: { axis, inverse } }, g) => [
    b.add('fft', [g, table!], { axis, inverse: !inverse }) as Node,
    undefined,
  ],
  // F = C − iS with symmetric C and S: the real part is Cx + Sy, the imaginary one Cy − Sx. Their
  // adjoints are parts of transforms of (g, 0) with the other sign, in which parts change places.
  fftPart: (b, { inputs: [x, , table], attrs: { part } }, g) => {
    const zero = fullLike(b, x!, 0);
    const [re, im] = part === 0 ? [zero, g] : [g, zero];
    const of = (which: number): Node => b.add('fftPart', [re, im, table!], { part: which }) as Node;
    return [of(1), of(0), undefined];
  },
  gather: (b, node, g) => [gatherRule(b, node, g), undefined],
  // Words are bits: nothing grows with them.
  dequantize: 'flat',
  scatter: scatterRule,
  searchSorted: 'flat',
  jacobiRows: rotationRule,
  completeRows: rotationRule,
  segmentReduce: segmentReduceRule,
  // Every update counts once in its place.
  scatterAddAtomic: (b, { inputs: [indices], attrs: { axis } }, g) => [
    undefined,
    gather(b, g, indices!, axis),
  ],
  // Every value's cotangent lies where the value went.
  permuteScatter: (b, { inputs: [, places], attrs: { axis } }, g) => [gather(b, g, places!, axis), undefined],
};
