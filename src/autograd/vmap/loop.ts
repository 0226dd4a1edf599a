// Batches a loop: one loop whose iterations compute all examples. A carry is mapped if it differs between
// examples, which may take a few tries to find out. The other carries stay single.

import { TensorError } from '../../errors.ts';
import { iterate, type Iteration } from '../../ir/control/iterate.ts';
import { graphOf, regionOf } from '../../ir/text/region.ts';
import { dims, GraphBuilder, rewrite, type Node, type NodeOf } from '../../ir/graph.ts';
import type { Region } from '../../ir/region.ts';
import { anyGuard, guardedRegion } from './guarded.ts';
import { lead, moveAxis, type Batch, type BatchedOperand, type Batching } from './rule.ts';

/** A loop for all examples, without its inputs. */
interface BatchedLoop {
  readonly attrs: Iteration;
  /** Which of the inputs lead with the batch. */
  readonly mapped: readonly boolean[];
  /** Which of the results do. */
  readonly results: readonly boolean[];
  /** Whether examples end at different iterations: then a common guard is the first carry. */
  readonly ends: boolean;
}

/** One result of a loop for all examples, the batch leading. */
export function loopOnBatch(
  batch: Batch,
  node: NodeOf<'iterate'>,
  operands: readonly BatchedOperand[],
  batching: Batching,
): Node {
  const { result, carries, stacked, guard } = node.attrs;
  operands.forEach((operand, place) => checkWhole(batch, operand, node.inputs[place]!));
  const given = operands.map(({ isMapped }) => isMapped);
  const { attrs, mapped, results, ends } = loopOf(batch, node, given, batching);
  const inputs = operands.map((operand, place) => {
    if (mapped[place] !== true) return operand.node;
    const whole = lead(batch, operand);
    const isStack = place >= carries && place < carries + stacked;
    return isStack ? moveAxis(batch.b, whole, 0, 1) : whole;
  });
  if (ends) inputs.unshift(anyGuard(batch.b, inputs[guard]!));
  const one = iterate(batch.b, inputs, attrs)[ends ? result + 1 : result]!;
  if (results[result] !== true) return lead(batch, { node: one, isMapped: false });
  return result < carries ? one : moveAxis(batch.b, one, 1, 0);
}

/**
 * What bodies became, by the loop around them and what was mapped. The results of a loop ask for the same loop, and so
 * do the tries of a loop around it: without this, each level of nested loops multiplies the work.
 */
const known = new WeakMap<Region, Map<string, BatchedLoop>>();

function loopOf(
  batch: Batch,
  node: NodeOf<'iterate'>,
  given: readonly boolean[],
  batching: Batching,
): BatchedLoop {
  const { result: _, body, ...form } = node.attrs;
  const loops = known.get(body) ?? new Map<string, BatchedLoop>();
  known.set(body, loops);
  const key = JSON.stringify([batch.size, given.map(Number), form, batch.together?.key]);
  const made = loops.get(key) ?? batchedLoop(batch, node, given, batching);
  loops.set(key, made);
  return made;
}

function batchedLoop(
  batch: Batch,
  node: NodeOf<'iterate'>,
  given: readonly boolean[],
  batching: Batching,
): BatchedLoop {
  const { result: _, ...attrs } = node.attrs;
  const { carries, guard } = attrs;
  const mapped = [...given];
  for (;;) {
    // What is known to end at different iterations differs.
    const ends = guard >= 0 && mapped[guard] === true;
    if (ends) mapped.fill(true, 0, carries);
    const { parameters, outputs, found } = regionOnBatch(batch, node, mapped, batching);
    const differs = [...found.keys()].filter(
      (at) => at < carries && found[at] !== undefined && mapped[at] !== true,
    );
    if (differs.length > 0) {
      for (const at of differs) mapped[at] = true;
      continue;
    }
    const results = found.map(
      (whole, at) => ends || (at < carries ? mapped[at] === true : whole !== undefined),
    );
    const inner = outputs.map((one, at) => {
      const whole = found[at];
      const each = { node: whole ?? one, isMapped: whole !== undefined };
      return results[at] === true ? lead({ b: parameters.b, size: batch.size }, each) : each.node;
    });
    const graph = { parameters: parameters.list, outputs: inner };
    if (!ends) return { attrs: { ...attrs, body: regionOf(graph) }, mapped, results, ends };
    const body = regionOf(guardedRegion(graph, carries, guard));
    return { attrs: { ...attrs, body, carries: carries + 1, guard: 0 }, mapped, results, ends };
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
