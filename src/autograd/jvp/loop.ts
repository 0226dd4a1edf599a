// The tangent of a loop is a loop that also carries tangents: it reads the tangents of slices, and returns
// those of its results.

import { fullLike } from '../../ir/build.ts';
import { inputsOf, iterate } from '../../ir/control/iterate.ts';
import { graphOf, regionOf } from '../../ir/text/region.ts';
import { Parameters } from '../../ir/control/parameters.ts';
import { isInexact } from '../../ir/dtype.ts';
import { GraphBuilder, rewrite, type Node, type NodeOf } from '../../ir/graph.ts';
import { overParameters } from '../outside.ts';
import { activeInputs } from '../rules-loop.ts';
import type { Tangents } from './rule.ts';

/** Tangents of nodes, as jvp.ts finds them. */
type FindTangents = (
  b: GraphBuilder,
  outputs: readonly Node[],
  wrt: readonly Node[],
  directions: readonly Node[],
) => (Node | undefined)[];

/** The tangent of one result of a loop; undefined where it does not change. */
export function loopTangent(
  b: GraphBuilder,
  node: NodeOf<'iterate'>,
  given: Tangents,
  find: FindTangents,
): Node | undefined {
  const { result, ...attrs } = node.attrs;
  const { carries, stacked } = attrs;
  const graph = graphOf(attrs.body);
  const active = activeInputs(
    graph,
    carries,
    given.map((tangent) => tangent !== undefined),
  );
  const moving = [...node.inputs.keys()].filter((place) => active.has(place));
  const among = (low: number, high: number): number[] =>
    moving.filter((place) => place >= low && place < high);
  const groups = [
    [0, carries],
    [carries, carries + stacked],
    [carries + stacked, node.inputs.length],
  ] as const;

  const inner = new GraphBuilder();
  const parameters = new Parameters(inner);
  const own = (place: number): Node => graph.parameters[place + 1]! as Node;
  const inside = new Map<Node, Node>([[own(-1), parameters.like(own(-1), 'count')]]);
  const directions = new Map<number, Node>();
  for (const [low, high] of groups) {
    for (let place = low; place < high; place++)
      inside.set(own(place), parameters.like(own(place), `p${place}`));
    for (const place of among(low, high)) directions.set(place, parameters.like(own(place), `d${place}`));
  }
  const { outputs } = rewrite({ parameters: [], outputs: graph.outputs }, (old) => inside.get(old), inner);
  const pushed = find(
    inner,
    outputs,
    moving.map((place) => inside.get(own(place))!),
    moving.map((place) => directions.get(place)!),
  );
  const { given: found, invariants: held } = overParameters(b, inner, parameters, pushed);
  const tangentOf = (at: number): Node => found[at] ?? fullLike(inner, outputs[at]!, 0);
  const movingCarries = among(0, carries);
  const changing = [...outputs.keys()]
    .slice(carries)
    .filter((at) => found[at] !== undefined && isInexact(outputs[at]!.dtype));
  const isCarry = result < carries;
  if (!(isCarry ? movingCarries : changing).includes(result)) return undefined;
  const body = regionOf({
    parameters: parameters.list,
    outputs: [
      ...outputs.slice(0, carries),
      ...movingCarries.map(tangentOf),
      ...outputs.slice(carries),
      ...changing.map(tangentOf),
    ],
  });
  const lists = inputsOf(node);
  const tangents = (low: number, high: number): Node[] =>
    among(low, high).map((place) => given[place] ?? fullLike(b, node.inputs[place]!, 0));
  const [first, second, third] = groups;
  const inputs = [
    ...lists.carries,
    ...tangents(...first),
    ...lists.stacks,
    ...tangents(...second),
    ...lists.invariants,
    ...tangents(...third),
    ...held.map(({ value }) => value),
  ];
  const all = iterate(b, inputs, {
    ...attrs,
    body,
    carries: carries + movingCarries.length,
    stacked: stacked + among(...second).length,
  });
  if (isCarry) return all[carries + movingCarries.indexOf(result)];
  return all[outputs.length + movingCarries.length + changing.indexOf(result)];
}
