// Entries over stored weights: parameters that stand for a weight become those that it is stored as, expanded where they were read.

import { rewrite, GraphBuilder, type Node, type NodeOf } from '../ir/graph.ts';
import type { Wire } from '../player/manifest.ts';
import type { TracedEntry } from './entry.ts';
import { partsOf, unpack, type WeightFormat } from './formats.ts';

/** Where the parts of a weight stand among those that are stored, and how it is stored. */
export interface Stored {
  readonly format: WeightFormat;
  readonly first: number;
}

/** The entry, with weights as they are stored. */
export function overStored(
  { entry, graph, scalars, donate }: TracedEntry,
  stored: readonly Stored[],
): TracedEntry {
  const builder = new GraphBuilder();
  const parameters: NodeOf<'parameter'>[] = [];
  const wiring: Wire[] = [];
  const newScalars = new Set<number>();
  const moved = new Map<number, number>();
  const values = new Map<Node, Node>();
  const add = (node: Pick<NodeOf<'parameter'>, 'dtype' | 'shape'>, name: string): Node => {
    const { dtype, shape } = node;
    const parameter = builder.add('parameter', [], { index: parameters.length, name, dtype, shape });
    parameters.push(parameter as NodeOf<'parameter'>);
    return parameter as Node;
  };
  let tensors = 0;
  graph.parameters.forEach((node, i) => {
    moved.set(i, parameters.length);
    const { name } = node.attrs;
    if (scalars.has(i)) {
      newScalars.add(parameters.length);
      values.set(node as Node, add(node, name));
      return;
    }
    const wire = entry.wiring[tensors++]!;
    const { format, first } = 'weight' in wire ? stored[wire.weight]! : { format: 'f32' as const, first: 0 };
    if (!('weight' in wire)) wiring.push(wire);
    if (!('weight' in wire) || format === 'f32') {
      if ('weight' in wire) wiring.push({ weight: first });
      values.set(node as Node, add(node, name));
      return;
    }
    const shape = node.shape as readonly number[];
    const parts = partsOf(format, shape).map((part, k) => {
      wiring.push({ weight: first + k });
      return add(part, `${name}${part.suffix}`);
    });
    values.set(node as Node, unpack(builder, format, parts, shape));
  });
  const rewritten = rewrite(graph, (node) => values.get(node), builder);
  const places = new Map<number, number>();
  let before = 0;
  entry.wiring.forEach((wire, i) => {
    places.set(i, before);
    before += 'weight' in wire ? partsOf(stored[wire.weight]!.format, [32]).length : 1;
  });
  const from = <T extends { readonly from: { readonly output: number } | { readonly input: number } }>(
    one: T,
  ): T => ('input' in one.from ? { ...one, from: { input: places.get(one.from.input)! } } : one);
  return {
    entry: {
      ...entry,
      wiring,
      outputs: entry.outputs.map(from),
      updates: entry.updates.map((update) => from({ ...update, weight: stored[update.weight]!.first })),
    },
    graph: { parameters, outputs: rewritten.outputs },
    scalars: newScalars,
    donate: new Map([...donate].map(([parameter, output]) => [moved.get(parameter)!, output])),
  };
}
