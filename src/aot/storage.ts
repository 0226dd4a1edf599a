// Entries over weights that are stored in fewer bits: takes an entry, replaces the parameter of
// each such weight by the parameters of its stored form, and expands these where the weight was
// read.

import { rewrite, GraphBuilder, type Node, type NodeOf } from '../ir/graph.ts';
import type { EntryResult, TracedEntry, Wire } from './entry.ts';
import { partsOf, unpack, type WeightFormat } from './formats.ts';

/** Where the parts of a weight stand among those that are stored, and how it is stored. */
export interface Stored {
  readonly format: WeightFormat;
  readonly first: number;
}

/** The entry, with weights as they are stored. */
export function overStored(traced: TracedEntry, stored: readonly Stored[]): TracedEntry {
  const { wiring, graph, scalars, donate } = traced;
  const builder = new GraphBuilder();
  const parameters: NodeOf<'parameter'>[] = [];
  const wires: Wire[] = [];
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
    const wire = wiring.wires[tensors++]!;
    const { format, first } = 'weight' in wire ? stored[wire.weight]! : { format: 'f32' as const, first: 0 };
    if (!('weight' in wire)) wires.push(wire);
    if (!('weight' in wire) || format === 'f32') {
      if ('weight' in wire) wires.push({ weight: first });
      values.set(node as Node, add(node, name));
      return;
    }
    const shape = node.shape as readonly number[];
    const parts = partsOf(format, shape).map((part, k) => {
      wires.push({ weight: first + k });
      return add(part, `${name}${part.suffix}`);
    });
    values.set(node as Node, unpack(builder, format, parts, shape));
  });
  const rewritten = rewrite(graph, (node) => values.get(node), builder);
  const places = new Map<number, number>();
  let before = 0;
  wiring.wires.forEach((wire, i) => {
    places.set(i, before);
    before += 'weight' in wire ? partsOf(stored[wire.weight]!.format, [32]).length : 1;
  });
  const from = (result: EntryResult): EntryResult =>
    'input' in result ? { input: places.get(result.input)! } : result;
  return {
    ...traced,
    wiring: {
      ...wiring,
      wires,
      results: wiring.results.map(from),
      updates: wiring.updates.map((update) => ({
        weight: stored[update.weight]!.first,
        from: from(update.from),
      })),
    },
    graph: { parameters, outputs: rewritten.outputs },
    scalars: newScalars,
    donate: new Map([...donate].map(([parameter, output]) => [moved.get(parameter)!, output])),
  };
}
