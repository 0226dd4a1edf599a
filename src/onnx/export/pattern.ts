// Whether a node is what an operation would have recorded: the operation is traced on stand-ins of
// the operands' types, made canonical like the graph, and laid over it node by node. So a pattern
// can never differ from the operation.

import { constantOf } from '../../ir/passes/pattern.ts';
import { facts } from '../../ir/ops.ts';
import { sameAttrs, type Graph, type Node } from '../../ir/graph.ts';
import { sameShape } from '../../ir/shape.ts';
import { zeros } from '../../tensor/ops/creation/creation.ts';
import type { Tensor } from '../../tensor/tensor.ts';
import { traceFunction } from '../../tensor/tracing.ts';
import { canonical } from './canonical.ts';
import type { Val } from './emitter.ts';

/** A call of an operation that a node may be the result of. */
export interface Candidate {
  /** The operation with its settings: calls of one key on equal types record the same. */
  readonly key: string;
  readonly operands: readonly Pick<Val, 'dtype' | 'shape'>[];
  readonly call: (...operands: Tensor[]) => Tensor;
}

interface Pattern {
  readonly graph: Graph;
  /**
   * Which operand each parameter stands for: graphs have them in the order in which they are met.
   */
  readonly places: readonly number[];
}

/** Traced candidates by what decides them. */
export type Patterns = Map<string, Pattern>;

function patternOf({ operands, call }: Candidate): Pattern {
  const { graph, inputs } = traceFunction(
    call,
    operands.map(({ dtype, shape }) => zeros(shape, { dtype })),
  );
  const places = inputs.map(({ origin }) => (origin.kind === 'argument' ? origin.leaf : -1));
  return { graph: canonical(graph), places };
}

/** The operands of the call whose result this node is; undefined where it is of no such call. */
export function operandsOf(
  node: Node,
  candidate: Candidate,
  patterns: Patterns,
): readonly Node[] | undefined {
  const types = candidate.operands.map(({ dtype, shape }) => `${dtype}[${shape.join()}]`);
  const key = `${candidate.key} ${types.join()}`;
  const pattern = patterns.get(key) ?? patternOf(candidate);
  patterns.set(key, pattern);
  const { graph, places } = pattern;
  // With some settings an operation is a simpler one, or none.
  if (graph.outputs[0]!.op !== node.op) return undefined;
  const bound = new Map<Node, Node>();
  if (!fits(graph.outputs[0]!, node, bound)) return undefined;
  const found = candidate.operands.map((_, operand) => {
    const parameter = graph.parameters[places.indexOf(operand)];
    return parameter === undefined ? undefined : bound.get(parameter as Node);
  });
  return found.every((one) => one !== undefined) ? found : undefined;
}

/** Lays a pattern over a node; binds the pattern's nodes to those under them. */
function fits(pattern: Node, node: Node, bound: Map<Node, Node>): boolean {
  const known = bound.get(pattern);
  if (known !== undefined) return known === node;
  if (pattern.dtype !== node.dtype || !sameShape(pattern.shape, node.shape)) return false;
  if (pattern.op === 'parameter') {
    bound.set(pattern, node);
    return true;
  }
  const constant = constantOf(pattern);
  if (constant !== undefined) return Object.is(constant, constantOf(node));
  if (pattern.op !== node.op || pattern.inputs.length !== node.inputs.length) return false;
  if (!sameAttrs(pattern.attrs, node.attrs)) return false;
  const before = new Map(bound);
  if (pattern.inputs.every((input, i) => fits(input, node.inputs[i]!, bound))) {
    bound.set(pattern, node);
    return true;
  }
  if (facts(pattern.op).commutative !== true) return false;
  bound.clear();
  for (const [from, to] of before) bound.set(from, to);
  const [x, y] = [pattern.inputs[0]!, pattern.inputs[1]!];
  return fits(x, node.inputs[1]!, bound) && fits(y, node.inputs[0]!, bound);
}
