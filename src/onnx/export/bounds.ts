// The least and the greatest integer that a node can hold. Indices that cannot leave an axis need no check in
// the file.

import { integerRange, isFloat, isWide, type DType } from '../../ir/dtype.ts';
import { dims, type Node } from '../../ir/graph.ts';
import { constantOf } from '../../ir/passes/pattern.ts';

type Bounds = readonly [low: number, high: number];

/** How far back a value is followed. */
const deepest = 24;

/** Whether all integers of a node are known to lie in `low … high`. */
export function liesIn(node: Node, low: number, high: number): boolean {
  const [lower, upper] = boundsOf(node, deepest, new Map());
  return lower >= low && upper <= high;
}

function all(dtype: DType): Bounds {
  if (isFloat(dtype) || isWide(dtype)) return [-Infinity, Infinity];
  const [low, high] = integerRange(dtype);
  return [Number(low), Number(high)];
}

function either(bounds: readonly Bounds[]): Bounds {
  return [Math.min(...bounds.map(([low]) => low)), Math.max(...bounds.map(([, high]) => high))];
}

function boundsOf(node: Node, depth: number, known: Map<Node, Bounds>): Bounds {
  const found = known.get(node) ?? boundsFrom(node, depth, known);
  known.set(node, found);
  return found;
}

function boundsFrom(node: Node, depth: number, seen: Map<Node, Bounds>): Bounds {
  const whole = all(node.dtype);
  if (isFloat(node.dtype) || depth === 0) return whole;
  const known = constantOf(node);
  if (known !== undefined) return [Number(known), Number(known)];
  const of = (input: number): Bounds => boundsOf(node.inputs[input]!, depth - 1, seen);
  /** Wrapping arithmetic may give anything once an end leaves the dtype. */
  const unwrapped = ([low, high]: Bounds): Bounds =>
    low >= whole[0] && high <= whole[1] ? [low, high] : whole;
  switch (node.op) {
    case 'iota':
      return unwrapped([0, Math.max(0, dims(node)[node.attrs.axis]! - 1)]);
    case 'argReduce':
    case 'argSort':
      return [0, Math.max(0, dims(node.inputs[0]!)[node.attrs.axis]! - 1)];
    case 'searchSorted':
      return [0, dims(node.inputs[0]!).at(-1)!];
    case 'reshape':
    case 'permute':
    case 'broadcast':
    case 'slice':
    case 'window':
      return of(0);
    case 'pad':
      return either([of(0), [node.attrs.value, node.attrs.value]]);
    case 'gather':
      return either([of(0), [0, 0]]);
    case 'concat':
      return either(node.inputs.map((_, i) => of(i)));
    case 'where':
      return either([of(1), of(2)]);
    case 'cast':
      return unwrapped(of(0));
    case 'add': {
      const [[a, b], [c, d]] = [of(0), of(1)];
      return unwrapped([a + c, b + d]);
    }
    case 'sub': {
      const [[a, b], [c, d]] = [of(0), of(1)];
      return unwrapped([a - d, b - c]);
    }
    case 'mul': {
      const [[a, b], [c, d]] = [of(0), of(1)];
      const ends = [a * c, a * d, b * c, b * d];
      return ends.some(Number.isNaN) ? whole : unwrapped([Math.min(...ends), Math.max(...ends)]);
    }
    case 'min': {
      const [[a, b], [c, d]] = [of(0), of(1)];
      return [Math.min(a, c), Math.min(b, d)];
    }
    case 'max': {
      const [[a, b], [c, d]] = [of(0), of(1)];
      return [Math.max(a, c), Math.max(b, d)];
    }
    default:
      return whole;
  }
}
