// Batches a loop: one loop whose iterations compute all examples. A carry is mapped if it differs between
// examples, which may take a few tries to find out. The other carries stay single.

import { TensorError } from '../../errors.ts';
import { iterate } from '../../ir/control/iterate.ts';
import { graphOf, regionOf } from '../../ir/text/region.ts';
import { dims, GraphBuilder, rewrite, type Node, type NodeOf } from '../../ir/graph.ts';
import { anyGuard, guardedRegion } from './guarded.ts';
import { lead, moveAxis, type Batch, type BatchedOperand, type Batching } from './rule.ts';

/** One result of a loop for all examples, the batch leading. */
export function loopOnBatch(
  batch: Batch,
  node: NodeOf<'iterate'>,
  operands: readonly BatchedOperand[],
  batching: Batching,
): Node {
  const { result, ...attrs } = node.attrs;
  const { carries, stacked, guard } = attrs;
  operands.forEach((operand, place) => checkWhole(batch, operand, node.inputs[place]!));
  const mapped = operands.map(({ isMapped }) => isMapped);
  // What is known to end at different iterations differs.
  const ends = (): boolean => guard >= 0 && mapped[guard] === true;
  for (;;) {
    const { parameters, outputs, found } = regionOnBatch(batch, node, mapped, batching);
    if (ends()) {
      const same = mapped.findIndex((isMapped, place) => place < carries && !isMapped);
      if (same >= 0) {
        mapped.fill(true, 0, carries);
        continue;
      }
    }
    const differs = found.findIndex(
      (whole, at) => at < carries && whole !== undefined && mapped[at] !== true,
    );
    if (differs >= 0) {
      mapped[differs] = true;
      continue;
    }
    const results = outputs.map((one, at): BatchedOperand => {
      const whole = found[at];
      return { node: whole ?? one, isMapped: whole !== undefined };
    });
    const inner = results.map((each, at) =>
      (at < carries && mapped[at] === true) || ends()
        ? lead({ b: parameters.b, size: batch.size }, each)
        : each.node,
    );
    const inputs = operands.map((operand, place) => {
      if (mapped[place] !== true) return operand.node;
      const whole = lead(batch, operand);
      const isStack = place >= carries && place < carries + stacked;
      return isStack ? moveAxis(batch.b, whole, 0, 1) : whole;
    });
    const graph = { parameters: parameters.list, outputs: inner };
    if (ends()) {
      const own = guardedRegion(graph, carries, guard);
      const first = anyGuard(batch.b, inputs[guard]!);
      const form = { ...attrs, body: regionOf(own), carries: carries + 1, guard: 0 };
      const one = iterate(batch.b, [first, ...inputs], form)[result + 1]!;
      return result < carries ? one : moveAxis(batch.b, one, 1, 0);
    }
    const one = iterate(batch.b, inputs, { ...attrs, body: regionOf(graph) })[result]!;
    const isMapped = result < carries ? mapped[result] === true : results[result]!.isMapped;
    if (!isMapped) return lead(batch, { node: one, isMapped });
    return result < carries ? one : moveAxis(batch.b, one, 1, 0);
  }
}

/** The numbers of a draw are only known for all examples outside of the loop. */
function checkWhole({ size }: Batch, { node, isMapped }: BatchedOperand, one: Node): void {
  const shape = dims(node);
  if (!isMapped || (shape.length === dims(one).length + 1 && shape[0] === size)) return;
  const problem = 'a loop inside draws random numbers of the generator for each example';
  const hint = "withKey(key, …) with a key of each example's, or randomness: 'same'";
  throw new TensorError('E_STATE', 'vmap', problem, hint);
}

/** The region with what is mapped for all examples: its parameters, its results for one, and those for all. */
function regionOnBatch(
  { size }: Batch,
  node: NodeOf<'iterate'>,
  mapped: readonly boolean[],
  batching: Batching,
): {
  readonly parameters: { readonly b: GraphBuilder; readonly list: readonly NodeOf<'parameter'>[] };
  readonly outputs: readonly Node[];
  readonly found: readonly (Node | undefined)[];
} {
  const graph = graphOf(node.attrs.body);
  const b = new GraphBuilder();
  const inside = new Map<Node, Node>();
  const tracers = new Map<Node, Node>();
  const list = graph.parameters.map((old, index) => {
    const { dtype, name } = old.attrs;
    const shape = dims(old as Node);
    // The counter leads; it is the same for every example.
    const isMapped = index > 0 && mapped[index - 1] === true;
    if (!isMapped) {
      const same = b.add('parameter', [], { index, name, dtype, shape });
      inside.set(old as Node, same as Node);
      return same;
    }
    // One example's is no parameter of the new region.
    const one = b.add('parameter', [], { index: graph.parameters.length + index, name, dtype, shape });
    const whole = b.add('parameter', [], { index, name, dtype, shape: [size, ...shape] });
    inside.set(old as Node, one as Node);
    tracers.set(one as Node, whole as Node);
    return whole;
  });
  const { outputs } = rewrite({ parameters: [], outputs: graph.outputs }, (old) => inside.get(old), b);
  return { parameters: { b, list }, outputs, found: batching(b, outputs, tracers, size) };
}
