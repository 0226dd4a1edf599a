// The views on values of varying sizes. Where a view begins or ends at an index that is known only at
// run time its elements are gathered; otherwise it is the same view at capacity.

import { add, broadcast, constant, mul, reshape, where } from '../build.ts';
import { dims, type Node } from '../graph.ts';
import type { ViewOp } from '../ops.ts';
import { windowCount } from '../typing/check.ts';
import { capacityOf, isExact, prefixAxis, sizeOfAxis } from './layout.ts';
import type { SizeLowering, SizedNode } from './lowering.ts';
import { reshaped } from './reshape.ts';
import type { SizeRulesOf } from './rule.ts';
import { isVarying, type Num } from './size.ts';

type Nums = readonly Num[];

export const views: SizeRulesOf<ViewOp> = {
  reshape: (ctx, part, [x]) => reshaped(ctx, x!, part.shape),
  permute: (ctx, part, [x]) => ctx.permuted(x!, (part.attrs as { order: readonly number[] }).order),
  broadcast: (ctx, part, [x]) => {
    const { shape } = part;
    const missing = shape.length - x!.axes.length;
    const axes = shape.map((size, axis) => {
      const from = x!.axes[axis - missing];
      // An axis of one element is repeated, unless one element is all that there is to be.
      if (from === undefined || from.factors.length === 0)
        return size === 1 ? { factors: [], uniform: false } : prefixAxis(size, ctx.capacity(size), true);
      return from;
    });
    return { node: broadcast(ctx.b, x!.node, axes.map(capacityOf)), axes };
  },
  slice: (ctx, part, [x]) => {
    const { start, size, step } = part.attrs as { start: Nums; size: Nums; step: Nums };
    return size.reduce(
      (value: SizedNode, count, axis) => sliced(ctx, value, axis, start[axis]!, count, step[axis]!),
      x!,
    );
  },
  pad: (ctx, part, [x]) => {
    const { low, interior, value } = part.attrs as { low: Nums; interior: Nums; value: Num };
    if (isVarying(value)) return ctx.refuse(part, 'what it pads with depends on a size', [value]);
    return part.shape.reduce(
      (out: SizedNode, size, axis) =>
        padded(ctx, out, axis, { size, low: low[axis]!, interior: interior[axis]!, value }),
      x!,
    );
  },
  concat: (ctx, part, inputs) => {
    const { axis } = part.attrs as { axis: number };
    const others = inputs[0]!.axes.map((own, i) =>
      i === axis ? own : ctx.shared(inputs.map(({ axes }) => axes[i]!)),
    );
    const parts = inputs.map((x) =>
      others.reduce((value, to, i) => (i === axis ? ctx.prefixed(value, i) : ctx.laidOut(value, i, to)), x),
    );
    const size = part.shape[axis]!;
    const along = prefixAxis(size, ctx.capacity(size));
    const axes = others.map((own, i) => (i === axis ? along : own));
    if (parts.slice(0, -1).every((x) => isExact(x.axes[axis]!))) {
      const node = ctx.b.add(
        'concat',
        parts.map((x) => x.node),
        { axis },
      ) as Node;
      const own = prefixAxis(size, dims(node)[axis]!);
      return ctx.resized({ node, axes: axes.with(axis, own) }, axis, capacityOf(along));
    }
    return { node: joined(ctx, parts, axis, axes.map(capacityOf)), axes };
  },
  window: (ctx, part, [x]) => {
    const { axis, size, stride, dilation } = part.attrs as Record<string, Num> & { axis: number };
    if (typeof size !== 'number' || typeof stride !== 'number' || typeof dilation !== 'number')
      return ctx.refuse(part, 'the windows depend on a size', [size, stride, dilation]);
    const from = ctx.prefixed(x!, axis);
    const node = ctx.b.add('window', [from.node], { axis, size, stride, dilation }) as Node;
    const count = windowCount(capacityOf(from.axes[axis]!), size, stride, dilation);
    const axes = [...from.axes.with(axis, prefixAxis(part.shape[axis]!, count)), prefixAxis(size, size)];
    const own = part.shape[axis]!;
    return ctx.resized({ node, axes }, axis, ctx.capacity(own));
  },
};

function sliced(ctx: SizeLowering, x: SizedNode, axis: number, start: Num, count: Num, step: Num): SizedNode {
  const from = x.axes[axis]!;
  if (start === 0 && step === 1 && sizeOfAxis(from, ctx.sizes) === count) return x;
  const { b } = ctx;
  const whole = ctx.prefixed(x, axis);
  const shape = dims(whole.node);
  const capacity = ctx.capacity(count);
  const along = prefixAxis(count, capacity, from.uniform);
  if (typeof start === 'number' && typeof step === 'number') {
    const last = start + (capacity - 1) * step;
    const isInside = start < shape[axis]! && last >= 0 && last < shape[axis]!;
    if (capacity === 0 || isInside) {
      const zeros = shape.map(() => 0);
      const attrs = {
        start: zeros.with(axis, start),
        size: shape.with(axis, capacity),
        step: shape.map((_, i) => (i === axis ? step : 1)),
      };
      return { node: b.add('slice', [whole.node], attrs) as Node, axes: whole.axes.with(axis, along) };
    }
  }
  const index = ctx.count([capacity], 0);
  const steps = step === 1 ? index : mul(b, index, ctx.filled(step, [capacity], 'i32'));
  return ctx.gathered(whole, axis, add(b, steps, ctx.filled(start, [capacity], 'i32')), along);
}

interface Padding {
  /** Of the result. */
  readonly size: Num;
  readonly low: Num;
  readonly interior: Num;
  readonly value: number;
}

function padded(ctx: SizeLowering, x: SizedNode, axis: number, padding: Padding): SizedNode {
  const { size, low, interior, value } = padding;
  const { b } = ctx;
  const from = x.axes[axis]!;
  if (low === 0 && interior === 0 && sizeOfAxis(from, ctx.sizes) === size) return x;
  const whole = ctx.boundedTo(ctx.prefixed(x, axis), axis, value);
  const capacity = ctx.capacity(size);
  const along = prefixAxis(size, capacity);
  const now = dims(whole.node)[axis]!;
  const zeros = dims(whole.node).map(() => 0);
  if (typeof low === 'number' && typeof interior === 'number') {
    const spread = low + now + Math.max(0, now - 1) * interior;
    const attrs = {
      low: zeros.with(axis, low),
      high: zeros.with(axis, Math.max(0, capacity - spread)),
      interior: zeros.with(axis, interior),
      value,
    };
    const node = b.add('pad', [whole.node], attrs) as Node;
    const own = prefixAxis(size, Math.max(capacity, spread));
    if (capacity < spread && !isVarying(size)) {
      const start = zeros;
      const cut = { start, size: dims(node).with(axis, capacity), step: zeros.map(() => 1) };
      return { node: b.add('slice', [node], cut) as Node, axes: whole.axes.with(axis, along) };
    }
    return ctx.resized({ node, axes: whole.axes.with(axis, own) }, axis, capacity);
  }
  // Element i lies at low + i · (interior + 1).
  const line = (num: Num): Node => ctx.filled(num, [capacity], 'i32');
  const op = (name: 'sub' | 'add' | 'div' | 'mod' | 'ne' | 'lt' | 'or', left: Node, right: Node): Node =>
    b.add(name, [left, right], {}) as Node;
  const behind = op('sub', ctx.count([capacity], 0), line(low));
  const isBefore = op('lt', behind, line(0));
  const apart = op('add', line(interior), line(1));
  const isGap = interior === 0 ? undefined : op('ne', op('mod', behind, apart), line(0));
  const place = interior === 0 ? behind : op('div', behind, apart);
  const nowhere = isGap === undefined ? isBefore : op('or', isBefore, isGap);
  const moved = ctx.gathered(whole, axis, where(b, nowhere, line(-1), place), along);
  if (Object.is(value, 0)) return moved;
  // Outside of the operand a gather reads 0.
  const isPadding = op('or', nowhere, op('lt', line(now - 1), place));
  const shape = dims(moved.node);
  const lines = shape.map((_, i) => (i === axis ? capacity : 1));
  const filling = broadcast(b, constant(b, value, moved.node.dtype), shape);
  const spread = broadcast(b, reshape(b, isPadding, lines), shape);
  return { node: where(b, spread, filling, moved.node), axes: moved.axes };
}

/** Parts one behind another, each where those before it end at run time. */
function joined(
  ctx: SizeLowering,
  parts: readonly SizedNode[],
  axis: number,
  shape: readonly number[],
): Node {
  const { b } = ctx;
  const capacity = shape[axis]!;
  const index = ctx.count([capacity], 0);
  const spread = (x: Node): Node => broadcast(b, x, [capacity]);
  const lines = shape.map((_, i) => (i === axis ? capacity : 1));
  let end: Node = constant(b, 0, 'i32');
  const pieces = parts.map((x) => {
    const place = b.add('sub', [index, spread(end)], {}) as Node;
    end = add(b, end, ctx.whole(sizeOfAxis(x.axes[axis]!, ctx.sizes)));
    const { node } = ctx.gathered(x, axis, place, prefixAxis(capacity, capacity));
    return { node, isBelow: b.add('lt', [index, spread(end)], {}) as Node };
  });
  return pieces.reduceRight((behind: Node | undefined, { node, isBelow }) => {
    if (behind === undefined) return node;
    return where(b, broadcast(b, reshape(b, isBelow, lines), shape), node, behind);
  }, undefined)!;
}
