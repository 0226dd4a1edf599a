// Derivatives that users define. The value of a `customVjp` node is its first input, `value`. In the
// backward pass nothing flows into `value`; the registered rule gives the cotangents of the other inputs,
// the arguments. A function with several results has a node for each of them, which has all values behind
// the arguments, so that one call of the rule serves all results. Nodes hold plain data only, so they name
// the rule by a number (ir/named/rule.ts). The rule is collected with the last node that names it and the
// function that it was made for.

import { TensorError } from '../errors.ts';
import { fullLike } from '../ir/build.ts';
import { NamedRule, ruleNamed } from '../ir/named/rule.ts';
import { sameShape } from '../ir/shape.ts';
import { showType } from '../ir/infer.ts';
import { readInputs, topological, type GraphBuilder, type Node, type NodeOf } from '../ir/graph.ts';
import type { VjpRule } from './cotangent.ts';

type Some = readonly (Node | undefined)[];

/**
 * Cotangents of `args` from the cotangent `g` of the result: one node of the argument's dtype and
 * shape each, or undefined for none. `value` is the customVjp node itself, so a second derivative
 * through it follows the same rule. Arguments that are not `wanted` may be left undefined.
 */
export type CustomRule = (
  b: GraphBuilder,
  args: readonly Node[],
  value: Node,
  g: Node,
  wanted: readonly boolean[],
) => Some;

/** A derivative of a function with one or more results. */
export interface Custom {
  /** How many results there are. */
  readonly results: number;
  /** Cotangents of the arguments from those of all results, as `CustomRule`. */
  readonly pull: (
    b: GraphBuilder,
    args: readonly Node[],
    values: readonly Node[],
    gs: readonly Node[],
    wanted: readonly boolean[],
  ) => Some;
  /**
   * Tangents of the results from those of the arguments, at least one of which is there; without
   * it tangents are those of `pull`, transposed.
   */
  readonly push?: (b: GraphBuilder, args: readonly Node[], values: readonly Node[], tangents: Some) => Some;
  /** It is read off the graph of the values, and so serves a batch of them as it is. */
  readonly isOfGraph?: true;
}

/**
 * A derivative that nodes can name, by a number for each result of its function. Whoever is going to
 * make nodes of it later holds it until then.
 */
export class Derivative extends NamedRule {
  readonly custom: Custom;

  constructor(custom: Custom) {
    super(custom.results);
    this.custom = custom;
  }

  /** The node of a result: its value, and behind it what the derivative is given. */
  node(b: GraphBuilder, inputs: readonly Node[], result: number = 0): Node {
    return b.add('customVjp', inputs, { rule: this.numbers[result]! }) as Node;
  }
}

const known = new WeakMap<CustomRule, Derivative>();

/** The derivative of a function with one result; the same rule always has the same one. */
export function derivativeBy(rule: CustomRule): Derivative {
  const before = known.get(rule);
  if (before !== undefined) return before;
  const pull: Custom['pull'] = (b, args, [value], [g], wanted) => rule(b, args, value!, g!, wanted);
  const made = new Derivative({ results: 1, pull });
  known.set(rule, made);
  return made;
}

/** What a number stands for: a result of a function. */
export interface CustomEntry {
  readonly derivative: Derivative;
  readonly custom: Custom;
  readonly result: number;
  /** The numbers of all results. */
  readonly numbers: readonly number[];
}

/** What this number stands for. Throws E_GRAD when there is nothing, as for a graph read from a file. */
export function customOf(number: number): CustomEntry {
  const derivative = ruleNamed(number);
  if (derivative instanceof Derivative) {
    const { custom, numbers } = derivative;
    return { derivative, custom, result: number - numbers[0]!, numbers };
  }
  throw new TensorError('E_GRAD', 'customVjp', `no rule ${number} is registered in this process`);
}

/** The inputs of nodes for results with these values, and the place of the arguments in them. */
export function customInputs(value: Node, args: readonly Node[], values: readonly Node[]): readonly Node[] {
  return values.length === 1 ? [value, ...args] : [value, ...args, ...values];
}

/** How many of the inputs behind the value are arguments. */
export function argumentCount({ inputs, attrs }: NodeOf<'customVjp'>): number {
  const { results } = customOf(attrs.rule).custom;
  return inputs.length - 1 - (results === 1 ? 0 : results);
}

/**
 * The inputs that a derivative flows through: of a function with a rule the arguments, since its
 * values are what the rule stands in for, and may be made of what has no derivative.
 */
export function derivedInputs(node: Node): readonly Node[] {
  return node.op === 'customVjp' ? node.inputs.slice(1, 1 + argumentCount(node)) : readInputs(node);
}

/**
 * Nodes whose graphs were cut: parameters now stand for values that were computed behind the results of functions. A
 * derivative that is read off the graph of the results flows to arguments only, so these parameters become arguments too.
 * (In the body of a loop, `checkpoint` of a function that reads w as sin(w) has the argument w. The loop computes
 * sin(w) outside, once, so the body has parameters for both.)
 */
export function withCutArguments(b: GraphBuilder, nodes: readonly Node[]): readonly Node[] {
  const order = topological(nodes);
  if (!order.some((node) => node.op === 'customVjp' && customOf(node.attrs.rule).custom.isOfGraph === true))
    return nodes;
  const made = new Map<Node, Node>();
  for (const node of order) {
    const inputs = node.inputs.map((input) => made.get(input)!);
    const next = inputs.every((input, i) => input === node.inputs[i]) ? node : b.copy(node, inputs);
    made.set(node, next.op === 'customVjp' ? withCut(b, next) : next);
  }
  return nodes.map((node) => made.get(node)!);
}

function withCut(b: GraphBuilder, node: NodeOf<'customVjp'>): Node {
  const { custom, derivative, result } = customOf(node.attrs.rule);
  if (custom.isOfGraph !== true) return node as Node;
  const count = argumentCount(node);
  const args = node.inputs.slice(1, 1 + count);
  const own = new Set(args);
  const values = custom.results === 1 ? node.inputs.slice(0, 1) : node.inputs.slice(1 + count);
  const reached = topological(values, (at) => own.has(at));
  const isCut = (at: Node): boolean => at.op === 'parameter' && !own.has(at);
  if (!reached.some(isCut)) return node as Node;
  const read = reached.filter((at) => own.has(at) || isCut(at));
  return derivative.node(b, customInputs(node.inputs[0]!, read, values), result);
}

/** The nodes of all results of the function that a node is one of. */
export function siblings(b: GraphBuilder, node: NodeOf<'customVjp'>): readonly Node[] {
  const { custom, derivative } = customOf(node.attrs.rule);
  if (custom.results === 1) return [node as Node];
  const rest = node.inputs.slice(1);
  return rest.slice(-custom.results).map((value, i) => derivative.node(b, [value, ...rest], i));
}

/**
 * Cotangents of the inputs of a node, from those of all results of its function: the user's, with
 * what it gives checked.
 */
export function pullCustom(
  b: GraphBuilder,
  node: NodeOf<'customVjp'>,
  cotangents: Some,
  wanted: readonly boolean[],
): Some {
  const count = argumentCount(node);
  const args = node.inputs.slice(1, 1 + count);
  const { custom } = customOf(node.attrs.rule);
  const values = siblings(b, node);
  const gs = values.map((value, i) => cotangents[i] ?? fullLike(b, value, 0));
  const given = custom.pull(b, args, values, gs, wanted.slice(1, 1 + count));
  if (given.length !== args.length) {
    throw new TensorError(
      'E_GRAD',
      'customVjp',
      `the rule gave ${given.length} cotangent(s) for ${args.length} argument(s)`,
    );
  }
  given.forEach((cotangent, i) => {
    const arg = args[i]!;
    if (cotangent === undefined) return;
    if (cotangent.dtype !== arg.dtype || !sameShape(cotangent.shape, arg.shape)) {
      const problem = `argument ${i} is ${showType(arg)}, but its cotangent ${showType(cotangent)}`;
      throw new TensorError('E_GRAD', 'customVjp', problem);
    }
  });
  return [undefined, ...given, ...node.inputs.slice(1 + count).map(() => undefined)];
}

/** The rule of customVjp nodes, for a cotangent of this result alone. */
export const customRule: VjpRule<'customVjp'> = (b, node, g, wanted) => {
  const { custom, result } = customOf(node.attrs.rule);
  const gs = Array.from({ length: custom.results }, (_, i) => (i === result ? g : undefined));
  return pullCustom(b, node, gs, wanted);
};
