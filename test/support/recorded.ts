// The graph that a function of the public API records, ready to be interpreted or compiled: its random words are constants, and
// each of its parameters says which leaf of the arguments it stands for.

import { rewrite, type Graph, type Node, type NodeOf } from '../../src/ir/graph.ts';
import { traceFunction } from '../../src/tensor/tracing.ts';
import type { ScalarOrigin } from '../../src/tensor/trace/trace.ts';

export interface Recorded {
  readonly graph: Graph;
  /** For each parameter the place of its argument among the leaves of all arguments; −1 of what the function captured. */
  readonly leaves: readonly number[];
}

/**
 * Traces `fn` on `args` (trees of tensors; what it computes with must be among them, unless what it captures may be parameters, too). `seed` is where random
 * draws start.
 */
export function recorded(
  fn: (...args: never[]) => unknown,
  args: readonly unknown[],
  seed: number = 1,
  captured: 'refused' | 'parameters' = 'refused',
): Recorded {
  const { graph, scalarIndices, scalars, inputs } = traceFunction(fn, args);
  const values = [...scalarIndices].map((index, i): [number, number] => [index, wordOf(scalars[i]!, seed)]);
  const words = new Map(values);
  let count = 0;
  const rewritten = rewrite(graph, (node, _, b) => {
    if (node.op !== 'parameter') return undefined;
    const value = words.get(node.attrs.index);
    if (value !== undefined) return b.add('constant', [], { value, dtype: node.dtype }) as Node;
    return b.add('parameter', [], { ...node.attrs, index: count++ }) as Node;
  });
  const parameters = (rewritten.parameters as readonly Node[]).filter(
    (node): node is NodeOf<'parameter'> & Node => node.op === 'parameter',
  );
  const leaves = inputs.slice(0, count).map(({ origin }) => {
    if (origin.kind === 'argument') return origin.leaf;
    if (captured === 'parameters') return -1;
    throw new Error('the function computes with a tensor that is none of its arguments');
  });
  return { graph: { parameters, outputs: rewritten.outputs }, leaves };
}

function wordOf(origin: ScalarOrigin, seed: number): number {
  if (origin.kind === 'number') throw new Error('numbers among the arguments are not constants');
  if (origin.high) return 0;
  return origin.kind === 'seed' ? seed : Number(origin.offset);
}
