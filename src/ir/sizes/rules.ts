// What each primitive does with values of which only the first elements along some axes count: one
// row an op. Elements beyond a size may hold anything, NaN as well; a row sees to it that those
// that count never depend on them, and refuses what it cannot do with an error.

import { mapRows, type Op } from '../ops.ts';
import { dims, type Node } from '../graph.ts';
import { capacityOf, fixedAxis, isExact, prefixAxis, type SizeAxis } from './layout.ts';
import type { SizeLowering, SizedNode } from './lowering.ts';
import type { StructurePart } from './structure.ts';
import type { SizeRule, SizeRulesOf } from './rule.ts';
import { isVarying, type Num } from './size.ts';
import { contractions } from './rules-contraction.ts';
import { folds } from './rules-fold.ts';
import { indexed } from './rules-indexed.ts';
import { loops } from './rules-loop.ts';
import { RegionStructure } from './region.ts';
import { views } from './rules-view.ts';

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

const sources: SizeRulesOf<'iota' | 'randomBits' | 'constant' | 'parameter'> = {
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
