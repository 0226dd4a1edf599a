// Rules of users are called for the body of a loop when the loop is differentiated. What they read that is
// neither an argument nor made of arguments comes from outside: the derived loop takes it as an invariant.

import { TensorError } from '../errors.ts';
import { purposeOf } from '../ir/build.ts';
import { kept, keptType, unkept } from '../ir/control/kept.ts';
import type { Parameters } from '../ir/control/parameters.ts';
import { withCutArguments } from './custom.ts';
import { dims, topological, type GraphBuilder, type Node } from '../ir/graph.ts';

/** A parameter of the body, and the value outside that it stands for. */
export interface Invariant {
  readonly parameter: Node;
  readonly value: Node;
}

/**
 * What rules gave in a body, over its parameters only: those that it has, and new ones for what
 * rules read from outside, whose values are made by `outer`. Throws E_STATE where a rule draws random
 * numbers without a key: all iterations would draw the same.
 */
export function overParameters(
  outer: GraphBuilder,
  inner: GraphBuilder,
  parameters: Parameters,
  given: readonly (Node | undefined)[],
): { readonly given: readonly (Node | undefined)[]; readonly invariants: readonly Invariant[] } {
  const own = new Set(parameters.list as readonly Node[]);
  const [first] = own;
  // Ids grow: what is older than the body was made outside, and so were the leaves that a rule makes.
  const isOlder = (node: Node): boolean => first !== undefined && node.id < first.id;
  const isOutside = (node: Node): boolean =>
    node.op === 'parameter' ? !own.has(node) : isOlder(node) && node.inputs.length > 0;
  const roots = given.filter((node) => node !== undefined);
  const nodes = topological(roots, isOutside);
  const outside = nodes.filter(isOutside);
  if (nodes.some((node) => !isOutside(node) && drawsByGenerator(node, own)))
    throw new TensorError(
      'E_STATE',
      'grad',
      'a rule of a derivative draws random numbers, which would be the same in every iteration of the loop around it',
      'draw them before the loop, and pass them to the function as an argument; or draw with a key that is an argument',
    );
  if (outside.length === 0) return { given, invariants: [] };
  const again = new Map<Node, Node>();
  const invariants = outside.map((node, i): Invariant => {
    const { dtype, shape } = keptType({ dtype: node.dtype, shape: dims(node) });
    const parameter = parameters.add(`outside${i}`, dtype, shape);
    again.set(node, unkept(inner, parameter, node.dtype));
    return { parameter, value: kept(outer, node) };
  });
  for (const node of nodes) {
    if (again.has(node)) continue;
    const inputs = node.inputs.map((input) => again.get(input)!);
    const isSame = inputs.every((input, i) => input === node.inputs[i]);
    again.set(node, isSame ? node : inner.copy(node, inputs));
  }
  const over = new Map(roots.map((root) => [root, again.get(root)!]));
  const whole = withCutArguments(inner, [...over.values()]);
  [...over.keys()].forEach((root, i) => over.set(root, whole[i]!));
  return { given: given.map((node) => node && over.get(node)), invariants };
}

/** The words of a key are parts of it; those of the generator are leaves, which other draws get anew. */
function drawsByGenerator({ op, inputs: [word] }: Node, own: ReadonlySet<Node>): boolean {
  if (op !== 'randomBits' || word === undefined) return false;
  return word.op === 'parameter' ? !own.has(word) : purposeOf(word) !== undefined;
}
