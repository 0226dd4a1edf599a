// Derivatives of compiled calls. A call whose results carry gradients runs as one program, like any
// other; the values that this program keeps besides its results (products, sums, …) are those that
// the derivative reads and that would be expensive to rematerialise, as in the partition of joint
// graphs by Chen et al. (2016, "Training Deep Nets with Sublinear Memory Cost"). When something
// asks for the history of a result, the recorded operations are laid over the values of the call,
// and `backward`, `grad` and second derivatives go on from there as if the function had been called
// uncompiled: all of it is one more program, found again by its structure.

import { cotangents } from '../../autograd/vjp.ts';
import { distinct, isDistinct } from '../../ir/build.ts';
import { isInexact } from '../../ir/dtype.ts';
import { dims, GraphBuilder, readInputs, topological, type Graph, type Node } from '../../ir/graph.ts';
import { sizeOf } from '../../ir/shape.ts';
import { facts } from '../../ir/ops.ts';
import { walkGradient } from '../handle/gradient.ts';
import { bindStorage, freshParameter, storageOf } from '../handle/leaf.ts';
import { canonical, withTrace } from '../handle/recording.ts';
import { graphOf, graphKeyOf } from '../evaluate/graph-key.ts';
import type { StoredValue } from '../storage/storage.ts';
import type { Recorded } from '../tracing.ts';

/** By output of a traced function: the inputs that gradients of it flow to. */
export type Reach = readonly ReadonlySet<number>[];

/** Which inputs gradients of each output reach. */
export function reachOf({ outputs, inputs }: Recorded): Reach {
  return outputs.map((output) => {
    const found = new Set<number>();
    if (!isInexact(output.dtype)) return found;
    walkGradient([output], (node) => {
      const input = inputs.get(node);
      if (input !== undefined) found.add(input);
      return true;
    });
    return found;
  });
}

/** What calls with gradients run: the outputs, then what their derivatives keep. */
export interface KeptGraph {
  readonly graph: Graph;
  /** Nodes of the trace that the graph gives after the outputs. */
  readonly kept: readonly Node[];
}

/** The graph of a traced function that also gives what its derivative wants. */
export function keeping(recorded: Recorded, reach: Reach): KeptGraph {
  const kept = wanted(recorded, reach);
  const graphKey = graphKeyOf([...recorded.outputs, ...kept], (node) =>
    node.op === 'parameter' ? node : undefined,
  );
  return { graph: graphOf(graphKey, graphKey.outputs, () => undefined), kept };
}

/** Values that the derivative reads and that are better kept than computed again. */
function wanted({ trace, outputs, inputs }: Recorded, reach: Reach): Node[] {
  const roots = outputs.filter((_, i) => reach[i]!.size > 0);
  const places = new Set(reach.flatMap((set) => [...set]));
  const wrt = [...inputs].flatMap(([node, place]) => (places.has(place) ? [node] : []));
  const forward = new Set(topological(roots));
  const derivative = withTrace(trace, () => {
    const seeds = roots.map((root) => freshParameter({ dtype: root.dtype, shape: dims(root) }));
    try {
      return cotangents(trace.builder, roots, seeds, wrt).filter((node) => node !== undefined);
    } catch {
      // An operation without a derivative throws when it is differentiated; until then nothing need
      // be kept.
      return [];
    }
  });
  const given = new Set(outputs.map(canonical));
  const kept = new Set<Node>();
  const seen = new Set<Node>(derivative);
  for (const node of seen) {
    const value = canonical(node);
    if (forward.has(node) && (given.has(value) || (isExpensive(value) && kept.add(value)))) continue;
    for (const input of readInputs(node)) seen.add(input);
  }
  return [...kept];
}

/**
 * Whether computing a value again costs more than keeping it: not for elementwise operations, nor
 * for scores of attention.
 */
function isExpensive(node: Node): boolean {
  const kind = facts(node.op).class;
  if (kind === 'collective') return true;
  if (kind !== 'fusionRoot') return false;
  if (node.op !== 'dot' || node.attrs.lhsBatch.length === 0) return true;
  const size = (of: Node): number => sizeOf(dims(of));
  return size(node) <= size(node.inputs[0]!) + size(node.inputs[1]!);
}

/** The values of one call. */
export interface PastCall {
  readonly recorded: Recorded;
  readonly kept: readonly Node[];
  /** By input: what stands for it outside, with its own history. */
  readonly inputs: readonly Node[];
  /** By run-time scalar. */
  readonly scalars: readonly number[];
  /** The outputs, then what was kept. */
  readonly values: readonly StoredValue[];
}

/** By output: the node that stands for it outside, with the history of the call. */
export function pastOf({ recorded, kept, inputs, scalars, values }: PastCall): readonly Node[] {
  const b = new GraphBuilder();
  const made = new Map<Node, Node>();
  for (const node of topological(recorded.outputs)) {
    const input = recorded.inputs.get(node);
    const scalar = recorded.scalars.get(node);
    const operands = node.inputs.map((operand) => made.get(operand)!);
    if (input !== undefined) made.set(node, inputs[input]!);
    else if (scalar !== undefined) {
      const attrs = { value: scalars[scalar]!, dtype: node.dtype };
      made.set(node, b.add('constant', [], attrs) as Node);
    } else made.set(node, isDistinct(node) ? distinct(operands[0]!) : b.copy(node, operands));
  }
  const nodes = recorded.outputs.map((node) => made.get(node)!);
  [...nodes, ...kept.map((node) => made.get(node)!)].forEach((node, i) => {
    const at = canonical(node);
    if (storageOf(at) === undefined) bindStorage(at, values[i]!);
  });
  return nodes;
}
