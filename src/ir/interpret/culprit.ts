// The operation that made the first NaN or infinity. Takes a value that has one and the graph that
// it was computed by: evaluates the graph once more with the reference interpreter, node by node,
// and follows non-finite values back from the result to a node whose inputs are all finite.

import { isInexact } from '../dtype.ts';
import { topological, type Node } from '../graph.ts';
import { partCount, type HostArray } from '../value.ts';
import { evaluateNode } from './interpret.ts';

/** What is wrong with a value, and at which element first. */
export interface Fault {
  readonly value: number;
  readonly place: number;
}

export interface Culprit {
  readonly node: Node;
  readonly fault: Fault;
  /**
   * The same element of inputs of the same shape, and the only one of single numbers: what the
   * operation made it of.
   */
  readonly from: readonly number[];
}

/** The first element that is no finite number: the first NaN, or else the first infinity. */
export function faultOf({ dtype, data }: HostArray): Fault | undefined {
  const found = partFault(dtype, data);
  return found && { ...found, place: Math.floor(found.place / partCount(dtype)) };
}

/** `place` counts the parts of complex numbers. */
function partFault(dtype: HostArray['dtype'], data: HostArray['data']): Fault | undefined {
  if (!isInexact(dtype)) return undefined;
  let infinite = -1;
  for (let place = 0; place < data.length; place++) {
    const value = data[place] as number;
    if (Number.isFinite(value)) continue;
    if (Number.isNaN(value)) return { value, place };
    if (infinite < 0) infinite = place;
  }
  return infinite < 0 ? undefined : { value: data[infinite] as number, place: infinite };
}

/**
 * The node that made the first non-finite value of `root`; undefined where it came with leaves
 * (`input` then says of which) or with constants. `leaf` gives the values that the walk ends at.
 */
export function culpritOf(
  root: Node,
  leaf: (node: Node) => HostArray | undefined,
): Culprit | { readonly input: Node; readonly fault: Fault } | undefined {
  const order = topological([root], (node) => leaf(node) !== undefined);
  const values = new Map<Node, HostArray>();
  const faults = new Map<Node, Fault>();
  for (const node of order) {
    const value =
      leaf(node) ??
      evaluateNode(
        node,
        node.inputs.map((input) => values.get(input)!),
      );
    values.set(node, value);
    const fault = faultOf(value);
    if (fault !== undefined) faults.set(node, fault);
  }
  if (!faults.has(root)) return undefined;
  // What leads from the root back through values that are not finite.
  const chain = topological([root], (node) => leaf(node) !== undefined || !faults.has(node)).filter((node) =>
    faults.has(node),
  );
  const isMade = (node: Node): boolean => leaf(node) === undefined && node.op !== 'constant';
  const sources = (node: Node): readonly Node[] => (leaf(node) === undefined ? node.inputs : []);
  const isNaN = (node: Node): boolean => Number.isNaN(faults.get(node)?.value);
  const made =
    chain.find((node) => isMade(node) && !sources(node).some((input) => faults.has(input))) ??
    // Out of infinities that came with constants or inputs, as masks have: the first NaN.
    chain.find((node) => isMade(node) && isNaN(node) && !sources(node).some(isNaN));
  if (made !== undefined) {
    const fault = faults.get(made)!;
    return { node: made, fault, from: sourcesAt(made, fault, values) };
  }
  const given = chain.find((node) => leaf(node) !== undefined && isNaN(node));
  return given === undefined ? undefined : { input: given, fault: faults.get(given)! };
}

function sourcesAt(node: Node, { place }: Fault, values: ReadonlyMap<Node, HostArray>): number[] {
  const size = values.get(node)!.data.length;
  return node.inputs.flatMap((input) => {
    const { data } = values.get(input)!;
    return data.length === size || data.length === 1 ? [Number(data[data.length === 1 ? 0 : place])] : [];
  });
}
