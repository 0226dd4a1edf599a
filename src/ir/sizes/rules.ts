// What each primitive does with values of which only the first elements along some axes count: one
// row an op. Elements beyond a size may hold anything, NaN as well; a row sees to it that those
// that count never depend on them, and refuses what it cannot do with an error.

import { mapRows, type Op, type Attrs, type Monoid, type SourceOp } from '../ops.ts';
import { dims, type Node } from '../graph.ts';
import { capacityOf, fixedAxis, isExact, prefixAxis, type SizeAxis, sizeOfAxis } from './layout.ts';
import type { SizeLowering, SizedNode } from './lowering.ts';
import type { StructurePart } from './structure.ts';
import type { SizeRule, SizeRulesOf } from './rule.ts';
import { isVarying, type Num } from './size.ts';
import { indexed } from './rules-indexed.ts';
import { loops } from './rules-loop.ts';
import { RegionStructure } from './region.ts';
import { views } from './rules-view.ts';
import { integerRange, isComplex, isFloat, isWide, partType, type DType } from '../dtype.ts';
import { identityOf } from '../interpret/identity.ts';
import type { Scalar } from '../value.ts';

// Products and convolutions of values of varying sizes: along an axis that is summed both operands are
// 0 beyond the size, since 0 times a NaN is none.

export const contractions: SizeRulesOf<'dot' | 'conv'> = {
  dot: (ctx, part, inputs) => {
    const { lhsBatch, rhsBatch, lhsContract, rhsContract, dtype } = part.attrs as Attrs<'dot'>;
    let [lhs, rhs] = inputs as readonly [SizedNode, SizedNode];
    const pairs = [
      ...lhsBatch.map((axis, i) => [axis, rhsBatch[i]!] as const),
      ...lhsContract.map((axis, i) => [axis, rhsContract[i]!] as const),
    ];
    for (const [left, right] of pairs) {
      const to = ctx.shared([lhs.axes[left]!, rhs.axes[right]!]);
      lhs = ctx.laidOut(lhs, left, to);
      rhs = ctx.laidOut(rhs, right, to);
    }
    for (const axis of lhsContract) lhs = ctx.boundedTo(lhs, axis, 0);
    for (const axis of rhsContract) rhs = ctx.boundedTo(rhs, axis, 0);
    const attrs = { lhsBatch, rhsBatch, lhsContract, rhsContract, dtype };
    const node = ctx.b.add('dot', [lhs.node, rhs.node], attrs) as Node;
    const free = (
      of: SizedNode,
      batch: readonly number[],
      contract: readonly number[],
    ): readonly SizeAxis[] => of.axes.filter((_, axis) => !batch.includes(axis) && !contract.includes(axis));
    const batch = lhsBatch.map((axis, i) => {
      const [left, right] = [lhs.axes[axis]!, rhs.axes[rhsBatch[i]!]!];
      return { ...left, uniform: left.uniform && right.uniform };
    });
    return {
      node,
      axes: [...batch, ...free(lhs, lhsBatch, lhsContract), ...free(rhs, rhsBatch, rhsContract)],
    };
  },
  conv: (ctx, part, inputs) => {
    const { strides, padLow, lhsDilation, rhsDilation, groups } = part.attrs as Attrs<'conv'>;
    const given = [strides, padLow, lhsDilation, rhsDilation, groups].flat();
    if (given.some(isVarying)) return ctx.refuse(part, 'its geometry depends on a size', given);
    let [x, w] = inputs as readonly [SizedNode, SizedNode];
    const channels: readonly SizeAxis[] = [x.axes[1]!, w.axes[1]!, w.axes[0]!];
    if (groups !== 1 && !channels.every(isExact))
      return ctx.refuse(part, 'channels in groups have a varying size', sizesOf(channels));
    const to = ctx.shared([x.axes[1]!, w.axes[1]!]);
    if (groups === 1) [x, w] = [ctx.laidOut(x, 1, to), ctx.laidOut(w, 1, to)];
    const zeroed = (value: SizedNode, first: number): SizedNode =>
      value.axes.reduce(
        (at, _, axis) => (axis < first ? at : ctx.boundedTo(ctx.prefixed(at, axis), axis, 0)),
        value,
      );
    [x, w] = [zeroed(x, 1), zeroed(w, 1)];
    // How far the end is padded says how many results there are: as many as may count.
    const out = part.shape.slice(2).map((size) => prefixAxis(size, ctx.capacity(size)));
    const padHigh = out.map((axis, i) => {
      const reach = (dims(w.node)[i + 2]! - 1) * rhsDilation[i]! + 1;
      const spread = (dims(x.node)[i + 2]! - 1) * lhsDilation[i]! + 1;
      return (capacityOf(axis) - 1) * strides[i]! + reach - spread - padLow[i]!;
    });
    const attrs = { strides, padLow, padHigh, lhsDilation, rhsDilation, groups };
    const node = ctx.b.add('conv', [x.node, w.node], attrs) as Node;
    return { node, axes: [x.axes[0]!, { ...w.axes[0]!, uniform: w.axes[0]!.uniform }, ...out] };
    function sizesOf(axes: readonly SizeAxis[]): Num[] {
      return axes.map((axis) => sizeOfAxis(axis, ctx.sizes));
    }
  },
};

// Folds, scans and sorts along axes of varying sizes: beyond the size stands what changes nothing, or
// what comes last.

/** Folding an element once or often is the same. */
const isIdempotent = (monoid: Monoid): boolean => monoid !== 'sum' && monoid !== 'prod';

function identity(monoid: Monoid, dtype: DType): Scalar {
  return identityOf(monoid, isComplex(dtype) ? partType(dtype) : dtype);
}

/** The value that comes last in an order, behind all equal ones that lie before it. */
function lastOf(dtype: DType, descending: boolean): Scalar {
  if (isFloat(dtype)) return descending ? -Infinity : NaN;
  if (dtype === 'bool') return descending ? 0 : 1;
  const end = integerRange(dtype)[descending ? 0 : 1];
  return isWide(dtype) ? end : Number(end);
}

export const folds: SizeRulesOf<'reduce' | 'argReduce' | 'argSort' | 'scan'> = {
  reduce: (ctx, part, [x]) => {
    const { monoid, axes } = part.attrs as { monoid: Monoid; axes: readonly number[] };
    const value = identity(monoid, part.dtype);
    const bounded = axes.reduce((at: SizedNode, axis) => {
      const isSame = at.axes[axis]!.uniform && isIdempotent(monoid);
      return isSame ? at : ctx.boundedTo(at, axis, value);
    }, x!);
    const node = ctx.b.add('reduce', [bounded.node], { monoid, axes }) as Node;
    return { node, axes: bounded.axes.filter((_, axis) => !axes.includes(axis)) };
  },
  argReduce: (ctx, part, [x]) => {
    const { monoid, axis } = part.attrs as { monoid: 'min' | 'max'; axis: number };
    const bounded = ctx.boundedTo(ctx.prefixed(x!, axis), axis, identity(monoid, x!.node.dtype));
    const node = ctx.b.add('argReduce', [bounded.node], { monoid, axis }) as Node;
    return { node, axes: bounded.axes.filter((_, i) => i !== axis) };
  },
  argSort: (ctx, part, [x]) => {
    const { axis, descending } = part.attrs as { axis: number; descending: boolean };
    const own = ctx.prefixed(x!, axis);
    const bounded = ctx.boundedTo(own, axis, lastOf(x!.node.dtype, descending));
    const node = ctx.b.add('argSort', [bounded.node], { axis, descending }) as Node;
    return { node, axes: varied(own.axes, axis) };
  },
  scan: (ctx, part, [x]) => {
    const attrs = part.attrs as { monoid: Monoid; axis: number; reverse: boolean; exclusive: boolean };
    const own = ctx.prefixed(x!, attrs.axis);
    const bounded = attrs.reverse ? ctx.boundedTo(own, attrs.axis, identity(attrs.monoid, part.dtype)) : own;
    const node = ctx.b.add('scan', [bounded.node], attrs) as Node;
    return { node, axes: varied(own.axes, attrs.axis) };
  },
};

/** The axes of a result whose elements differ along one. */
function varied(axes: SizedNode['axes'], axis: number): SizedNode['axes'] {
  return axes.with(axis, { ...axes[axis]!, uniform: false });
}

/** The operation on aligned operands: element by element. */
const elementwise: SizeRule = (ctx, part, inputs) => {
  const { values, axes } = ctx.aligned(inputs);
  return { node: made(ctx, part, values), axes };
};

/** A node of the part's op, over operands at capacity. */
function made(ctx: SizeLowering, part: StructurePart, inputs: readonly SizedNode[]): Node {
  return ctx.b.add(
    part.op,
    inputs.map(({ node }) => node),
    part.attrs as never,
  ) as Node;
}

/** Refuses what depends on a varying size in any way. */
const fixedOnly: SizeRule = (ctx, part, inputs) => {
  requireFixed(ctx, part, inputs, () => false);
  const node = made(ctx, part, inputs);
  return { node, axes: dims(node).map(fixedAxis) };
};

/** Stacks of lines or matrices, each by itself: the first axis may vary. */
const stacked: SizeRule = (ctx, part, inputs) => {
  requireFixed(ctx, part, inputs, (axis) => axis === 0);
  const first = ctx.shared(inputs.map(({ axes }) => axes[0]!));
  const values = inputs.map((x) => ctx.laidOut(x, 0, first));
  const node = made(ctx, part, values);
  return {
    node,
    axes: dims(node).map((size, axis) => (axis === 0 ? { ...first, uniform: false } : fixedAxis(size))),
  };
};

/** Refuses varying attributes, and varying axes that `may` does not allow. */
function requireFixed(
  ctx: SizeLowering,
  part: StructurePart,
  inputs: readonly SizedNode[],
  may: (axis: number) => boolean,
): void {
  const attrs = Object.values(part.attrs).flat().filter(isVarying);
  if (attrs.length > 0) ctx.refuse(part, 'an attribute depends on a size', attrs);
  const nums = inputs.flatMap(({ axes }) =>
    axes.flatMap((axis, i) => (may(i) ? [] : axis.factors.map(({ size }) => size))),
  );
  if (nums.some(isVarying)) ctx.refuse(part, 'an axis that it works along has a varying size', nums);
}

const sources: SizeRulesOf<SourceOp> = {
  iota: (ctx, part) => {
    const { axis, dtype } = part.attrs as { readonly axis: number; readonly dtype: StructurePart['dtype'] };
    const axes = part.shape.map((size, i) => prefixAxis(size, ctx.capacity(size), i !== axis));
    const node = ctx.b.add('iota', [], { shape: axes.map(capacityOf), axis, dtype: dtype as never }) as Node;
    return { node, axes };
  },
  // The stream of words is the same for any length; then each element takes the word that is its own.
  randomBits: (ctx, part, inputs) => {
    const total = ctx.sizes.total(part.shape);
    const axes: SizeAxis[] = [prefixAxis(total, ctx.capacity(total))];
    const words = inputs.map(({ node }) => node);
    const node = ctx.b.add('randomBits', words, { shape: axes.map(capacityOf) }) as Node;
    return views.reshape(ctx, part, [{ node, axes }]);
  },
  constant: (ctx, part) => {
    const { value } = part.attrs as { readonly value: Num | bigint };
    if (!isVarying(value)) return { node: made(ctx, part, []), axes: [] };
    const of = part.dtype === 'f64' ? 'double' : 'integer';
    const word = (half: 'low' | 'high'): Node =>
      ctx.b.add('cast', [ctx.scalar(value, 'u32', `${half} word of ${of}`)], { dtype: 'u64' }) as Node;
    const shift = ctx.b.add('constant', [], { value: 32n, dtype: 'u64' }) as Node;
    const high = ctx.b.add('shl', [word('high'), shift], {}) as Node;
    const bits = ctx.b.add('or', [high, word('low')], {}) as Node;
    const dtype = part.dtype;
    return { node: dtype === 'u64' ? bits : (ctx.b.add('bitcast', [bits], { dtype }) as Node), axes: [] };
  },
  rankIndex: (ctx, part) => ({ node: made(ctx, part, []), axes: [] }),
  parameter: (ctx, part) => ctx.refuse(part, 'it was recorded outside of the traced function'),
};

const table: { readonly [K in Op]: SizeRule } = {
  ...mapRows(() => elementwise),
  ...views,
  ...folds,
  ...indexed,
  ...contractions,
  ...sources,
  complex: elementwise,
  real: elementwise,
  imag: elementwise,
  conj: elementwise,
  stopGradient: elementwise,
  customVjp: (_, __, inputs) => inputs[0]!,
  barrier: (ctx, part, inputs) => ({ node: made(ctx, part, inputs), axes: inputs[0]!.axes }),
  shard: fixedOnly,
  toPart: fixedOnly,
  toWhole: fixedOnly,
  bounded: (ctx, part, inputs) => {
    const { axis } = part.attrs as { readonly axis: number };
    const [x, bound] = inputs as readonly [SizedNode, SizedNode];
    const own = ctx.prefixed(x, axis);
    const axes = own.axes.with(axis, { ...own.axes[axis]!, uniform: false });
    return { node: made(ctx, part, [own, bound]), axes };
  },
  fft: (ctx, part, inputs) => {
    const { axis } = part.attrs as { readonly axis: number };
    const last = inputs[0]!.axes.length - 1;
    requireFixed(ctx, part, inputs, (at) => at !== axis && at !== last);
    const [x, roots] = inputs as readonly [SizedNode, SizedNode];
    requireFixed(ctx, part, [roots], () => false);
    return { node: made(ctx, part, inputs), axes: x.axes };
  },
  fftPart: fixedOnly,
  radixRank: fixedOnly,
  jacobiRows: stacked,
  completeRows: stacked,
  factor: stacked,
  dequantize: fixedOnly,
  allReduce: fixedOnly,
  allGather: fixedOnly,
  reduceScatter: fixedOnly,
  allToAll: fixedOnly,
  permuteRanks: fixedOnly,
  broadcastRank: fixedOnly,
  ...loops(applyRule),
};

/** The value of an operation at the capacities of a variant. Throws E_UNSUPPORTED where there is none. */
export function applyRule(ctx: SizeLowering, part: StructurePart, inputs: readonly SizedNode[]): SizedNode {
  const isFixed =
    inputs.every(({ axes }) => axes.every(isExact)) &&
    !part.shape.some(isVarying) &&
    !Object.values(part.attrs)
      .flat()
      .some((value) => isVarying(value) || value instanceof RegionStructure);
  if (isFixed && part.op !== 'parameter') {
    const node = made(ctx, part, inputs);
    return { node, axes: dims(node).map(fixedAxis) };
  }
  return table[part.op](ctx, part, inputs);
}
