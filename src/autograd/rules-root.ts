// Derivatives of reductions, scans and indexed access. In a reduction, elements that share the extremum
// share its cotangent evenly; in a running extremum the current one gets it. Products never divide, so the
// derivatives at zeros are exact.

import { TensorError } from '../errors.ts';
import {
  add,
  binary,
  cast,
  div,
  expandAxes,
  fullLike,
  mul,
  permute,
  reduce,
  reshape,
  unary,
  where,
} from '../ir/build.ts';
import { dims, type GraphBuilder, type Node, type NodeOf } from '../ir/graph.ts';
import type { Attrs } from '../ir/ops.ts';
import { sameShape, sizeOf } from '../ir/shape.ts';
import { dropWhere, times, type VjpRule } from './cotangent.ts';
import { gather, scatter, scatterRule, segmentReduceRule } from './rules-scatter.ts';
import { shift } from './rules-view.ts';

const scan = (b: GraphBuilder, x: Node, attrs: Attrs<'scan'>): Node => b.add('scan', [x], attrs) as Node;
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

/** What is made of rotated rows (singular values, eigenvectors) has rules of its own; the rotations have none. */
const rotationRule = (_: GraphBuilder, { op }: { readonly op: string }): never => {
  throw new TensorError('E_UNSUPPORTED', op, 'has no derivative', 'linalg.svd, linalg.eigh');
};

type FusionRootTable = {
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
  ]: VjpRule<K> | 'flat';
};

/** Rules of reductions, scans, gather and scatter. */
export const fusionRootRules: FusionRootTable = {
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
