// Loops over values of varying sizes. What a loop carries has one size in every iteration, which is the size outside, so that
// its body is made at the same capacities; run-time scalars of the body are the same in every iteration.

import { regionOf } from '../text/region.ts';
import { Region } from '../region.ts';
import type { Attrs } from '../ops.ts';
import { capacityOf, fixedAxis, prefixAxis, type SizeAxis } from './layout.ts';
import { SizeLowering, type SizedNode, type SizeScalar } from './lowering.ts';
import type { NodeOf, Node } from '../graph.ts';
import type { StructurePart } from './structure.ts';
import { RegionStructure } from './region.ts';
import type { SizeRule, SizeRulesOf } from './rule.ts';
import { isVarying, type Num } from './size.ts';

/** A body at capacities, the scalars that it reads behind its parameters, and how its values are laid out. */
interface MadeBody {
  readonly region: Region;
  readonly scalars: readonly SizeScalar[];
  readonly parameters: readonly (readonly SizeAxis[])[];
  readonly outputs: readonly (readonly SizeAxis[])[];
}

type Apply = (ctx: SizeLowering, part: StructurePart, inputs: readonly SizedNode[]) => SizedNode;

const prefixes = (ctx: SizeLowering, shape: readonly Num[]): readonly SizeAxis[] =>
  shape.map((size) => prefixAxis(size, ctx.capacity(size)));

/** Siblings have one body, which is made once. */
const bodies = new WeakMap<SizeLowering, Map<RegionStructure, MadeBody>>();

function bodyOf(ctx: SizeLowering, pattern: RegionStructure, apply: Apply): MadeBody {
  const known = bodies.get(ctx) ?? new Map<RegionStructure, MadeBody>();
  bodies.set(ctx, known);
  const before = known.get(pattern);
  if (before !== undefined) return before;
  const inner = ctx.within(pattern.parameters.length);
  const axes = pattern.parameters.map(({ shape }) => prefixes(inner, shape));
  const parameters: NodeOf<'parameter'>[] = pattern.parameters.map(({ name, dtype }, index) =>
    inner.b.add('parameter', [], { index, name, dtype, shape: axes[index]!.map(capacityOf) }),
  );
  const made = inner.lowered(pattern.structure, apply, ({ leaf }) => ({
    node: parameters[leaf] as Node,
    axes: axes[leaf]!,
  }));
  const ends = pattern.structure.outputs.map((output) => {
    const to = prefixes(inner, pattern.structure.parts[output]!.shape);
    return inner.like(made[output]!, to);
  });
  for (const { parameter } of inner.scalars) parameters.push(parameter);
  const region = regionOf({ parameters, outputs: ends.map(({ node }) => node) });
  const body = {
    region,
    scalars: inner.scalars,
    parameters: axes,
    outputs: ends.map((end) => end.axes),
  };
  known.set(pattern, body);
  return body;
}

/** The rule of loops, by that of every operation, which bodies consist of. */
export function loops(apply: Apply): SizeRulesOf<'iterate'> {
  const iterate: SizeRule = (ctx, part, inputs) => {
    const attrs = part.attrs as unknown as Omit<Attrs<'iterate'>, 'trips' | 'body'> & {
      readonly trips: Num;
      readonly body: Region | RegionStructure;
    };
    const { trips, carries, stacked, result } = attrs;
    if (isVarying(trips))
      return ctx.refuse(
        part,
        'scan, foriLoop and recurrent layers make a fixed number of iterations, and here it is a size',
        [trips],
      );
    // A body of fixed sizes takes nothing that varies.
    if (attrs.body instanceof Region) return ctx.refuse(part, 'the loop reads something of a varying size');
    const pattern = attrs.body;
    const { region, scalars, parameters, outputs } = bodyOf(ctx, pattern, apply);
    const stackOf = (axes: readonly SizeAxis[]): readonly SizeAxis[] => [fixedAxis(trips), ...axes];
    const given = inputs.map((x, i) => {
      const own = parameters[i + 1]!;
      return ctx.like(x, i >= carries && i < carries + stacked ? stackOf(own) : own).node;
    });
    const read = scalars.map(({ num, parameter, part: of }) =>
      ctx.scalar(num, parameter.dtype as Parameters<SizeLowering['scalar']>[1], of),
    );
    const made = { ...attrs, trips, body: region };
    const node = ctx.b.add('iterate', [...given, ...read], made) as Node;
    const axes = outputs[result]!;
    return { node, axes: result < carries ? axes : stackOf(axes) };
  };
  return { iterate };
}
