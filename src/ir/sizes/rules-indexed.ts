// Reads and writes at indices of values of varying sizes. Outside of an axis a gather reads 0, and a
// scatter drops the update: so it is beyond the size.

import { dims, type Node } from '../graph.ts';
import type { Attrs, ScatterMode } from '../ops.ts';
import { isFloat, integerRange, isWide } from '../dtype.ts';
import { capacityOf, isExact, prefixAxis, sizeOfAxis, type SizeAxis } from './layout.ts';
import type { SizeLowering, SizedNode } from './lowering.ts';
import type { SizeRule, SizeRulesOf } from './rule.ts';
import { isVarying } from './size.ts';

/** Indices that name no element, beyond the sizes of all axes along which updates vary. */
function dropped(ctx: SizeLowering, indices: SizedNode, axis: number): SizedNode {
  const nowhere = indices.node.dtype === 'u32' ? 0xffffffff : -1;
  return ctx.boundedTo(indices, axis, nowhere);
}

/**
 * Indices (and what goes with them) whose other axes lie as the operand's do, as far as they reach:
 * both begin with the elements that count.
 */
function besides(
  ctx: SizeLowering,
  operand: SizedNode,
  others: readonly SizedNode[],
  axis: number,
): { readonly operand: SizedNode; readonly others: readonly SizedNode[] } {
  let [own, rest] = [operand, others];
  for (let at = 0; at < operand.axes.length; at++) {
    if (at === axis) continue;
    const all = [own, ...rest].map(({ axes }) => axes[at]!);
    if (all.every(isExact)) continue;
    own = ctx.prefixed(own, at);
    const to = ctx.shared(rest.map(({ axes }) => axes[at]!));
    rest = rest.map((x) => ctx.prefixed(ctx.laidOut(x, at, to), at));
    const capacity = Math.max(...[own, ...rest].map(({ axes }) => capacityOf(axes[at]!)));
    // An operand of a fixed size that reaches further stays as it is.
    if (!isExact(own.axes[at]!)) own = ctx.resized(own, at, capacity);
    else if (capacityOf(own.axes[at]!) < capacity) {
      const most = capacityOf(own.axes[at]!);
      rest = rest.map((x) => ctx.resized(x, at, most));
    }
  }
  return { operand: own, others: rest };
}

export const indexed: SizeRulesOf<
  'gather' | 'scatter' | 'scatterAddAtomic' | 'permuteScatter' | 'searchSorted' | 'segmentReduce'
> = {
  gather: (ctx, part, inputs) => {
    const { axis } = part.attrs as Attrs<'gather'>;
    const [operand, indices] = inputs as readonly [SizedNode, SizedNode];
    const bounded = ctx.boundedTo(ctx.prefixed(operand, axis), axis, 0);
    const fit = besides(ctx, bounded, [indices], axis);
    const [at] = fit.others as readonly [SizedNode];
    const node = ctx.b.add('gather', [fit.operand.node, at.node], { axis }) as Node;
    return { node, axes: at.axes.map((own) => ({ ...own, uniform: false })) };
  },
  scatter: (ctx, part, inputs) => {
    const { axis, mode } = part.attrs as { axis: number; mode: ScatterMode };
    const [operand, indices, updates] = inputs as readonly [SizedNode, SizedNode, SizedNode];
    const along = ctx.shared([indices.axes[axis]!, updates.axes[axis]!]);
    const fit = besides(
      ctx,
      ctx.prefixed(operand, axis),
      [indices, updates].map((x) => ctx.laidOut(x, axis, along)),
      axis,
    );
    const [at, by] = fit.others as readonly [SizedNode, SizedNode];
    // Beyond the sizes of other axes updates go to places that do not count, unless the operand's
    // axis is longer than theirs.
    const safe = at.axes.reduce((value, _, i) => dropped(ctx, value, i), at);
    const node = ctx.b.add('scatter', [fit.operand.node, safe.node, by.node], { axis, mode }) as Node;
    return { node, axes: fit.operand.axes.map((own) => ({ ...own, uniform: false })) };
  },
  scatterAddAtomic: (ctx, part, inputs) => {
    const { axis } = part.attrs as { axis: number };
    const size = part.shape[axis]!;
    const { values, axes } = ctx.aligned(inputs);
    const [at, by] = values as readonly [SizedNode, SizedNode];
    const safe = dropped(ctx, at, axis);
    const capacity = ctx.capacity(size);
    const node = ctx.b.add('scatterAddAtomic', [safe.node, by.node], { axis, size: capacity }) as Node;
    return { node, axes: axes.map((own, i) => (i === axis ? prefixAxis(size, capacity) : own)) };
  },
  permuteScatter: (ctx, part, inputs) => {
    const { axis } = part.attrs as { axis: number };
    const first = inputs.map((x) => ctx.prefixed(x, axis));
    const { values, axes } = ctx.aligned(first);
    const [x, places] = values as readonly [SizedNode, SizedNode];
    // Beyond the size every element stays where it is, so that the whole is a permutation.
    const shape = dims(places.node);
    const stay = ctx.b.add('iota', [], { shape, axis, dtype: places.node.dtype as 'i32' }) as Node;
    const safe = ctx.boundedBy(places, axis, stay);
    const node = ctx.b.add('permuteScatter', [x.node, safe.node], { axis }) as Node;
    return { node, axes: axes.map((own) => ({ ...own, uniform: false })) };
  },
  searchSorted: (ctx, part, inputs) => {
    const { right } = part.attrs as { right: boolean };
    let [boundaries, values] = inputs as readonly [SizedNode, SizedNode];
    const last = boundaries.axes.length - 1;
    for (let axis = 0; axis < last; axis++) {
      const to = ctx.shared([boundaries.axes[axis]!, values.axes[axis]!]);
      [boundaries, values] = [ctx.laidOut(boundaries, axis, to), ctx.laidOut(values, axis, to)];
    }
    boundaries = ctx.prefixed(boundaries, last);
    const along: SizeAxis = boundaries.axes[last]!;
    const { dtype } = boundaries.node;
    const most = integerRange(dtype === 'bool' || isFloat(dtype) ? 'i32' : dtype)[1];
    const greatest = isFloat(dtype) ? NaN : dtype === 'bool' ? 1 : isWide(dtype) ? most : Number(most);
    const bounded = ctx.boundedTo(boundaries, last, greatest);
    const found = ctx.b.add('searchSorted', [bounded.node, values.node], { right }) as Node;
    const axes = values.axes.map((own) => ({ ...own, uniform: false }));
    const size = sizeOfAxis(along, ctx.sizes);
    if (!isVarying(size)) return { node: found, axes };
    // What is as great as what stands beyond the size counts no more than there is.
    const limit = ctx.filled(size, dims(found), 'i32');
    return { node: ctx.b.add('min', [found, limit], {}) as Node, axes };
  },
  segmentReduce: (ctx, part, inputs) => segments(ctx, part, inputs),
};

/** Of sorted updates: along its axis nothing may vary, and the others have to lie alike. */
const segments: SizeRule = (ctx, part, inputs) => {
  const { axis, mode } = part.attrs as { axis: number; mode: ScatterMode };
  const isVaried = inputs.some(({ axes }) => !isExact(axes[axis]!));
  if (isVaried) return ctx.refuse(part, 'sorted updates along an axis of a varying size', [part.shape[axis]]);
  const shared = inputs[0]!.axes.map((_, at) => ctx.shared(inputs.map(({ axes }) => axes[at]!)));
  const values = inputs.map((x) =>
    shared.reduce((value, to, at) => (at === axis ? value : ctx.laidOut(value, at, to)), x),
  );
  const node = ctx.b.add(
    'segmentReduce',
    values.map((x) => x.node),
    { axis, mode },
  ) as Node;
  return { node, axes: values[0]!.axes.map((own) => ({ ...own, uniform: false })) };
};
