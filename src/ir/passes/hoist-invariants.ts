// What every iteration of a loop would compute alike is computed once, before the loop: values that depend on nothing but the
// loop's invariants. A value is hoisted where an iteration has work with it and it is no larger than what it is made of.
// Views and small values stay: kernels compute them while they read.

import { regionOf, graphOf } from '../text/region.ts';
import { siblingKey } from '../control/iterate.ts';
import { Parameters } from '../control/parameters.ts';
import { isCarried } from '../typing/control.ts';
import {
  dims,
  GraphBuilder,
  nodeBytes,
  rewrite,
  topological,
  type Graph,
  type Node,
  type NodeOf,
} from '../graph.ts';
import { facts, isElementwise, type Op } from '../ops.ts';
import { sizeOf } from '../shape.ts';

/** Loops of fewer iterations gain nothing. */
const leastTrips = 4;

/** Smaller values are computed where they are read, unless that takes a loop. */
const leastElements = 64;

/** Rows of a product on cores for which turning the other side takes as long as multiplying. */
const fewRows = 64;

const hoistable: ReadonlySet<Op> = new Set<Op>([
  'constant',
  'iota',
  'reshape',
  'permute',
  'broadcast',
  'slice',
  'concat',
  'reduce',
  'argReduce',
  'dot',
]);

const isView = ({ op }: Node): boolean => op === 'reshape' || op === 'permute' || op === 'broadcast';

/**
 * Hoists invariants of all loops of the graph. With `turnsOperands`, products pack an operand whose neighbours do not lie
 * along its own axis; such an operand of a product of few rows is hoisted as it is read.
 */
export function hoistInvariants(graph: Graph, turnsOperands: boolean): Graph {
  const known = new Map<string, Hoisted | undefined>();
  return rewrite(graph, (node, inputs, b) => {
    if (node.op !== 'iterate') return undefined;
    const { attrs } = node;
    if (attrs.guard >= 0 || attrs.trips < leastTrips) return undefined;
    const moved = b.copy(node, inputs) as NodeOf<'iterate'>;
    const key = siblingKey(moved);
    if (!known.has(key)) known.set(key, hoisted(b, moved, turnsOperands));
    const found = known.get(key);
    return found && (b.add('iterate', found.inputs, { ...attrs, body: found.body }) as Node);
  });
}

/** A loop whose iterations read values that were hoisted. */
interface Hoisted {
  readonly inputs: readonly Node[];
  readonly body: NodeOf<'iterate'>['attrs']['body'];
}

function hoisted(b: GraphBuilder, loop: NodeOf<'iterate'>, turnsOperands: boolean): Hoisted | undefined {
  const { body, carries, stacked } = loop.attrs;
  const { parameters, outputs } = graphOf(body);
  const fixed = 1 + carries + stacked;
  const invariants = parameters.slice(fixed) as readonly NodeOf<'parameter'>[];
  const values = invariantsOf(outputs, invariants, turnsOperands);
  if (values.length === 0) return undefined;
  const outside = new Map(
    invariants.map((parameter, i) => [parameter as Node, loop.inputs[carries + stacked + i]!]),
  );
  const made = rewrite({ parameters: [], outputs: values }, (node) => outside.get(node), b).outputs;
  // The body reads what was hoisted, and of the invariants those that it still needs.
  const isHoisted = new Set(values);
  const needed = new Set(topological(outputs, (node) => isHoisted.has(node)));
  const kept = invariants.filter((parameter) => needed.has(parameter as Node));
  const inside = new GraphBuilder();
  const own = new Parameters(inside);
  const replaced = new Map<Node, Node>();
  for (const parameter of [...parameters.slice(0, fixed), ...kept] as readonly NodeOf<'parameter'>[])
    replaced.set(parameter as Node, own.like(parameter as Node, parameter.attrs.name));
  values.forEach((value, i) => replaced.set(value, own.like(value, `hoisted${i}`)));
  const results = rewrite({ parameters: [], outputs }, (node) => replaced.get(node), inside).outputs;
  const inputs = [
    ...loop.inputs.slice(0, carries + stacked),
    ...kept.map((parameter) => outside.get(parameter as Node)!),
    ...made,
  ];
  return { inputs, body: regionOf({ parameters: own.list, outputs: results }) };
}

/** The values to hoist out of a body, none of which is made of another. */
function invariantsOf(
  outputs: readonly Node[],
  invariants: readonly NodeOf<'parameter'>[],
  turnsOperands: boolean,
): readonly Node[] {
  const nodes = topological(outputs);
  const own = new Set<Node>(invariants as readonly Node[]);
  /** What a value is made of; undefined for what iterations differ in. */
  const sources = new Map<Node, ReadonlySet<Node>>();
  const worked = new Set<Node>();
  for (const node of nodes) {
    if (own.has(node)) sources.set(node, new Set([node]));
    const isPure = node.op !== 'parameter' && (isElementwise(node.op) || hoistable.has(node.op));
    const from = node.inputs.map((input) => sources.get(input));
    if (!isPure || from.includes(undefined)) continue;
    sources.set(node, new Set(from.flatMap((set) => [...set!])));
    const isWork = facts(node.op).flops > 0 && facts(node.op).class !== 'source';
    if (isWork || node.op === 'dot' || node.inputs.some((input) => worked.has(input))) worked.add(node);
  }
  const found = new Set<Node>();
  const visit = (value: Node): void => {
    if (found.has(value) || !worked.has(value)) return;
    if (isView(value)) return visit(value.inputs[0]!);
    const bytes = [...sources.get(value)!].reduce((sum, source) => sum + nodeBytes(source), 0);
    const isLoop = value.op === 'reduce' || value.op === 'argReduce' || value.op === 'dot';
    const isWorth = isLoop || sizeOf(dims(value)) >= leastElements;
    if (isCarried(value.dtype) && isWorth && nodeBytes(value) <= bytes) found.add(value);
    else for (const input of value.inputs) visit(input);
  };
  for (const node of nodes) {
    if (sources.has(node)) continue;
    for (const input of node.inputs) if (sources.has(input)) visit(input);
    const turned = turnsOperands && node.op === 'dot' ? turnedOperand(node, sources, own) : undefined;
    if (turned !== undefined) found.add(turned);
  }
  for (const output of outputs) if (sources.has(output)) visit(output);
  return nodes.filter((node) => found.has(node));
}

/** The operand of a product of few rows that is an invariant turned around. */
function turnedOperand(
  node: NodeOf<'dot'>,
  sources: ReadonlyMap<Node, ReadonlySet<Node>>,
  own: ReadonlySet<Node>,
): Node | undefined {
  const { lhsBatch, lhsContract, rhsContract } = node.attrs;
  const [lhs, rhs] = node.inputs as readonly [Node, Node];
  if (lhsBatch.length > 0 || rhs.op !== 'permute' || !own.has(rhs.inputs[0]!) || sources.has(lhs))
    return undefined;
  const rows = sizeOf(dims(lhs)) / lhsContract.reduce((size, axis) => size * dims(lhs)[axis]!, 1);
  const last = dims(rhs).length - 1;
  const isAlongRows = !rhsContract.includes(last) && rhs.attrs.order[last] !== last;
  return dims(rhs).length === 2 && isAlongRows && rows > 1 && rows <= fewRows ? rhs : undefined;
}
