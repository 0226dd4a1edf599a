// Linear functions that outlive the call that made them: what `vjp` and `linearize` return. Called in the
// recording that made it, such a function applies its rules there. Called in another one (a compiled
// function, the body of a loop), it is first recorded once, in the recording that made it, over parameters
// for its linear arguments. Everything else that it reads is captured like any tensor, and the rest is copied
// into the recording of the caller. JAX calls this the linear jaxpr with its residuals.

import { TensorError } from '../../errors.ts';
import { distinct, isDistinct } from '../../ir/build.ts';
import { topological, type Node } from '../../ir/graph.ts';
import type { Handle } from '../handle/handle.ts';
import { freshParameter } from '../handle/leaf.ts';
import {
  builder,
  currentMapping,
  currentTrace,
  isFree,
  nodeFor,
  withGrad,
  withMapping,
  withTrace,
} from '../handle/recording.ts';
import { handleOf } from '../tensor.ts';
import { result } from './result.ts';

/** A linear function of nodes; undefined of a result that nothing flows to. */
export type LinearMap = (inputs: readonly Node[]) => readonly (Node | undefined)[];

/** A linear function as it was recorded at home. */
interface Recorded {
  readonly parameters: readonly Node[];
  readonly results: readonly (Node | undefined)[];
  /** The nodes that depend on the parameters, inputs first. */
  readonly order: readonly Node[];
  /** What these read besides. */
  readonly residuals: ReadonlyMap<Node, Handle>;
}

/**
 * The function for whatever recording it is called in. `linear` records on the builder of the
 * moment, over nodes of this recording. The result throws E_STATE where its home has ended.
 */
export function linearFunction(op: string, linear: LinearMap): LinearMap {
  const home = currentTrace();
  const mapping = currentMapping();
  let known: Recorded | undefined;
  return (inputs) => {
    const here = currentTrace();
    if (here === home) return linear(inputs);
    if (here?.encloses(home) !== true) {
      const problem = `a function that ${op} gave exists only inside the compiled function that called ${op}`;
      throw new TensorError('E_STATE', op, problem, `${op} outside, or what its function gives as a result`);
    }
    known ??= withTrace(home, () =>
      withMapping(mapping, () => withGrad(true, () => recorded(linear, inputs))),
    );
    return laid(known, inputs);
  };
}

function recorded(linear: LinearMap, like: readonly Node[]): Recorded {
  const parameters = like.map(({ dtype, shape }) =>
    freshParameter({ dtype, shape: shape as readonly number[] }),
  );
  const results = linear(parameters);
  const depends = new Set(parameters);
  const order: Node[] = [];
  const residuals = new Map<Node, Handle>();
  const untracked = new Set<Node>();
  for (const node of topological(results.filter((node) => node !== undefined))) {
    if (!node.inputs.some((input) => depends.has(input))) continue;
    depends.add(node);
    order.push(node);
    for (const input of node.inputs) {
      if (depends.has(input) || residuals.has(input) || isFree(input)) continue;
      residuals.set(input, handleOf(result(input, untracked)));
    }
  }
  return { parameters, results, order, residuals };
}

/** The function laid into the current recording. */
function laid(
  { parameters, results, order, residuals }: Recorded,
  inputs: readonly Node[],
): (Node | undefined)[] {
  const b = builder();
  const made = new Map<Node, Node>(parameters.map((parameter, i) => [parameter, inputs[i]!]));
  /** What is captured, and what is made of nothing. */
  const outside = (node: Node): Node => {
    const known = made.get(node);
    if (known !== undefined) return known;
    const residual = residuals.get(node);
    const found = residual === undefined ? b.copy(node, node.inputs.map(outside)) : nodeFor(residual);
    made.set(node, found);
    return found;
  };
  for (const node of order) {
    const operands = node.inputs.map(outside);
    made.set(node, isDistinct(node) ? distinct(operands[0]!) : b.copy(node, operands));
  }
  // A result that does not depend on what the function is linear in is 0.
  return results.map((node) => (node === undefined ? undefined : made.get(node)));
}
