// Finds which elements of each value are needed, by a walk from the outputs backwards. A reader that selects
// the value at indices below a number that a run gives, or whose own result is needed only there, needs no
// more of it. Memory beyond may hold anything, NaN included: readers select it away, or write it where it is
// not needed.

import { topological, dims, type Graph, type Need, type Node } from '../ir/graph.ts';
import { isElementwise } from '../ir/ops.ts';
import { eitherNeed } from '../ir/passes/drop-markers.ts';
import { scalarOf } from '../ir/passes/pattern.ts';
import { sizeOf } from '../ir/shape.ts';

type Needs = readonly Need[];

const all: Needs = [];

/**
 * What is needed of every node of which it is not all, where `isKnown` says that a number is known
 * before a kernel runs.
 */
export function neededElements(graph: Graph, isKnown: (n: Node) => boolean): ReadonlyMap<Node, Needs> {
  const order = topological(graph.outputs);
  const asksLess = graph.needed !== undefined || order.some((node) => node.op === 'where');
  const needs = new Map<Node, Needs>();
  if (!asksLess) return needs;
  const ask = (node: Node, asked: Needs): void => {
    const before = needs.get(node);
    needs.set(node, before === undefined ? asked : eitherNeed(before, asked));
  };
  for (const output of graph.outputs) ask(output, graph.needed?.get(output) ?? all);
  for (const node of order.reverse()) {
    const own = needs.get(node) ?? all;
    node.inputs.forEach((input, i) => ask(input, askedOf(node, own, input, i)));
  }
  for (const [node, list] of needs) {
    const known = list.filter(({ ends }) => ends.every(({ n }) => isKnown(n)));
    if (known.length === 0) needs.delete(node);
    else needs.set(node, known);
  }
  return needs;
}

/** What a node of which `own` is needed asks of an input. */
function askedOf(node: Node, own: Needs, input: Node, at: number): Needs {
  switch (node.op) {
    case 'where':
      return at === 0 ? own : narrowed(own, selectedBelow(node.inputs[0]!, at === 1));
    case 'reshape':
      return through(own, reshapedAxes(node));
    case 'permute':
      return through(own, new Map(node.attrs.order.map((from, axis) => [axis, from])));
    case 'broadcast': {
      const [from, to] = [dims(input), dims(node)];
      const offset = to.length - from.length;
      return through(own, new Map(from.flatMap((dim, axis) => (dim === 1 ? [] : [[axis + offset, axis]]))));
    }
    case 'slice': {
      const { start, step } = node.attrs;
      return own.filter(({ axis }) => start[axis] === 0 && step[axis] === 1);
    }
    case 'pad': {
      const { low, interior } = node.attrs;
      return own.filter(({ axis }) => low[axis] === 0 && interior[axis] === 0);
    }
    case 'concat':
      return own.filter(({ axis }) => axis !== node.attrs.axis);
    case 'reduce': {
      const { axes } = node.attrs;
      const kept = [...dims(input).keys()].filter((axis) => !axes.includes(axis));
      return through(own, new Map(kept.map((from, axis) => [axis, from])));
    }
    case 'scan':
      // An element is made of those before it, or of those behind it.
      return own.filter(({ axis }) => axis !== node.attrs.axis || !node.attrs.reverse);
    case 'dot': {
      const { lhsBatch, rhsBatch, lhsContract, rhsContract } = node.attrs;
      const free = (side: number, taken: readonly number[]): number[] =>
        [...dims(node.inputs[side]!).keys()].filter((axis) => !taken.includes(axis));
      const [left, right] = [free(0, [...lhsBatch, ...lhsContract]), free(1, [...rhsBatch, ...rhsContract])];
      const own0 = [...lhsBatch, ...left];
      const places =
        at === 0
          ? own0.map((from, axis) => [axis, from] as const)
          : [
              ...rhsBatch.map((from, axis) => [axis, from] as const),
              ...right.map((from, i) => [own0.length + i, from] as const),
            ];
      return through(own, new Map(places));
    }
    case 'barrier':
      return at === 0 ? own : all;
    case 'dequantize':
      return own.filter(({ axis }) => axis !== dims(node).length - 1);
    case 'gather':
      return at === 1 ? own : own.filter(({ axis }) => axis !== node.attrs.axis);
    case 'scatter':
      return at === 0 ? own : all;
    default:
      return isElementwise(node.op) ? own : all;
  }
}

/** Needs of a result along axes that stand elsewhere in an input. */
function through(own: Needs, places: ReadonlyMap<number, number>): Needs {
  return own.flatMap(({ axis, ends }) => {
    const at = places.get(axis);
    return at === undefined ? [] : [{ axis: at, ends }];
  });
}

/** Whether a node is a value below a run-time number and one constant beyond, or says where that is. */
export function isCutOff(node: Node): boolean {
  if (node.dtype === 'bool' && node.inputs.length > 0)
    if (selectedBelow(node, true).length + selectedBelow(node, false).length > 0) return true;
  if (node.op !== 'where') return false;
  const [condition, yes, no] = node.inputs as readonly [Node, Node, Node];
  const cut = (other: Node, wanted: boolean): boolean =>
    scalarOf(other)?.op === 'constant' && selectedBelow(condition, wanted).length > 0;
  return cut(no, true) || cut(yes, false);
}

/** Axes of a reshaped result that are axes of the input: as many elements before them, and as long. */
function reshapedAxes(node: Node): ReadonlyMap<number, number> {
  const [from, to] = [dims(node.inputs[0]!), dims(node)];
  const before = (shape: readonly number[], axis: number): number => sizeOf(shape.slice(0, axis));
  const places = to.flatMap((dim, axis) => {
    if (dim === 1) return [];
    const same = from.findIndex((size, at) => size === dim && before(from, at) === before(to, axis));
    return same < 0 ? [] : [[axis, same] as const];
  });
  return new Map(places);
}

/** What is needed of a value that is selected in some places only. */
function narrowed(own: Needs, selected: Needs): Needs {
  return [...selected, ...own.filter(({ axis }) => selected.every((need) => need.axis !== axis))];
}

/** Beyond which indices a condition never has the value `wanted`. */
function selectedBelow(condition: Node, wanted: boolean): Needs {
  const [a, b] = condition.inputs as readonly [Node, Node];
  switch (condition.op) {
    case 'and':
    case 'or': {
      const [left, right] = [selectedBelow(a, wanted), selectedBelow(b, wanted)];
      return (condition.op === 'and') === wanted ? narrowed(left, right) : eitherNeed(left, right);
    }
    case 'not':
      return selectedBelow(a, !wanted);
    case 'broadcast': {
      const offset = condition.shape.length - a.shape.length;
      const kept = selectedBelow(a, wanted).filter(({ axis }) => a.shape[axis] !== 1);
      return kept.map(({ axis, ends }) => ({ axis: axis + offset, ends }));
    }
    // place < n fails from n on, n ≤ place holds from there on.
    case 'lt':
      return wanted ? placesBelow(a, b, 0) : placesBelow(b, a, 1);
    case 'le':
      return wanted ? placesBelow(a, b, 1) : placesBelow(b, a, 0);
    default:
      return [];
  }
}

/** The places along an axis that are less than `limit + more`. */
function placesBelow(place: Node, limit: Node, more: number): Needs {
  let [at, offset] = [place, 0];
  for (; at.op === 'broadcast'; at = at.inputs[0]!) offset += at.shape.length - at.inputs[0]!.shape.length;
  const n = scalarOf(limit);
  if (at.op !== 'iota' || at.dtype !== 'i32' || n === undefined) return [];
  const axis = at.attrs.axis + offset;
  return place.shape[axis] === dims(at)[at.attrs.axis] ? [{ axis, ends: [{ n, more }] }] : [];
}
