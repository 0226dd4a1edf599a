// What integers of a recorded value lie between, as far as the operations that made it tell (interval
// analysis): a position that `argmax`, `arange` or `clip` gave needs no check.

import { integerRange, isInteger, type DType } from '../../ir/dtype.ts';
import type { Node, NodeOf } from '../../ir/graph.ts';

/** Both ends are included; beyond 2⁵³ they are rounded outwards. */
export interface Bounds {
  readonly low: number;
  readonly high: number;
}

/** Operations are looked through so far. */
const deepest = 16;

/** What the elements of an integer or bool node lie between; what nothing is known of, within its dtype. */
export function boundsOf(node: Node): Bounds {
  return boundsWithin(node, deepest, new Map());
}

function boundsWithin(node: Node, depth: number, seen: Map<Node, Bounds>): Bounds {
  const all = limitsOf(node.dtype);
  if (depth === 0 || all.high === Infinity) return all;
  const before = seen.get(node);
  if (before !== undefined) return before;
  const found = boundsFrom(node, (input) => boundsWithin(input, depth - 1, seen)) ?? all;
  // What leaves its dtype wraps around.
  const bounds = found.low >= all.low && found.high <= all.high ? found : all;
  seen.set(node, bounds);
  return bounds;
}

/** The rule of each operation that has one, by the bounds of its operands. */
function boundsFrom(node: Node, within: (node: Node) => Bounds): Bounds | undefined {
  const of = (input: number): Bounds => within(node.inputs[input]!);
  switch (node.op) {
    case 'constant': {
      const value = Number((node as NodeOf<'constant'>).attrs.value);
      return { low: value, high: value };
    }
    case 'iota': {
      const { shape, axis } = (node as NodeOf<'iota'>).attrs;
      return { low: 0, high: Math.max(0, Number(shape[axis]) - 1) };
    }
    case 'argReduce':
    case 'argSort': {
      const { axis } = (node as NodeOf<'argReduce' | 'argSort'>).attrs;
      return { low: 0, high: Math.max(0, Number(node.inputs[0]!.shape[axis]) - 1) };
    }
    case 'reshape':
    case 'permute':
    case 'broadcast':
    case 'slice':
    case 'cast':
    case 'stopGradient':
      return of(0);
    case 'concat':
      return node.inputs.map((_, i) => of(i)).reduce(joined);
    case 'where':
      return joined(chosen(node, 1, within), chosen(node, 2, within));
    // What lies outside of the axis reads 0.
    case 'gather':
      return joined(of(0), { low: 0, high: 0 });
    case 'add': {
      const [a, b] = [of(0), of(1)];
      return { low: a.low + b.low, high: a.high + b.high };
    }
    case 'sub': {
      const [a, b] = [of(0), of(1)];
      return { low: a.low - b.high, high: a.high - b.low };
    }
    case 'mul': {
      const [a, b] = [of(0), of(1)];
      const ends = [a.low * b.low, a.low * b.high, a.high * b.low, a.high * b.high];
      return { low: Math.min(...ends), high: Math.max(...ends) };
    }
    case 'min': {
      const [a, b] = [of(0), of(1)];
      return { low: Math.min(a.low, b.low), high: Math.min(a.high, b.high) };
    }
    case 'max': {
      const [a, b] = [of(0), of(1)];
      return { low: Math.max(a.low, b.low), high: Math.max(a.high, b.high) };
    }
    default:
      return undefined;
  }
}

/** The bounds of what `where` gives where its condition holds (1) or does not (2): `clamp` compares what it gives. */
function chosen(node: Node, input: 1 | 2, within: (node: Node) => Bounds): Bounds {
  const { low, high } = within(node.inputs[input]!);
  const [condition] = node.inputs as readonly [Node];
  if (condition.op !== 'lt' && condition.op !== 'le') return { low, high };
  const [left, right] = condition.inputs as readonly [Node, Node];
  const value = node.inputs[input]!;
  const isLess = input === 1;
  // Equality belongs to one of the two.
  const gap = (condition.op === 'lt') === isLess ? 1 : 0;
  if (value === left)
    return isLess
      ? { low, high: Math.min(high, within(right).high - gap) }
      : { low: Math.max(low, within(right).low + gap), high };
  if (value === right)
    return isLess
      ? { low: Math.max(low, within(left).low + gap), high }
      : { low, high: Math.min(high, within(left).high - gap) };
  return { low, high };
}

function joined(a: Bounds, b: Bounds): Bounds {
  return { low: Math.min(a.low, b.low), high: Math.max(a.high, b.high) };
}

function limitsOf(dtype: DType): Bounds {
  if (!isInteger(dtype) && dtype !== 'bool') return { low: -Infinity, high: Infinity };
  const [low, high] = integerRange(dtype);
  return { low: Number(low), high: Number(high) };
}
