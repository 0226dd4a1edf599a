// Chooses the donated input that each result overwrites. Callers pair them by type only, and the tensors of a
// model have few types. Here each result gets the input that it updates: one that it is an elementwise
// function of, or scatters into. Such a result can be written in place.

import type { Graph, Node } from '../../ir/graph.ts';
import { showType } from '../../ir/infer.ts';
import { isElementwise } from '../../ir/ops.ts';
import { sameShape } from '../../ir/shape.ts';

/** Results that may be written over a parameter: those of pairs (parameter → output) that fit. */
export function offeredIn(graph: Graph, pairs: ReadonlyMap<number, number>): Map<Node, Node> {
  const outputs = new Set(graph.outputs);
  const offered = new Map<Node, Node>();
  for (const [parameter, output] of pairs) {
    const [from, to] = [graph.parameters[parameter]! as Node, graph.outputs[output]!];
    const fits =
      from.dtype === to.dtype &&
      sameShape(from.shape, to.shape) &&
      !outputs.has(from) &&
      to.op !== 'parameter';
    if (fits && !offered.has(to)) offered.set(to, from);
  }
  return offered;
}

/** Pairs the same results and inputs anew: result → input. */
export function pairDonations(offered: ReadonlyMap<Node, Node>): Map<Node, Node> {
  const donors = new Set(offered.values());
  const updates = new Map<Node, Node[]>();
  /** How many results could update each input. */
  const wanted = new Map<Node, number>();
  for (const result of offered.keys()) {
    const found = updatedBy(result, donors);
    updates.set(result, found);
    for (const donor of found) wanted.set(donor, (wanted.get(donor) ?? 0) + 1);
  }
  const paired = new Map<Node, Node>();
  const free = new Set(donors);
  const pair = (result: Node, donor: Node | undefined): void => {
    if (donor === undefined) return;
    paired.set(result, donor);
    free.delete(donor);
  };
  // Results with the fewest possible inputs are paired first, with the input that the fewest others
  // can use: a moment before the parameter that it updates.
  const results = [...updates].sort(([, a], [, b]) => a.length - b.length);
  for (const [result, list] of results) {
    const open = list.filter((donor) => free.has(donor));
    const [best] = open.sort((a, b) => wanted.get(a)! - wanted.get(b)!);
    pair(result, best);
  }
  const byType = new Map<string, Node[]>();
  for (const donor of free) {
    const type = showType(donor);
    byType.set(type, [...(byType.get(type) ?? []), donor]);
  }
  for (const result of offered.keys()) {
    if (!paired.has(result)) pair(result, byType.get(showType(result))?.shift());
  }
  return paired;
}

/**
 * The donors of its type that a result is an elementwise function of, scatters into, is a loop's last value of, or is
 * added up over processes, nearest first.
 */
function updatedBy(result: Node, donors: ReadonlySet<Node>): Node[] {
  const type = showType(result);
  const found: Node[] = [];
  const seen = new Set<Node>([result]);
  for (const node of seen) {
    if (donors.has(node) && showType(node) === type) found.push(node);
    if (node.op === 'scatter') seen.add(node.inputs[0]!);
    if (node.op === 'allReduce') seen.add(node.inputs[0]!);
    if (node.op === 'iterate' && node.attrs.result < node.attrs.carries)
      seen.add(node.inputs[node.attrs.result]!);
    if (!isElementwise(node.op)) continue;
    for (const input of node.inputs) seen.add(input);
  }
  return found;
}
