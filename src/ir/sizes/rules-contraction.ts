// Products and convolutions of values of varying sizes: along an axis that is summed both operands are
// 0 beyond the size, since 0 times a NaN is none.

import { dims, type Node } from '../graph.ts';
import type { Attrs } from '../ops.ts';
import { capacityOf, isExact, prefixAxis, sizeOfAxis, type SizeAxis } from './layout.ts';
import type { SizedNode } from './lowering.ts';
import type { SizeRulesOf } from './rule.ts';
import { isVarying, type Num } from './size.ts';

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
