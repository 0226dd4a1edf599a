// Forward rules from reverse ones. A reverse rule is a linear function of the cotangent g,
// g ↦ Jᵀ·g, recorded as primitives. Differentiating that function backwards with respect to g, with
// the tangents for its cotangents, gives (Jᵀ)ᵀ·t = J·t. (J. Townsend, "A new trick for calculating
// Jacobian vector products", 2017.) Its value does not depend on g, which only has to be there.

import { TensorError } from '../../errors.ts';
import { isInexact } from '../../ir/dtype.ts';
import { full } from '../../ir/build.ts';
import { placesRead } from '../../ir/control/results.ts';
import { dims, readInputs, topological, type GraphBuilder, type Node } from '../../ir/graph.ts';
import { ruleFor } from '../rules.ts';
import { variable } from '../variable.ts';
import { cotangents } from '../vjp.ts';
import type { Tangents } from './rule.ts';

/**
 * The tangent of a node by the transpose of its reverse rule. Throws E_GRAD where the rule of a
 * `customVjp` is not linear in the cotangent.
 */
export function transposed(b: GraphBuilder, node: Node, tangents: Tangents): Node | undefined {
  const rule = ruleFor(node);
  if (rule === 'flat') return undefined;
  const wanted = tangents.map((tangent) => tangent !== undefined);
  return transposeOf(b, node.op, [node], [true], tangents, ([g]) => rule(b, node as never, g!, wanted))[0];
}

/**
 * Cotangents of the inputs of a linear function, from seeds of its results; undefined of those that
 * are not wanted. The function is called on nodes like `inputs`, or undefined. Throws E_GRAD where
 * it is not linear.
 */
export function transposeOf(
  b: GraphBuilder,
  op: string,
  inputs: readonly Node[],
  wanted: readonly boolean[],
  seeds: Tangents,
  linear: (inputs: Tangents) => Tangents,
): (Node | undefined)[] {
  const variables = inputs.map((input, i) => (wanted[i] === true ? variable(input) : undefined));
  const results = linear(variables);
  const paths = results.flatMap((result, i) => {
    const seed = seeds[i];
    return result === undefined || seed === undefined || !isInexact(result.dtype) ? [] : [{ result, seed }];
  });
  const present = variables.filter((node) => node !== undefined);
  const found = cotangents(
    b,
    paths.map(({ result }) => result),
    paths.map(({ seed }) => seed),
    present,
  );
  const free = found.map((node) => node && independent(b, op, node, present));
  let next = 0;
  return variables.map((node) => (node === undefined ? undefined : free[next++]));
}

/**
 * A value that has these variables nowhere behind it: nothing in it waits for them, or hands them to loops whose results
 * do not depend on them. Throws E_GRAD where it depends on what it should be linear in.
 */
function independent(b: GraphBuilder, op: string, value: Node, variables: readonly Node[]): Node {
  const oldest = Math.min(...variables.map(({ id }) => id));
  const behind = new Set<Node>(variables);
  const made = new Map<Node, Node>();
  for (const node of topological([value], (at) => at.id <= oldest)) {
    const inputs = node.inputs.map((input) => made.get(input) ?? input);
    const places = node.op === 'iterate' ? placesRead(node) : new Set(readInputs(node).keys());
    if (inputs.some((input, place) => behind.has(input) && places.has(place))) behind.add(node);
    else if (inputs.some((input) => behind.has(input)))
      made.set(node, withoutUnread(b, node, inputs, places, behind));
    else if (inputs.some((input, place) => input !== node.inputs[place]))
      made.set(node, b.copy(node, inputs));
  }
  if (!behind.has(value)) return made.get(value) ?? value;
  const [from, hint] =
    op === 'customJvp'
      ? ['the tangents', 'customVjp with a rule for cotangents, or a rule that is linear']
      : ['the cotangent of the result', 'customJvp with a rule for tangents, or a rule that is linear'];
  const problem = `the rule is not linear in ${from}, so it says nothing of the other direction`;
  throw new TensorError('E_GRAD', op, problem, hint);
}

/** The node with other inputs: those that it does not read it need not have. */
function withoutUnread(
  b: GraphBuilder,
  node: Node,
  inputs: readonly Node[],
  places: ReadonlySet<number>,
  behind: ReadonlySet<Node>,
): Node {
  if (node.op === 'barrier') return inputs[0]!;
  if (node.op !== 'iterate') return b.copy(node, inputs.slice(0, places.size));
  return b.copy(
    node,
    inputs.map((input) => (behind.has(input) ? full(b, dims(input), 0, input.dtype) : input)),
  );
}
