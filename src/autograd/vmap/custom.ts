// Batches nodes that have a derivative of their own. Their rule is for one example. When a derivative is
// taken, what the rule gives is batched too; the batched node names that as its rule.

import { mul, reduce } from '../../ir/build.ts';
import { isInexact } from '../../ir/dtype.ts';
import type { GraphBuilder, Node, NodeOf } from '../../ir/graph.ts';
import { WeakValues } from '../../ir/named/weak-values.ts';
import { argumentCount, customOf, Derivative, type Custom } from '../custom.ts';
import { variable } from '../variable.ts';
import { lead, type Batch, type BatchedOperand, type Batching } from './rule.ts';

/** The node for a batch. */
export function customOnBatch(
  batch: Batch,
  node: NodeOf<'customVjp'>,
  operands: readonly BatchedOperand[],
  batching: Batching,
): Node {
  const count = argumentCount(node);
  const [value, ...rest] = operands;
  const args = rest.slice(0, count);
  const mapped = args.map(({ isMapped }) => isMapped);
  // Values lead, so that those of all results go with one rule.
  const values = rest.slice(count).map((each) => lead(batch, each));
  const inputs = [lead(batch, value!), ...args.map(({ node: arg }) => arg), ...values];
  const { derivative, custom, result } = customOf(node.attrs.rule);
  const own = custom.isOfGraph === true ? derivative : batched(derivative, batch, mapped, batching);
  return own.node(batch.b, inputs, result);
}

/** Of derivatives of one example, those of batches, which go with the nodes that name them. */
const known = new WeakMap<Derivative, WeakValues<string, Derivative>>();

/** The derivative for a batch, where some of the arguments are mapped. */
function batched(
  one: Derivative,
  { size, together }: Batch,
  mapped: readonly boolean[],
  batching: Batching,
): Derivative {
  const batches = known.get(one) ?? new WeakValues<string, Derivative>();
  known.set(one, batches);
  const key = `${size} ${mapped.map(Number).join('')} ${together?.key ?? ''}`;
  return batches.getOrMake(key, () => new Derivative(onBatch(one.custom, size, mapped, batching)));
}

/** The derivative of a batch, from that of one example. */
function onBatch(
  { results, pull, push }: Custom,
  size: number,
  mapped: readonly boolean[],
  batching: Batching,
): Custom {
  /** Calls a rule on one example of each value. */
  const each = (
    b: GraphBuilder,
    call: (example: (node: Node) => Node) => readonly (Node | undefined)[],
  ): (BatchedOperand | undefined)[] => {
    const tracers = new Map<Node, Node>();
    const given = call((node) => {
      const one = variable({ dtype: node.dtype, shape: node.shape.slice(1) });
      tracers.set(one, node);
      return one;
    });
    const present = given.filter((node) => node !== undefined);
    const wholes = batching(b, present, tracers, size);
    let next = 0;
    return given.map((node) => {
      if (node === undefined) return undefined;
      const whole = wholes[next++];
      return { node: whole ?? node, isMapped: whole !== undefined };
    });
  };
  const whole: Custom = {
    results,
    pull: (b, args, values, gs, wanted) =>
      each(b, (example) =>
        pull(
          b,
          args.map((node, i) => (mapped[i] === true ? example(node) : node)),
          values.map(example),
          gs.map(example),
          wanted,
        ),
      ).map((found, i) => {
        if (found === undefined) return undefined;
        return mapped[i] === true ? lead({ b, size }, found) : summed(b, found, size);
      }),
  };
  if (push === undefined) return whole;
  return {
    ...whole,
    push: (b, args, values, tangents) =>
      each(b, (example) =>
        push(
          b,
          args.map((node, i) => (mapped[i] === true ? example(node) : node)),
          values.map(example),
          tangents.map((node, i) => (node === undefined || mapped[i] !== true ? node : example(node))),
        ),
      ).map((found) => found && lead({ b, size }, found)),
  };
}

/** What an argument that all examples share gets from all of them. */
function summed(b: GraphBuilder, { node, isMapped }: BatchedOperand, size: number): Node {
  if (isMapped) return reduce(b, 'sum', node, [0]);
  return isInexact(node.dtype) ? mul(b, node, size) : node;
}
