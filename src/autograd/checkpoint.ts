// Rematerialisation in derivatives (Chen et al., Training Deep Nets with Sublinear Memory Cost, 2016).
// The results of a checkpointed function are customVjp nodes over the values that the function reads. The
// backward pass computes the function again from these arguments. Barriers separate the second computation
// from the first and let it begin only when the cotangent of the results is there. Between the two passes
// memory holds only the arguments, and the values that a policy keeps. The rule reads all this off the
// graph of the values, so it also works after other transforms.

import { GraphBuilder, topological, type Node } from '../ir/graph.ts';
import { isInexact } from '../ir/dtype.ts';
import { onBehalf } from '../ir/origin/origin.ts';
import { Derivative, type Custom } from './custom.ts';
import { uniform } from './cotangent.ts';
import { tangents as tangentsOf } from './jvp/jvp.ts';
import { variable } from './variable.ts';
import { cotangents } from './vjp.ts';

/** Whether the result of a node is kept for the derivative instead of being computed again. */
export type Keeps = (node: Node) => boolean;

/** The derivative by which so many results are computed again but for what is kept. */
export function checkpointDerivative(results: number, keeps: Keeps): Derivative {
  return new Derivative(checkpointed(results, keeps));
}

function checkpointed(results: number, keeps: Keeps): Custom {
  return {
    results,
    isOfGraph: true,
    pull: (b, args, values, gs, wanted) => {
      const region = regionOf(b, args, values, keeps);
      const floats = values.flatMap(({ dtype }, i) => (isInexact(dtype) ? [i] : []));
      const wrt = args.flatMap((_, i) => (wanted[i] === true ? [i] : []));
      const found = cotangents(
        b,
        floats.map((i) => region.results[i]!),
        floats.map((i) => gs[i]!),
        wrt.map((i) => region.variables[i]!),
      );
      const event = latest(floats.map((i) => gs[i]!)) ?? latest(values) ?? values[0]!;
      const behind = (node: Node): Node => b.add('barrier', [node, event], {}) as Node;
      const placed = substituted(b, found, region, behind);
      const result: (Node | undefined)[] = args.map(() => undefined);
      wrt.forEach((i, k) => (result[i] = placed[k]));
      return result;
    },
    push: (b, args, values, given) => {
      const region = regionOf(b, args, values, () => false);
      const wrt = given.flatMap((tangent, i) => (tangent === undefined ? [] : [i]));
      const found = tangentsOf(
        b,
        region.results,
        wrt.map((i) => region.variables[i]!),
        wrt.map((i) => given[i]!),
      );
      return substituted(b, found, region, (node) => node);
    },
  };
}

/** The youngest of some nodes, but for those that are the same everywhere whatever is computed. */
function latest(nodes: readonly Node[]): Node | undefined {
  const computed = nodes.filter((node) => uniform(node) === undefined);
  return computed.length === 0 ? undefined : computed.reduce((a, b) => (b.id > a.id ? b : a));
}

/** A function's graph, over nodes of which nothing is known. */
interface Region {
  /** Older than all nodes of the region. */
  readonly start: number;
  /** By argument: what stands for it. */
  readonly variables: readonly Node[];
  readonly results: readonly Node[];
  /** What stands for arguments, and results of the region that are kept: what they stand for. */
  readonly standsFor: ReadonlyMap<Node, { readonly node: Node; readonly isKept: boolean }>;
}

function regionOf(b: GraphBuilder, args: readonly Node[], values: readonly Node[], keeps: Keeps): Region {
  const standsFor = new Map<Node, { readonly node: Node; readonly isKept: boolean }>();
  const variables = args.map((node) => {
    const made = variable(node);
    standsFor.set(made, { node, isKept: false });
    return made;
  });
  const start = Math.min(...variables.map(({ id }) => id), Infinity);
  const made = new Map(args.map((node, i) => [node, variables[i]!]));
  // The value of such a node is its first input; the node itself is what the region stands for.
  const inner = values.map(({ inputs }) => inputs[0]!);
  const words = new Map<Node, Node>();
  for (const node of topological(inner, (at) => made.has(at))) {
    if (made.has(node)) continue;
    let inputs = node.inputs.map((input) => made.get(input)!);
    let isSame = inputs.every((input, i) => input === node.inputs[i]);
    if (node.op === 'randomBits' && isSame) [inputs, isSame] = [apart(inputs, words, standsFor), false];
    const next = isSame ? node : onBehalf('rewrite', node, () => b.copy(node, inputs));
    made.set(node, next);
    if (next !== node && keeps(node)) standsFor.set(next, { node, isKept: true });
  }
  return { start, variables, results: inner.map((node) => made.get(node)!), standsFor };
}

/**
 * Random numbers are drawn again from the same counter, which is what tells the second draw from
 * the first.
 */
function apart(
  inputs: readonly Node[],
  words: Map<Node, Node>,
  standsFor: Map<Node, { readonly node: Node; readonly isKept: boolean }>,
): Node[] {
  const [first, ...rest] = inputs as readonly [Node, ...Node[]];
  const word = words.get(first) ?? variable(first);
  words.set(first, word);
  standsFor.set(word, { node: first, isKept: false });
  return [word, ...rest];
}

/** Nodes that were made of a region, over what its variables stand for. */
function substituted(
  b: GraphBuilder,
  nodes: readonly (Node | undefined)[],
  { start, standsFor }: Region,
  behind: (node: Node) => Node,
): (Node | undefined)[] {
  const made = new Map<Node, Node>();
  const isEnd = (node: Node): boolean => node.id < start || standsFor.has(node);
  const roots = nodes.filter((node) => node !== undefined);
  for (const node of topological(roots, isEnd)) {
    const stood = standsFor.get(node);
    if (stood !== undefined) made.set(node, stood.isKept ? stood.node : behind(stood.node));
    else if (node.id < start) made.set(node, node);
    else {
      const inputs = node.inputs.map((input) => made.get(input)!);
      const isSame = inputs.every((input, i) => input === node.inputs[i]);
      made.set(node, isSame ? node : onBehalf('rewrite', node, () => b.copy(node, inputs)));
    }
  }
  return nodes.map((node) => node && made.get(node));
}
