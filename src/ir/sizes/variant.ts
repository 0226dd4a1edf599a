// A structure of varying sizes as an ordinary graph of fixed sizes: the capacities of a variant. The
// true sizes are run-time scalars. Inputs and outputs lie in memory as tensors of the true sizes do,
// at the beginning of a buffer that has room for the capacity.

import { bounded } from '../build.ts';
import type { Graph, Node, NodeOf } from '../graph.ts';
import { capacityOf, isExact, merged, prefixAxis, type SizeAxis } from './layout.ts';
import { SizeLowering, type SizedNode, type SizeScalar } from './lowering.ts';
import type { StructurePart, SizeStructure } from './structure.ts';
import { reshaped } from './reshape.ts';
import { applyRule } from './rules.ts';
import { isVarying, type Num, type VaryingSizes, type SizeValues, type VaryingNumber } from './size.ts';

export interface Variant {
  /** Leaves are parameters 0, 1, 2…, then come the scalars. */
  readonly graph: Graph;
  readonly scalars: readonly SizeScalar[];
  /** How great each number may be at most. */
  readonly capacities: ReadonlyMap<VaryingNumber, number>;
}

/**
 * The graph of a structure for sizes up to some. `samples` are what recordings at sizes that the
 * variant is for say, the largest first; `names` says what a number is made of. `filled` may change
 * what lies beyond the sizes of an operand, which tests do. Throws E_UNSUPPORTED at operations that
 * cannot do with a varying size.
 */
export function variantOf(
  structure: SizeStructure,
  sizes: VaryingSizes,
  samples: readonly SizeValues[],
  names: (num: VaryingNumber) => string,
  filled?: (ctx: SizeLowering, operand: SizedNode) => SizedNode,
): Variant {
  const capacities = new Map<VaryingNumber, number>();
  const capacity = (num: VaryingNumber): number => {
    const known = capacities.get(num);
    if (known !== undefined) return known;
    const seen = samples.flatMap((values) => sizes.complete(values, [num])?.get(num) ?? []);
    const most = Math.max(...seen);
    capacities.set(num, most);
    return most;
  };
  const ctx = new SizeLowering(sizes, capacity, names, structure.leaves, filled);
  const parameters: NodeOf<'parameter'>[] = [];
  const made = ctx.lowered(structure, applyRule, (part) => leaf(ctx, part, parameters));
  const outputs = structure.outputs.map((output) =>
    inTrueOrder(ctx, made[output]!, structure.parts[output]!),
  );
  for (const { parameter } of ctx.scalars) parameters[parameter.attrs.index] = parameter;
  return { graph: { parameters, outputs }, scalars: ctx.scalars, capacities };
}

/** An input, as it lies in memory. */
function leaf(ctx: SizeLowering, part: StructurePart, parameters: NodeOf<'parameter'>[]): SizedNode {
  const { shape, dtype, leaf: index, node } = part;
  const whole = shape.map((size) => prefixAxis(size, ctx.capacity(size)));
  const axes = liesInOrder(ctx, whole) ? whole : [flatAxis(ctx, shape)];
  const name = node.op === 'parameter' ? node.attrs.name : `t${index}`;
  const attrs = { index, name, dtype, shape: axes.map(capacityOf) };
  const parameter = ctx.b.add('parameter', [], attrs);
  parameters[index] = parameter;
  const value = { node: parameter as Node, axes };
  return axes === whole ? value : reshaped(ctx, value, shape);
}

function flatAxis(ctx: SizeLowering, shape: readonly Num[]): SizeAxis {
  const total = ctx.sizes.total(shape);
  return prefixAxis(total, ctx.capacity(total));
}

/** Whether the elements that count lie at the beginning, as those of a tensor of the true sizes do. */
function liesInOrder(ctx: SizeLowering, axes: readonly SizeAxis[]): boolean {
  const varying = axes.findIndex((axis) => !isExact(axis));
  if (varying < 0) return true;
  return (
    axes.every((axis, i) => i === varying || (isExact(axis) && (i > varying || capacityOf(axis) === 1))) &&
    merged(axes[varying]!, ctx.sizes).length === 1
  );
}

/** A result as it lies in memory; nobody asks for what is beyond its true size. */
function inTrueOrder(ctx: SizeLowering, x: SizedNode, { shape }: StructurePart): Node {
  if (liesInOrder(ctx, x.axes)) return used(ctx, x);
  return used(ctx, ctx.prefixed(reshaped(ctx, x, [ctx.sizes.total(shape)]), 0));
}

/** Says along each axis of which only the first elements count how many they are. */
function used(ctx: SizeLowering, { node, axes }: SizedNode): Node {
  return axes.reduce((value, axis, i) => {
    const [factor, ...others] = merged(axis, ctx.sizes);
    if (factor === undefined || others.length > 0 || !isVarying(factor.size)) return value;
    return bounded(ctx.b, value, i, ctx.whole(factor.size));
  }, node);
}

/** The value of a run-time scalar, from the numbers of a recording. */
export function scalarValue({ num, part }: SizeScalar, values: SizeValues): number {
  const value = values.get(num)!;
  if (part === 'value') return value;
  const bytes = new DataView(new ArrayBuffer(8));
  if (part.endsWith('double')) bytes.setFloat64(0, value);
  else bytes.setBigInt64(0, BigInt(value));
  return bytes.getUint32(part.startsWith('high') ? 0 : 4);
}
