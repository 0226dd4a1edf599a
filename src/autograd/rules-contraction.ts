// Derivatives of the bilinear ops: for fixed x, both dot and conv are linear in w and the other way
// round, so each cotangent is again a dot or conv, of g with the other operand, followed by a
// permutation back to the operand's axes.

import { full, permute, reshape } from '../ir/build.ts';
import { dims, type GraphBuilder, type Node } from '../ir/graph.ts';
import type { Attrs } from '../ir/ops.ts';
import { sizeOf } from '../ir/shape.ts';
import { convert, type VjpRule } from './cotangent.ts';
import { flip } from './rules-view.ts';

const range = (from: number, count: number): number[] => Array.from({ length: count }, (_, i) => from + i);

/** Axes not named in `used`, ascending. */
function freeAxes(x: Node, ...used: readonly (readonly number[])[]): number[] {
  return range(0, x.shape.length).filter((axis) => !used.some((list) => list.includes(axis)));
}

/** Puts axis `i` of `x` where `places[i]` says. */
function permuteTo(b: GraphBuilder, x: Node, places: readonly number[]): Node {
  return permute(
    b,
    x,
    places.map((_, axis) => places.indexOf(axis)),
  );
}

/** The contracting axes of one operand in the order in which the partner's stand in memory. */
function inOrderOf(axes: readonly number[], partners: readonly number[]): number[] {
  return range(0, axes.length)
    .sort((i, j) => partners[i]! - partners[j]!)
    .map((i) => axes[i]!);
}

/** y[b,l,r] = Σₖ x[b,l,k]·w[b,r,k]: x gets Σᵣ g[b,l,r]·w[b,r,k]. */
function dotLhs(b: GraphBuilder, x: Node, w: Node, attrs: Attrs<'dot'>, g: Node): Node {
  const { lhsBatch, rhsBatch, lhsContract, rhsContract } = attrs;
  const freeL = freeAxes(x, lhsBatch, lhsContract);
  const freeR = freeAxes(w, rhsBatch, rhsContract);
  const result = b.add('dot', [convert(b, g, x.dtype), w], {
    lhsBatch: range(0, lhsBatch.length),
    rhsBatch,
    lhsContract: range(lhsBatch.length + freeL.length, freeR.length),
    rhsContract: freeR,
    dtype: x.dtype,
  });
  return permuteTo(b, result as Node, [...lhsBatch, ...freeL, ...inOrderOf(lhsContract, rhsContract)]);
}

/** y[b,l,r] = Σₖ x[b,l,k]·w[b,r,k]: w gets Σₗ x[b,l,k]·g[b,l,r]. */
function dotRhs(b: GraphBuilder, x: Node, w: Node, attrs: Attrs<'dot'>, g: Node): Node {
  const { lhsBatch, rhsBatch, lhsContract, rhsContract } = attrs;
  const freeL = freeAxes(x, lhsBatch, lhsContract);
  const freeR = freeAxes(w, rhsBatch, rhsContract);
  const result = b.add('dot', [x, convert(b, g, w.dtype)], {
    lhsBatch,
    rhsBatch: range(0, lhsBatch.length),
    lhsContract: freeL,
    rhsContract: range(lhsBatch.length, freeL.length),
    dtype: w.dtype,
  });
  return permuteTo(b, result as Node, [...rhsBatch, ...inOrderOf(rhsContract, lhsContract), ...freeR]);
}

/** Elements from the first to the last of `size` that stand `step` apart, both included. */
const extent = (size: number, step: number): number => (size - 1) * step + 1;

/**
 * y[n,o,p] = Σ x̂[n,c, p·stride + k·dilation − low]·w[o,c,k] with x̂ the dilated operand: x̂ gets,
 * at q, every g at p times w at k with p·stride + k·dilation − low = q. That is a conv of g,
 * dilated by the strides, with the kernel turned round and its channels swapped within each group;
 * its stride picks the elements of x out of x̂. Paddings may come out negative.
 */
function convLhs(b: GraphBuilder, x: Node, w: Node, attrs: Attrs<'conv'>, g: Node): Node {
  const { strides, padLow, lhsDilation, rhsDilation, groups } = attrs;
  const [outputs, channels, ...kernel] = dims(w) as [number, number, ...number[]];
  const [size, placed] = [dims(x).slice(2), dims(g).slice(2)];
  const perGroup = outputs / groups;
  const grouped = permute(b, reshape(b, w, [groups, perGroup, channels, ...kernel]), [
    0,
    2,
    1,
    ...range(3, kernel.length),
  ]);
  const swapped = reshape(b, grouped, [groups * channels, perGroup, ...kernel]);
  const turned = flip(b, swapped, range(2, kernel.length));
  const low = kernel.map((k, i) => extent(k, rhsDilation[i]!) - 1 - padLow[i]!);
  const high = size.map((s, i) => extent(s, lhsDilation[i]!) - extent(placed[i]!, strides[i]!) + padLow[i]!);
  return b.add('conv', [g, turned], {
    strides: lhsDilation,
    padLow: low,
    padHigh: high,
    lhsDilation: strides,
    rhsDilation,
    groups,
  }) as Node;
}

/**
 * The kernel gets, at k, Σ over n and p of g[n,o,p]·x̂[n,c, p·stride + k·dilation − low]: a conv of
 * x with g for its kernel, in which batch and channels change places, and so do strides and kernel
 * dilation. The high padding fits the result to the kernel's size.
 */
function convRhs(b: GraphBuilder, x: Node, w: Node, attrs: Attrs<'conv'>, g: Node): Node {
  const { strides, padLow, lhsDilation, rhsDilation, groups } = attrs;
  const [, channels, ...kernel] = dims(w) as [number, number, ...number[]];
  const [batch, , ...size] = dims(x) as [number, number, ...number[]];
  const placed = dims(g).slice(2);
  const spatial = range(3, size.length);
  const grouped = permute(b, reshape(b, x, [batch, groups, channels, ...size]), [2, 1, 0, ...spatial]);
  const result = b.add(
    'conv',
    [
      reshape(b, grouped, [channels, groups * batch, ...size]),
      permute(b, g, [1, 0, ...range(2, size.length)]),
    ],
    {
      strides: rhsDilation,
      padLow,
      padHigh: kernel.map((k, i) => {
        const read = extent(placed[i]!, strides[i]!) + extent(k, rhsDilation[i]!) - 1;
        return read - extent(size[i]!, lhsDilation[i]!) - padLow[i]!;
      }),
      lhsDilation,
      rhsDilation: strides,
      groups,
    },
  );
  return permute(b, result as Node, [1, 0, ...range(2, size.length)]);
}

type Bilinear<K extends 'dot' | 'conv'> = (
  b: GraphBuilder,
  x: Node,
  w: Node,
  attrs: Attrs<K>,
  g: Node,
) => Node;

function bilinear<K extends 'dot' | 'conv'>(lhs: Bilinear<K>, rhs: Bilinear<K>): VjpRule<K> {
  return (b, { inputs, attrs }, g, wanted) => {
    const [x, w] = [inputs[0]!, inputs[1]!];
    const empty = [x, w, g].some((node) => sizeOf(dims(node)) === 0);
    return [lhs, rhs].map((pullback, i) => {
      if (wanted[i] !== true) return undefined;
      // Nothing was multiplied; extents below assume that there is something.
      return empty ? full(b, dims(inputs[i]!), 0, x.dtype) : pullback(b, x, w, attrs, g);
    });
  };
}

/** Rules of dot and conv. */
export const contractionRules: { readonly [K in 'dot' | 'conv']: VjpRule<K> } = {
  dot: bilinear(dotLhs, dotRhs),
  conv: bilinear(convLhs, convRhs),
};
