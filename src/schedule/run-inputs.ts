// What a run of a program is given: tensors, and numbers as scalars.

import type { DType } from '../ir/dtype.ts';
import { topological, type Graph, type Node } from '../ir/graph.ts';
import { boundaryOf } from './fusion/boundary.ts';

/** Rank-0 inputs that are passed as scalars. */
const singleLimit = 8;

/**
 * Rank-0 inputs that kernels read, or that say what of an output is needed: as scalars they take no
 * binding. A few, for they are copied at each run. Not those that loops and collectives read from
 * memory: a kernel would write their values there, which is over the inputs themselves.
 */
function singleInputs(graph: Graph, scalars: ReadonlySet<number>): Graph['parameters'] {
  const dtypes: ReadonlySet<DType> = new Set<DType>(['f32', 'i32', 'u32']);
  const ends = [...(graph.needed?.values() ?? [])].flat().flatMap((need) => need.ends.map(({ n }) => n));
  const order = topological([...graph.outputs, ...ends]);
  const [used, inMemory] = [new Set(order), boundaryOf(graph, order)];
  const single = graph.parameters.filter(
    (node, i) =>
      !scalars.has(i) &&
      dtypes.has(node.dtype) &&
      node.shape.length === 0 &&
      used.has(node as Node) &&
      !inMemory.has(node as Node),
  );
  return single.slice(0, singleLimit);
}

/** The parameters of a graph by how a run is given them. */
export interface RunInputs {
  readonly inputs: readonly Node[];
  /** Inputs among these that kernels read as scalars. */
  readonly single: Graph['parameters'];
  readonly scalars: Graph['parameters'];
  /** By scalar: its number. */
  readonly slots: ReadonlyMap<Node, number>;
}

/** `scalars` are the indices of parameters that are supplied as numbers at each run. */
export function runInputs(graph: Graph, scalars: ReadonlySet<number> = new Set()): RunInputs {
  const inputs = graph.parameters.filter((_, i) => !scalars.has(i)) as readonly Node[];
  const single = singleInputs(graph, scalars);
  const all = [...graph.parameters.filter((_, i) => scalars.has(i)), ...single];
  return { inputs, single, scalars: all, slots: new Map(all.map((node, slot) => [node as Node, slot])) };
}
